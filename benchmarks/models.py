"""Judging by a model, from questions to durable traces, compared with plain calls and with another package."""

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple
from unittest.mock import patch

import aiohttp

from benchmarks.figure import Figure, at_least, at_most
from benchmarks.judging_server import QUOTED, run_judging_server
from benchmarks.peer import python_with
from jurygraph import Jury, Planner
from jurygraph.models.gateway import request_size
from jurygraph.runs.workflows.scoring_session import ScoringSession
from jurygraph.sources import open_tasks

QUESTIONS, IN_FLIGHT, GROUP, ROUNDS = 1600, 64, 8, 3
THROUGH_LITELLM = 320
LATENCY = 0.1
BYTES_A_TOKEN = 4
PEER = "autorubric"
WORDS = (
    "dear friend the meeting is on monday at nine in the old town hall and costs four dollars for each of us".split()
)


class Spent(NamedTuple):
    """Seconds of this process's CPU and of wall time."""

    cpu: float
    wall: float


def measure() -> list[Figure]:
    """CPU of this process alone; the servers run in others. Plans are made before; the best of some rounds each."""
    folder = Path(tempfile.mkdtemp(prefix="jurygraph-models-"))
    try:
        with (
            run_judging_server(0.0) as instant,
            run_judging_server(0.0, logprobs=True) as telling,
            run_judging_server(LATENCY) as late,
        ):
            return _figures(folder, instant, telling, late)
    finally:
        shutil.rmtree(folder)


def _figures(folder: Path, instant: str, telling: str, late: str) -> list[Figure]:
    ones, fours = (
        write_tasks(folder / "one.jsonl", QUESTIONS),
        write_tasks(folder / "four.jsonl", QUESTIONS, criteria=4),
    )
    plain = min(asyncio.run(_plain(instant)).cpu for _ in range(ROUNDS)) / QUESTIONS * 1e3
    whole, single = _best_cold_and_warm(instant, ones)
    four_cold, four_warm = _runs(instant, fours, "cold", "warm")
    (with_logprobs,) = _runs(telling, ones, "cold")
    return [
        at_most("a question, validated, cached, durably traced", whole, "ms CPU", 0.8),
        Figure("... four criteria in a call, a call", four_cold.cpu / QUESTIONS * 4e3, "ms CPU"),
        Figure("... with 20 log probabilities a token, a question", with_logprobs.cpu / QUESTIONS * 1e3, "ms CPU"),
        Figure("plain aiohttp, nothing read, a call", plain, "ms CPU"),
        Figure("a question against a plain call", whole / plain, "times"),
        _against_the_ideal(f"{LATENCY * 1e3:.0f} ms a reply, {IN_FLIGHT} in flight, against the ideal", late, ones),
        at_least("warm cache, four criteria in a call", QUESTIONS / four_warm.wall, "verdicts/s", 3000),
        Figure("... one criterion a call", single, "verdicts/s"),
        *_one_response_a_task(folder, instant, late),
        *asyncio.run(_sent(instant, fours)),
        *_compare_with_litellm(folder, instant),
        *_compare_with_peer(folder, instant, ones, whole),
    ]


async def _sent(url: str, tasks: Path) -> list[Figure]:
    """Tokens that a model reads for a question, taking four bytes for one, and what of them a task's calls share."""
    figures = []
    for name, params in (("four criteria in a call", {}), ("... compact, without reasons", {"profile": "compact"})):
        config = {
            "model": f"openai-compatible:{url}#tiny",
            "evaluators": [{"use": "criteria", "params": params}],
            "calls": {"cache": False},
        }
        with open_tasks(tasks) as work, Jury.from_config(config) as jury:
            task, group = next(iter(work.pairs()))
            requests = await Planner(jury).aestimate_requests(task, group)
        texts = ["".join(message.content for message in request.messages) for request in requests]
        tokens = sum(map(request_size, requests)) / BYTES_A_TOKEN
        figures.append(Figure(f"tokens sent a question: {name}", tokens / (4 * len(group)), "tokens"))
    shared = _shared(texts) / BYTES_A_TOKEN
    figures.append(Figure("... of each call, shared by all calls of its task", shared, "tokens"))
    return figures


def _shared(texts: Sequence[str]) -> int:
    """Return the length of the common prefix of all texts."""
    return next((place for place, letters in enumerate(zip(*texts, strict=False)) if len(set(letters)) > 1), 0)


