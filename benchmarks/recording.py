"""Groups scored from Python, recorded and not: the rate by code alone, the rate with a judge, and the memory.

By code alone is the worst case. The judge replies in .1 s, 64 requests at once, as in `benchmarks tail`; one that is so
fast that the processor is the limit (20 ms) loses a fifth, because its calls are stored as well.
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

BY_CODE, BY_JUDGE, ROUNDS = 3_000, 1_500, 3
MANY = 20_000
TASKS = 500
LATENCY = 0.1  # seconds


class SteadyJudge(ScriptedJudge):
    async def complete(self, request: Request, timeout: float) -> Reply:
        await asyncio.sleep(LATENCY)
        return await super().complete(request, timeout)


def measure() -> Iterator[Figure]:
    code: dict[str, Any] = {"evaluators": ["maths.accuracy"]}
    _seconds(code, MANY // 10, True)
    before = _peak_memory()
    _seconds(code, MANY, True)
    more = _peak_memory() - before
    yield at_most(f"memory for {MANY:,} recorded groups, beside a tenth", more, "MB more", 40.0)
    calls = {"concurrency": 64, "cache": False}
    judge = {"model": SteadyJudge({"": True}), "evaluators": [jg.criteria(["It is kind."])]}
    for name, settings, groups in (
        ("by code alone", code, BY_CODE),
        ("with a judge", {**judge, "calls": calls}, BY_JUDGE),
    ):
        ratios = [
            _seconds(settings, groups, False) / _seconds(settings, groups, True)
            for _ in range(ROUNDS)
        ]
        label = f"recorded beside not recorded, {name}"
        if settings is code:  # what is stored takes as long as what is computed
            yield Figure(label, median(ratios), "of the rate")
        else:
            yield at_least(label, median(ratios), "of the rate", 0.9)


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
