"""Groups scored from Python, recorded and not: the rate by code alone, the rate with judges, and the memory.

With 64 requests at once, a judge that replies in .3 s replies to 200 requests a second. One in .1 s replies to 600, so
that the processor is the limit, and each reply is stored, too: this ratio has no line.
"""

import asyncio
import resource
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import jurygraph as jg
from benchmarks.figure import Figure, at_least, at_most
from jurygraph.models.request import Reply, Request
from jurygraph.testing import ScriptedJudge

MANY, BY_CODE, BY_JUDGE, ROUNDS = 20_000, 3_000, 1_500, 3
TASKS = 500
USUAL, QUICK = 0.3, 0.1  # seconds until the reply of a judge


class SteadyJudge(ScriptedJudge):
    def __init__(self, latency: float) -> None:
        super().__init__({"": True})
        self._latency = latency

    async def complete(self, request: Request, timeout: float) -> Reply:
        await asyncio.sleep(self._latency)
        return await super().complete(request, timeout)


def measure() -> Iterator[Figure]:
    code: dict[str, Any] = {"evaluators": ["maths.accuracy"]}
    _seconds(code, MANY // 10, True)
    before = _peak_memory()
    _seconds(code, MANY, True)
    more = _peak_memory() - before
    yield at_most(f"memory for {MANY:,} recorded groups, beside a tenth", more, "MB more", 40.0)
    unit = "of the rate"
    ratio = _ratio(code, BY_CODE)
    yield at_least("recorded beside not recorded, by code alone", ratio, unit, 0.9)
    for latency in (USUAL, QUICK):
        calls = {"concurrency": 64, "cache": False}
        evaluators = [jg.criteria(["It is kind."])]
        settings = {"model": SteadyJudge(latency), "evaluators": evaluators, "calls": calls}
        ratio = _ratio(settings, BY_JUDGE)
        label = f"... by a judge that replies in {latency:g} s"
        yield (
            Figure(label, ratio, unit) if latency == QUICK else at_least(label, ratio, unit, 0.9)
        )


def _ratio(settings: dict[str, Any], groups: int) -> float:
    """Return the rate of recorded groups beside that of others: medians of rounds, of which either has the first."""
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for number in range(2 * ROUNDS):
        is_recorded = number % 4 in (1, 2)
        seconds[is_recorded].append(_seconds(settings, groups, is_recorded))
    return float(median(seconds[False]) / median(seconds[True]))


def _seconds(settings: dict[str, Any], groups: int, is_recorded: bool) -> float:
    """Return the seconds for groups of two responses, which meet their tasks again and again."""
    items = (
        (
            jg.Task(id=f"task {number % TASKS}", query="What is 2 + 2?", reference="4"),
            ["The answer is 4.", f"The answer is {number}."],
        )
        for number in range(groups)
    )
    with tempfile.TemporaryDirectory() as folder, jg.Jury(**settings) as jury:
        recording = jury.record(Path(folder) / "run") if is_recorded else nullcontext()
        with recording:
            start = perf_counter()
            for _ in jury.score_many(items):
                pass
            return perf_counter() - start


def _peak_memory() -> float:
    """Return the greatest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
