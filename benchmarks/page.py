"""The pages of `jurygraph view`: index, time of every page, a run decided again, two compared, one that grows, memory;
and what `to_pandas` takes.

`python -m benchmarks page` takes a run of 20,000 responses of 6 verdicts; `python -m benchmarks.page --size 100000` one
of so many. Seconds are those of a request, from a client in another process than the server.
"""

import asyncio
import shutil
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from os import sysconf
from pathlib import Path
from random import Random
from threading import Thread
from time import perf_counter, sleep
from urllib.parse import urlencode
from urllib.request import urlopen

from benchmarks.__main__ import print_figures
from benchmarks.figure import Figure, at_most
from benchmarks.large import peak_memory
from benchmarks.store import CONFIG, WORDS, write_run
from jurygraph import Jury, Response, Task
from jurygraph.runs.run import Run
from jurygraph.runs.store.folder import INDEX_FILE, LEDGER_FILE
from jurygraph.testing import ScriptedJudge
from jurygraph.viewer.index import RunIndex

SIZE, REPEATS = 20_000, 20
PAGE_SECONDS, RANKING_SECONDS, WHAT_IF_SECONDS = 0.15, 3.0, 0.05
COMPARISON_SECONDS = 5.0
SECONDS_PER_RESPONSE = 60 / 100_000
MEGABYTES, INDEX_SHARE, VIEWER_SHARE = 300.0, 50.0, 10.0
CRITERIA = ("clear", "short", "polite", "true", "complete", "useful")


def measure(size: int = SIZE) -> Iterator[Figure]:
    folder = Path(tempfile.mkdtemp(prefix="jurygraph-page-"))
    try:
        asyncio.run(write_run(folder / "run", size, is_labelled=True))
        asyncio.run(write_run(folder / "other", size, " again", is_labelled=True))
        yield from _index(folder / "run", size)
        with _view(folder / "run", folder / "other") as (server, address):
            yield from _times(address)
            yield at_most(
                "memory of the server at its peak", peak_memory(server.pid), "MB", MEGABYTES
            )
        yield _growing(folder / "judged", "judge")
        yield _growing(folder / "grown", "rules")
    finally:
        shutil.rmtree(folder)


def _index(folder: Path, size: int) -> Iterator[Figure]:
    start = perf_counter()
    with closing(Run.open(folder)) as run, closing(RunIndex(run)) as index:
        index.update()
        index.complete()
    seconds = perf_counter() - start
    start = perf_counter()
    with closing(Run.open(folder)) as run:
        run.to_pandas()
    everything = perf_counter() - start
    yield at_most(f"index of {size:,} responses", seconds, "s", SECONDS_PER_RESPONSE * size)
    yield Figure("... of the time of to_pandas, everything in memory", seconds / everything, "")
    share = 100 * (folder / INDEX_FILE).stat().st_size / (folder / LEDGER_FILE).stat().st_size
    yield at_most("... and its size", share, "% of the run", INDEX_SHARE)


