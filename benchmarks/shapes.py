"""`jurygraph score` at three shapes of tasks, from files to durable traces, compared with plain calls and a peer.

CPU is that of the command's process, user and system, planning included. Start-up is taken off: what the same command
takes for one task with one response. A plain call sends the body of a real request of that shape, and drops the reply.
Every figure is the best of some rounds, in which the command and plain calls alternate.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple
from urllib.request import urlopen

import aiohttp

from benchmarks.figure import Figure, at_least, at_most
from benchmarks.judging_server import QUOTED, run_judging_server
from benchmarks.peer import python_with

QUESTIONS, IN_FLIGHT, GROUP, ROUNDS = 1600, 64, 8, 3
PEER = "autorubric"
WORDS = (
    "dear friend the meeting is on monday at nine in the old town hall and costs four dollars for each of us"
).split()


class Shape(NamedTuple):
    """A number of responses a task and of criteria in a call, and the most that a question may cost, in plain calls."""

    name: str
    group: int
    criteria: int
    limit: float


SHAPES = (
    Shape("one response a task", 1, 1, 10.0),
    Shape(f"groups of {GROUP}", GROUP, 1, 8.0),
    Shape(f"groups of {GROUP}, four criteria in a call", GROUP, 4, 3.0),
)


class Wait(NamedTuple):
    """Seconds a reply, the number of calls in flight, and the longest wall time, as a multiple of plain calls."""

    latency: float
    in_flight: int
    limit: float


WAITS = (Wait(0.1, 64, 1.2), Wait(0.2, 512, 1.5))


class Spent(NamedTuple):
    """Seconds of a process's CPU and of wall time."""

    cpu: float
    wall: float

    def beyond(self, other: "Spent") -> "Spent":
        return Spent(self.cpu - other.cpu, self.wall - other.wall)

    @classmethod
    def least(cls, rounds: Sequence["Spent"]) -> "Spent":
        """Return the least CPU and the least wall time of some rounds."""
        return cls(*map(min, zip(*rounds, strict=True)))


class Command(NamedTuple):
    """The command at one shape, in a folder of its own, and the body of one of its requests.

    `start_up` is what it takes for the first task with the first response.
    """

    folder: Path
    shape: Shape
    body: bytes
    start_up: Spent

    @property
    def tasks(self) -> Path:
        return self.folder / "tasks.jsonl"

    @property
    def calls(self) -> int:
        return QUESTIONS // self.shape.criteria


def measure_shapes(folder: Path, instant: str) -> Iterator[Figure]:
    """Yield the figures of all shapes; `instant` is the URL of a server that answers at once."""
    commands = [
        _open_command(folder / f"shape-{number}", shape, instant)
        for number, shape in enumerate(SHAPES)
    ]
    yield Figure(
        "start-up, taken off: one task with one response", commands[0].start_up.cpu, "s CPU"
    )
    theirs = _peer_seconds(folder, instant, [command.tasks for command in commands])
    for command, seconds in zip(commands, theirs, strict=True):
        yield from _at_once(command, instant, seconds)
    for wait in WAITS:
        with run_judging_server(wait.latency) as late:
            for command in commands:
                if command.shape.criteria == 1:
                    yield from _waiting(command, wait, late)


def _open_command(folder: Path, shape: Shape, url: str) -> Command:
    folder.mkdir()
    write_tasks(folder / "tasks.jsonl", QUESTIONS, shape.criteria, shape.group)
    first = write_tasks(folder / "first.jsonl", shape.criteria, shape.criteria, 1)
    start_up = Spent.least([_score(folder, first, url)[0] for _ in range(ROUNDS)])
    with urlopen(url) as reply:  # the server's last request
        return Command(folder, shape, reply.read(), start_up)


def _at_once(command: Command, url: str, peer_seconds: float | None) -> Iterator[Figure]:
    """Yield the cost of a question from a server that answers at once."""
    rounds = [
        (
            *_score(command.folder, command.tasks, url, again=True),
            asyncio.run(plain_calls(url, command)),
        )
        for _ in range(ROUNDS)
    ]
    cold, warm, plain = (Spent.least(one) for one in zip(*rounds, strict=True))
    cold, warm = cold.beyond(command.start_up), warm.beyond(command.start_up)
    name = "a question" if command.shape.criteria == 1 else "a verdict"
    ours, call = cold.cpu / QUESTIONS, plain.cpu / command.calls
    yield Figure(f"{command.shape.name}: {name}", ours * 1e3, "ms CPU")
    yield Figure("... a plain call with its body", call * 1e3, "ms CPU")
    yield at_most(f"... {name} against a plain call", ours / call, "times", command.shape.limit)
    yield at_least("... warm cache against cold, wall", cold.wall / warm.wall, "times", 5.0)
    if peer_seconds is not None:
        yield Figure(f"... {PEER}, cached and not traced, {name}", peer_seconds * 1e3, "ms CPU")
        yield at_least(f"... {PEER} against {name}", peer_seconds / ours, "times", 5.0)


