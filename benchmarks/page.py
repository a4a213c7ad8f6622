"""The pages of `jurygraph view`: index, time of every page, a run decided again, memory; and what `to_pandas` takes.

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
from contextlib import closing
from pathlib import Path
from threading import Thread
from time import perf_counter, sleep
from urllib.parse import urlencode
from urllib.request import urlopen

from benchmarks.__main__ import print_figures
from benchmarks.figure import Figure, at_most
from benchmarks.large import peak_memory
from benchmarks.store import write_run
from jurygraph.runs.run import Run
from jurygraph.runs.store.folder import INDEX, LEDGER
from jurygraph.viewer.index import RunIndex

SIZE, REPEATS = 20_000, 20
PAGE_SECONDS, RANKING_SECONDS, WHAT_IF_SECONDS = 0.15, 3.0, 0.05
SECONDS_PER_RESPONSE = 60 / 100_000
MEGABYTES, INDEX_SHARE = 300.0, 50.0


def measure(size: int = SIZE) -> Iterator[Figure]:
    folder = Path(tempfile.mkdtemp(prefix="jurygraph-page-"))
    try:
        asyncio.run(write_run(folder / "run", size))
        yield from _index(folder / "run", size)
        yield from _pages(folder / "run")
    finally:
        shutil.rmtree(folder)


def _index(folder: Path, size: int) -> Iterator[Figure]:
    start = perf_counter()
    with closing(Run.open(folder)) as run, closing(RunIndex(run)) as index:
        index.update()
        index.pack_verdicts()
    seconds = perf_counter() - start
    start = perf_counter()
    with closing(Run.open(folder)) as run:
        run.to_pandas()
    everything = perf_counter() - start
    yield at_most(f"index of {size:,} responses", seconds, "s", SECONDS_PER_RESPONSE * size)
    yield Figure("... of the time of to_pandas, everything in memory", seconds / everything, "")
    share = 100 * (folder / INDEX).stat().st_size / (folder / LEDGER).stat().st_size
    yield at_most("... and its size", share, "% of the run", INDEX_SHARE)


def _pages(folder: Path) -> Iterator[Figure]:
    script = str(Path(sys.executable).with_name("jurygraph"))
    command = [script, "view", str(folder), "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        try:
            yield from _times(address)
            yield at_most(
                "memory of the server at its peak", peak_memory(server.pid), "MB", MEGABYTES
            )
        finally:
            server.terminate()


def _times(address: str) -> Iterator[Figure]:
    responses = [f"task-{number}/{number % 8}" for number in range(0, 10 * REPEATS, 10)]
    kinds = {
        "the run": ["a/"] * REPEATS,
        "a table, sorted by a question": ["a/responses?sort=maths.steps"] * REPEATS,
        "a table, searched": [f"a/responses?search=apples+{n}" for n in range(REPEATS)],
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
    meanwhile = []
    while ranking.is_alive():
        meanwhile.append(_seconds(address, kinds["a response"][0]))
        sleep(0.1)  # as somebody who reads; without a pause both share one core
    yield Figure("first ranking under other settings, all verdicts read", first[0], "s")
    yield at_most("... a response meanwhile", _percentile(meanwhile), "s", PAGE_SECONDS)
    later = [f"a/ranking?set=reward.steps%3D0.{n}1" for n in range(REPEATS)]
    yield at_most("a later ranking", _high(address, later), "s", RANKING_SECONDS)
    along = _seconds(address, "a/ranking?scan=reward.steps")
    yield at_most("where agents change places along a weight", along, "s", RANKING_SECONDS)
    yield Figure("how far the order is from turning", _seconds(address, "a/ranking?far=1"), "s")


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
    sys.exit(1 if print_figures(measure(parser.parse_args().size)) else 0)
