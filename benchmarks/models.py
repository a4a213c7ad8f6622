"""Judging by a model: the whole command at three shapes of tasks (`benchmarks.shapes`), and scoring alone."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter, process_time
from unittest.mock import patch

from benchmarks.figure import Figure, at_least, at_most
from benchmarks.jobs import open_job
from benchmarks.judging_server import run_judging_server
from benchmarks.shapes import IN_FLIGHT, QUESTIONS, ROUNDS, Spent, measure_shapes, write_tasks
from jurygraph import Jury, Planner
from jurygraph.models.gateway import request_byte_count
from jurygraph.sources import open_task_source

THROUGH_LITELLM = 320
BYTES_A_TOKEN = 4


def measure() -> Iterator[Figure]:
    """The servers run in processes of their own. Best of some rounds each."""
    folder = Path(tempfile.mkdtemp(prefix="jurygraph-models-"))
    try:
        with run_judging_server(0.0) as instant, run_judging_server(0.0, logprobs=True) as telling:
            yield from measure_shapes(folder, instant)
            yield from _scoring_alone(folder, instant, telling)
            yield from _compare_with_litellm(folder, instant)
    finally:
        shutil.rmtree(folder)


def _scoring_alone(folder: Path, instant: str, telling: str) -> Iterator[Figure]:
    """CPU of this process, in groups of 8; plans are made before."""
    ones = write_tasks(folder / "one.jsonl", QUESTIONS)
    fours = write_tasks(folder / "four.jsonl", QUESTIONS, criteria=4)
    cold, warm = _best_cold_and_warm(instant, ones)
    four_cold, four_warm = _runs(instant, fours, "cold", "warm")
    (with_logprobs,) = _runs(telling, ones, "cold")
    yield at_most(
        "planned before: a question, validated, cached, traced",
        cold.cpu / QUESTIONS * 1e3,
        "ms CPU",
        0.8,
    )
    yield Figure("... four criteria in a call, a call", four_cold.cpu / QUESTIONS * 4e3, "ms CPU")
    yield Figure(
        "... with 20 log probabilities a token, a question",
        with_logprobs.cpu / QUESTIONS * 1e3,
        "ms CPU",
    )
    yield at_least(
        "... warm cache, four criteria in a call", QUESTIONS / four_warm.wall, "verdicts/s", 3000
    )
    yield Figure("... warm cache, one criterion a call", QUESTIONS / warm.wall, "verdicts/s")
    yield Figure(
        "... warm cache against cold, one criterion a call", cold.wall / warm.wall, "times"
    )
    yield from asyncio.run(_sent(instant, fours))


async def _sent(url: str, tasks: Path) -> list[Figure]:
    """Tokens that a model reads for a question, taking four bytes for one, and what of them a task's calls share."""
    figures = []
    for name, params in (
        ("four criteria in a call", {}),
        ("... compact, without reasons", {"profile": "compact"}),
    ):
        config = {
            "model": f"openai-compatible:{url}#tiny",
            "evaluators": [{"use": "criteria", "params": params}],
            "calls": {"cache": False},
        }
        with open_task_source(tasks) as work, Jury.from_config(config) as jury:
            task, group = next(iter(work.pairs()))
            requests = await Planner(jury).aestimate_requests(task, group)
        texts = ["".join(message.content for message in request.messages) for request in requests]
        tokens = sum(map(request_byte_count, requests)) / BYTES_A_TOKEN
        figures.append(
            Figure(f"tokens sent a question: {name}", tokens / (4 * len(group)), "tokens")
        )
    shared = _shared(texts) / BYTES_A_TOKEN
    figures.append(Figure("... of each call, shared by all calls of its task", shared, "tokens"))
    return figures


def _shared(texts: Sequence[str]) -> int:
    """Return the length of the common prefix of all texts."""
    return next(
        (place for place, letters in enumerate(zip(*texts, strict=False)) if len(set(letters)) > 1),
        0,
    )


def _best_cold_and_warm(url: str, tasks: Path) -> tuple[Spent, Spent]:
    """Return the best of some rounds where all questions are new, and where all replies are in the cache."""
    cold, warm = zip(*(_runs(url, tasks, "cold", "warm") for _ in range(ROUNDS)), strict=True)
    return Spent.least(cold), Spent.least(warm)


def _runs(url: str, tasks: Path, *names: str) -> list[Spent]:
    """The same questions into runs of these names, the first with a cache that is new."""
    with (
        tempfile.TemporaryDirectory(dir=tasks.parent) as folder,
        patch.dict(os.environ, JURYGRAPH_CACHE=f"{folder}/cache"),
    ):
        return [
            asyncio.run(score_tasks(f"openai-compatible:{url}#tiny", tasks, Path(folder) / name))
            for name in names
        ]


async def score_tasks(model: str, tasks: Path, folder: Path) -> Spent:
    """Return the time to score planned tasks into a run."""
    config = {"model": model, "evaluators": ["criteria"], "calls": {"concurrency": IN_FLIGHT}}
    with Jury.from_config(config) as jury, open_job(folder, jury, tasks) as opened:
        scoring = await opened.plan()
        cpu, wall = process_time(), perf_counter()
        await scoring.score(lambda count: None)
        spent = Spent(process_time() - cpu, perf_counter() - wall)
        assert opened.summarize().failed == 0, "every question has its verdict"
        return spent


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
