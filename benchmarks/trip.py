"""Facts and checks: the trip example's scoring, and a look-up in a table of a million rows."""

import asyncio
import csv
import resource
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

from benchmarks.figure import Figure, at_most, best_of
from jurygraph import Group, Jury
from jurygraph.agents.facts.tables import FactTableSpec, RowTable
from jurygraph.sources import read_tasks

TRIP = Path(__file__).parent.parent / "examples" / "group_trip"
ROWS = 1_000_000
ROUNDS = 5


def measure() -> list[Figure]:
    """CPU of this process; memory of a process of its own."""
    single, batched = asyncio.run(_scored())
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "hotels.csv"
        _write(table)
        command = [sys.executable, "-m", "benchmarks.trip", str(table)]
        finished = subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent
        )
        hit, plain, memory = map(float, finished.stdout.split())
    return [
        at_most("the trip example, facts and checks, a response", single, "ms CPU", 3),
        Figure("... its groups in one batch", batched, "ms CPU"),
        at_most(f"look-up in a table of {ROWS:,} rows, warm", hit, "µs CPU", 50),
        Figure("... in a dictionary of the rows' keys", plain, "µs CPU"),
        at_most("... peak memory, the table indexed", memory, "MB", 600),
    ]


async def _scored() -> tuple[float, float]:
    """Milliseconds a response, group by group and all at once, plans made before; the best of some rounds."""
    with Jury.from_config(TRIP / "jury.yaml") as jury:
        work = [
            Group(task, responses, await jury.aprepare(task))
            for task, responses in read_tasks(TRIP / "tasks.jsonl.gz")
        ]
        single = [
            await _seconds(jury, [[_moved(group, n)] for group in work]) for n in range(ROUNDS)
        ]
        batched = [
            await _seconds(jury, [[_moved(group, n) for group in work]])
            for n in range(ROUNDS, 2 * ROUNDS)
        ]
    count = sum(len(group.responses) for group in work)
    return min(single) / count * 1e3, min(batched) / count * 1e3


def _moved(group: Group, places: int) -> Group:
    """Return a group with its claims elsewhere in the data, so that no round has results of another one."""
    filler: list[Any] = [{}] * places
    data = [
        filler + response.data for response in group.responses if isinstance(response.data, list)
    ]
    moved = [
        r.model_copy(update={"data": one}) for r, one in zip(group.responses, data, strict=True)
    ]
    return replace(group, responses=moved)


async def _seconds(jury: Jury, batches: list[list[Group]]) -> float:
    start = process_time()
    for batch in batches:
        async for _ in jury.ascore_many(batch):
            pass
    return process_time() - start


def _write(path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["name", "city", "price", "rule"])
        rows.writerows([f"Hotel {n}", f"City {n % 5000}", n % 400, "No pets"] for n in range(ROWS))


def _looked_up(path: str) -> tuple[float, float, float]:
    """Microseconds of a look-up, and of one in a dictionary; the peak of memory before the dictionary, in MB."""
    table = RowTable("hotels", FactTableSpec(key=("name", "city"), file=path))
    keys = [(f"Hotel {n}", f"City {n % 5000}") for n in range(0, ROWS, 997)]

    async def all_found() -> None:
        for key in keys:
            assert await table.find(key)

    hit = best_of(lambda: asyncio.run(all_found()), 5, 1) / len(keys) * 1e6
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    known = {(f"Hotel {n}", f"City {n % 5000}"): n for n in range(ROWS)}
    plain = best_of(lambda: [known[key] for key in keys], 5, 20) / len(keys) * 1e6
    return hit, plain, memory


if __name__ == "__main__":
    print(*_looked_up(sys.argv[1]))
