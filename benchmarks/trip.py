"""Facts and checks: the trip example's scoring, and a look-up in a table of a million rows."""

import asyncio
import csv
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time

from benchmarks.figure import Figure, at_most, best_of
from jurygraph import Jury
from jurygraph.agents.facts.spec import TableSpec
from jurygraph.agents.facts.tables import FileTable
from jurygraph.sources import read_tasks

TRIP = Path(__file__).parent.parent / "examples" / "group_trip"
ROWS = 1_000_000
ROUNDS = 5


def measure() -> list[Figure]:
    """CPU of this process; memory of a process of its own."""
    scored = asyncio.run(_scored())
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "hotels.csv"
        _write(table)
        command = [sys.executable, "-m", "benchmarks.trip", str(table)]
        finished = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent)
        hit, plain, memory = map(float, finished.stdout.split())
    return [
        at_most("the trip example, facts and checks, a response", scored, "ms CPU", 3),
        at_most(f"look-up in a table of {ROWS:,} rows, warm", hit, "µs CPU", 50),
        Figure("... in a dictionary of the rows' keys", plain, "µs CPU"),
        at_most("... peak memory, the table indexed", memory, "MB", 600),
    ]


async def _scored() -> float:
    """Milliseconds a response, plans made before; the best of some rounds."""
    with Jury.from_config(TRIP / "jury.yaml") as jury:
        work = [(task, responses, await jury.aprepare(task)) for task, responses in read_tasks(TRIP / "tasks.jsonl.gz")]
        seconds = []
        for _ in range(ROUNDS):
            start = process_time()
            for group in work:
                await jury.ascore(*group)
            seconds.append(process_time() - start)
    return min(seconds) / sum(len(responses) for _, responses, _ in work) * 1e3


def _write(path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["name", "city", "price", "rule"])
        rows.writerows([f"Hotel {n}", f"City {n % 5000}", n % 400, "No pets"] for n in range(ROWS))


def _looked_up(path: str) -> tuple[float, float, float]:
    """Microseconds of a look-up, and of one in a dictionary; the peak of memory before the dictionary, in MB."""
    table = FileTable("hotels", TableSpec(key=("name", "city"), file=path))
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