def _one_response_a_task(folder: Path, instant: str, late: str) -> list[Figure]:
    """Measure groups of one response, where the state machine runs once per question."""
    tasks = write_tasks(folder / "alone.jsonl", QUESTIONS, group=1)
    cold, warm = _best_cold_and_warm(instant, tasks)
    return [
        Figure("one response a task: a question", cold, "ms CPU"),
        _against_the_ideal("... against the ideal, as above", late, tasks),
        Figure("... warm cache", warm, "verdicts/s"),
    ]


def _against_the_ideal(name: str, late: str, tasks: Path) -> Figure:
    wall = min(one.wall for _ in range(ROUNDS) for one in _runs(late, tasks, "cold"))
    return at_most(name, wall / (QUESTIONS / IN_FLIGHT * LATENCY), "times", 1.25)


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
                {"id": f"t{number}/{place}", "text": f"{QUOTED} {' '.join(draw.choices(WORDS, k=200))}"}
                for place in range(group)
            ],
        }
        for number in range(questions // criteria // group)
    ]
    path.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return path


def _best_cold_and_warm(url: str, tasks: Path) -> tuple[float, float]:
    """Milliseconds of CPU a question where all are new, and verdicts a second where all are known."""
    cold, warm = zip(*(_runs(url, tasks, "cold", "warm") for _ in range(ROUNDS)), strict=True)
    return min(one.cpu for one in cold) / QUESTIONS * 1e3, QUESTIONS / min(one.wall for one in warm)


def _runs(url: str, tasks: Path, *names: str) -> list[Spent]:
    """The same questions into runs of these names, the first with a cache that is new."""
    with (
        tempfile.TemporaryDirectory(dir=tasks.parent) as folder,
        patch.dict(os.environ, JURYGRAPH_CACHE=f"{folder}/cache"),
    ):
        return [asyncio.run(score_tasks(f"openai-compatible:{url}#tiny", tasks, Path(folder) / name)) for name in names]


async def score_tasks(model: str, tasks: Path, folder: Path) -> Spent:
    """Return the time to score planned tasks into a run."""
    config = {"model": model, "evaluators": ["criteria"], "calls": {"concurrency": IN_FLIGHT}}
    with (
        Jury.from_config(config) as jury,
        open_tasks(tasks) as work,
        closing(ScoringSession(folder, jury, work)) as session,
    ):
        await session.prepare(lambda count: None)
        cpu, wall = process_time(), perf_counter()
        await session.score(lambda count: None)
        spent = Spent(process_time() - cpu, perf_counter() - wall)
        assert session.summary.failed == 0, "every question has its verdict"
        return spent


async def _plain(url: str) -> Spent:
    """As many calls with bodies of the same size, whose replies are dropped."""
    schema = {"type": "object", "properties": {"reason": {"type": "string"}, "met": {"type": "boolean"}}}
    letter = {"role": "user", "content": "x" * 2500}
    body = {"messages": [letter], "response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}
    sent, numbers = json.dumps(body).encode(), iter(range(QUESTIONS))

    async def some(session: aiohttp.ClientSession) -> None:
        for _ in numbers:
            async with session.post(f"{url}/chat/completions", data=sent) as response:
                await response.read()

    async with aiohttp.ClientSession() as session:
        cpu, wall = process_time(), perf_counter()
        await asyncio.gather(*(some(session) for _ in range(IN_FLIGHT)))
        return Spent(process_time() - cpu, perf_counter() - wall)


def _compare_with_litellm(folder: Path, url: str) -> list[Figure]:
    """Questions through litellm, and calls of litellm alone; in a process of their own, for litellm is large."""
    tasks = write_tasks(folder / "litellm.jsonl", THROUGH_LITELLM)
    command = [sys.executable, "-m", "benchmarks.litellm_peer", url, str(tasks)]
    finished = subprocess.run(command, check=True, capture_output=True, text=True)
    ours, plain = (float(one) * 1e3 for one in finished.stdout.splitlines()[-1].split())
    return [
        Figure("litellm alone, a call", plain, "ms CPU"),
        at_most("... our cost beyond litellm's own, a question", ours - plain, "ms CPU", 0.8),
    ]


def _compare_with_peer(folder: Path, url: str, tasks: Path, ours: float) -> list[Figure]:
    """The same questions by autorubric, in an environment of its own; nothing where it cannot be installed."""
    python = python_with(PEER, folder)
    if python is None:
        return []
    script = Path(__file__).with_name("autorubric_peer.py")
    command = [str(python), str(script), url, str(tasks), str(IN_FLIGHT), str(ROUNDS)]
    finished = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""})
    theirs = float(finished.stdout.splitlines()[-1]) * 1e3
    return [
        Figure(f"{PEER}, cached and not traced, a question", theirs, "ms CPU"),
        at_least(f"{PEER} against a question", theirs / ours, "times", 5.0),
    ]