@contextmanager
def _view(*folders: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve runs, and return the server's process and address."""
    script = str(Path(sys.executable).with_name("jurygraph"))
    command = [script, "view", *map(str, folders), "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield server, server.stdout.readline().strip()
        finally:
            server.terminate()


def _growing(folder: Path, by: str) -> Figure:
    """The share of a writer's CPU that a viewer takes whose page of the run is loaded again every second."""
    command = [sys.executable, "-m", "benchmarks.page", "--write", str(folder), "--by", by]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        with _view(folder) as (server, address):
            _seconds(address, "a/")
            before = _cpu(server.pid), _cpu(writer.pid)
            for _ in range(REPEATS):
                sleep(1.0)
                _seconds(address, "a/")
            after = _cpu(server.pid), _cpu(writer.pid)
        writer.terminate()
    share = 100 * (after[0] - before[0]) / (after[1] - before[1])
    name = f"CPU of a viewer of a run that grows by {by}"
    return at_most(name, share, "% of the writer's", VIEWER_SHARE)


def _cpu(pid: int) -> float:
    """Return the seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / sysconf("SC_CLK_TCK")


def write_for_ever(folder: Path, by: str) -> None:
    """Score groups of 8 responses on six criteria by a scripted judge, whose replies cost little CPU, or by rules."""
    judge = ScriptedJudge(dict.fromkeys(CRITERIA, lambda text: len(text) % 100 / 100))
    opened = (
        Jury.from_config(CONFIG) if by == "rules" else Jury(evaluators=["criteria"], model=judge)
    )
    criteria = [{"id": name, "text": f"It is {name}.", "weight": 1.0} for name in CRITERIA]
    with opened as jury, jury.record(folder):
        for number in count():
            texts = [" ".join(Random(f"{number} {k}").choices(WORDS, k=40)) for k in range(8)]
            responses = [
                Response(id=f"{number}/{k}", agent=f"agent-{k % 4}", text=text)
                for k, text in enumerate(texts)
            ]
            task = Task(
                id=f"task-{number}",
                query=f"How much is {number} apples at 2 dollars?",
                reference=str(2 * number),
                rubric={"criteria": criteria} if by == "judge" else None,
            )
            jury.score(task, responses)
            if number == 2:
                print("it has begun", flush=True)


def _times(address: str) -> Iterator[Figure]:
    responses = [f"task-{number}/{number % 8}" for number in range(0, 10 * REPEATS, 10)]
    kinds = {
        "the run": ["a/"] * REPEATS,
        "a table, sorted by a question": ["a/responses?sort=maths.steps"] * REPEATS,
        "... of all rows that a search hits": ["a/responses?search=apples&sort=maths.steps"]
        * REPEATS,
        "a table, searched": [f"a/responses?search=apples+{n}" for n in range(REPEATS)],
        "a table with a label's value, sorted by another label": [
            f"a/responses?label.domain=domain+{n % 6}&columns=label.step&sort=-label.step"
            for n in range(REPEATS)
        ],
        "a grid": ["a/responses?sort=-reward&grid=steps"] * REPEATS,
        "a response": [f"a/response?{urlencode({'id': name})}" for name in responses],
        "a verdict": [
            f"a/verdict?{urlencode({'id': name, 'question': 'maths.steps'})}" for name in responses
        ],
    }
    for name, paths in kinds.items():
        yield at_most(f"{name}, 95th percentile", _high(address, paths), "s", PAGE_SECONDS)
    what_if = [f"{path}&set=reward.steps%3D0.1" for path in kinds["a response"]]
    yield at_most("a response that is decided again", _high(address, what_if), "s", WHAT_IF_SECONDS)
    first: list[float] = []
    ranking = Thread(
        target=lambda: first.append(_seconds(address, "a/ranking?set=reward.steps%3D1"))
    )
    ranking.start()
    meanwhile: list[float] = []
    while ranking.is_alive() or not meanwhile:
        meanwhile.append(_seconds(address, kinds["a response"][0]))
        sleep(0.1)  # as somebody who reads; without a pause both share one core
    yield at_most("first ranking under other settings", first[0], "s", RANKING_SECONDS)
    yield at_most("... a response meanwhile", _percentile(meanwhile), "s", PAGE_SECONDS)
    later = [f"a/ranking?set=reward.steps%3D0.{n}1" for n in range(REPEATS)]
    yield at_most("a later ranking", _high(address, later), "s", RANKING_SECONDS)
    along = _seconds(address, "a/ranking?scan=reward.steps")
    yield at_most("where agents change places along a weight", along, "s", RANKING_SECONDS)
    yield Figure("how far the order is from turning", _seconds(address, "a/ranking?far=1"), "s")
    first_comparison = _seconds(address, "a/compare")
    yield at_most("first comparison with another run", first_comparison, "s", COMPARISON_SECONDS)
    compared = _high(address, ["a/compare"] * REPEATS)
    yield at_most("a later one, 95th percentile", compared, "s", PAGE_SECONDS)


def _high(address: str, paths: list[str]) -> float:
    """The 95th percentile of the seconds of some pages."""
    return _percentile([_seconds(address, path) for path in paths])


def _percentile(seconds: list[float]) -> float:
    return sorted(seconds)[int(0.95 * (len(seconds) - 1))]


def _seconds(address: str, path: str) -> float:
    start = perf_counter()
    with urlopen(address + path) as reply:
        reply.read()
    return perf_counter() - start


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--by", choices=("judge", "rules"), default="judge")
    arguments = parser.parse_args()
    if arguments.write is not None:
        write_for_ever(arguments.write, arguments.by)
    sys.exit(1 if print_figures(measure(arguments.size)) else 0)