def _waiting(command: Command, wait: Wait, url: str) -> Iterator[Figure]:
    """Yield the wall time with a server that answers late."""
    rounds = [
        (
            _score(command.folder, command.tasks, url, wait.in_flight)[0],
            asyncio.run(plain_calls(url, command, wait.in_flight)),
        )
        for _ in range(ROUNDS)
    ]
    ours, plain = (Spent.least(one) for one in zip(*rounds, strict=True))
    name = f"{command.shape.name}: {wait.latency * 1e3:.0f} ms a reply, {wait.in_flight} in flight"
    yield Figure(f"{name}, plain", plain.wall, "s")
    yield at_most(
        "... against plain, wall",
        ours.beyond(command.start_up).wall / plain.wall,
        "times",
        wait.limit,
    )


def _score(
    folder: Path, tasks: Path, url: str, in_flight: int = IN_FLIGHT, again: bool = False
) -> list[Spent]:
    """Score tasks with a cache that is new, and `again` with the same cache; return what each run took."""
    model = f"openai-compatible:{url}#tiny"
    config = {"model": model, "evaluators": ["criteria"], "calls": {"concurrency": in_flight}}
    with tempfile.TemporaryDirectory(dir=folder) as place:
        file = Path(place, "jury.yaml")
        file.write_text(json.dumps(config))
        command = ["score", str(tasks), "--config", str(file), "--out"]
        names = ("cold", "warm")[: 1 + again]
        return [
            _run([*command, f"{place}/{name}"], {"JURYGRAPH_CACHE": f"{place}/cache"})
            for name in names
        ]


def _run(arguments: Sequence[str], environment: Mapping[str, str]) -> Spent:
    """Run jurygraph; raise RuntimeError unless it ends well, with every question judged."""
    start = perf_counter()
    process = subprocess.Popen(
        [str(Path(sys.executable).with_name("jurygraph")), *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"jurygraph {' '.join(arguments)} ended with {process.returncode}")
    return Spent(used.ru_utime + used.ru_stime, perf_counter() - start)


async def plain_calls(url: str, command: Command, in_flight: int = IN_FLIGHT) -> Spent:
    """Make as many calls, all with the same body; replies are read and dropped."""
    numbers = iter(range(command.calls))
    headers = {"Content-Type": "application/json"}

    async def some(session: aiohttp.ClientSession) -> None:
        for _ in numbers:
            async with session.post(
                f"{url}/chat/completions", data=command.body, headers=headers
            ) as response:
                await response.read()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=in_flight)) as session:
        cpu, wall = process_time(), perf_counter()
        await asyncio.gather(*(some(session) for _ in range(in_flight)))
        return Spent(process_time() - cpu, perf_counter() - wall)


def write_tasks(path: Path, questions: int, criteria: int = 1, group: int = GROUP) -> Path:
    """Write tasks with this number of criteria and responses each, enough for all questions."""
    draw = random.Random(criteria)
    criteria_lines = [
        {"id": f"c{place}", "text": f"It says what is asked in point {place}.", "weight": 1.0}
        for place in range(criteria)
    ]
    tasks = [
        {
            "id": f"t{number}",
            "query": f"Write a letter about meeting number {number}, with the day, the place and the price.",
            "rubric": {"criteria": criteria_lines},
            "responses": [
                {
                    "id": f"t{number}/{place}",
                    "text": f"{QUOTED} {' '.join(draw.choices(WORDS, k=200))}",
                }
                for place in range(group)
            ],
        }
        for number in range(questions // criteria // group)
    ]
    path.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return path


def _peer_seconds(folder: Path, url: str, files: Sequence[Path]) -> list[float] | list[None]:
    """Return the seconds of CPU a question that autorubric takes for the same files, in an environment of its own.

    Where it cannot be installed, there are none.
    """
    python = python_with(PEER, folder)
    if python is None:
        return [None] * len(files)
    script = Path(__file__).with_name("autorubric_peer.py")
    command = [str(python), str(script), url, str(IN_FLIGHT), str(ROUNDS), *map(str, files)]
    finished = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""}
    )
    return [float(seconds) for seconds in finished.stdout.splitlines()[-1].split()]
