"""The cost of the state machines alone: three waves, evaluators that do nothing, and LangGraph's share of it.

The share is the difference from the same nodes called directly, in alternated rounds. With evaluators that do something
it is smaller.
"""

import asyncio
import gc
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from time import process_time
from typing import NamedTuple
from unittest.mock import patch

from benchmarks.direct_graph import DirectGraph
from benchmarks.figure import Figure, at_most
from jurygraph import Evaluator, Group, Jury, Response, Task
from jurygraph.agents.roles import EvaluatorInput
from jurygraph.graphs import prepare_graph, score_graph

GROUPS, SIZES, ROUNDS = 200, (8, 1), 5
WAVES = ("first", "second", "third")


class Spent(NamedTuple):
    """Milliseconds of CPU: to prepare, a task, and to score, a response."""

    prepare: float
    score: float


class Constant(Evaluator):
    """Scores everything 0.5."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def answer(self, inputs: EvaluatorInput) -> float:
        return 0.5


class Inline(Constant):
    """Does so in the loop, as code that takes microseconds."""

    runs_inline = True

    def answer(self, inputs: EvaluatorInput) -> float:  # type: ignore[override]
        return 0.5


class InThread(Inline):
    """Does so in a thread, as a plain function."""

    runs_inline = False


def measure() -> Iterator[Figure]:
    """CPU of the process, the median of five rounds; of shares, the least of both ways."""
    with Jury.from_config(_config()) as jury:
        yield Figure("prepare, a task alone", asyncio.run(_prepare_alone(jury)), "ms CPU")
        yield from _figures_of_one_call()
        for size in SIZES:
            name = f"groups of {size}" if size > 1 else "one response a task"
            rounds = [(_spend(jury, size), _spend_directly(jury, size)) for _ in range(ROUNDS)]
            score = [graph.score for graph, _ in rounds]
            median, limit = statistics.median(score), 0.6
            figure = f"{name}: score, decide included, a response"
            yield (
                at_most(figure, median, "ms CPU", limit)
                if size > 1
                else Figure(figure, median, "ms CPU")
            )
            yield Figure("... the best round", min(score), "ms CPU")
            yield Figure(
                "... LangGraph's share", _share(score, [one.score for _, one in rounds]), "%"
            )
            prepare = [graph.prepare for graph, _ in rounds]
            yield Figure("... prepare in batches, a task", statistics.median(prepare), "ms CPU")
            yield Figure(
                "... LangGraph's share", _share(prepare, [one.prepare for _, one in rounds]), "%"
            )


def _share(whole: Sequence[float], direct: Sequence[float]) -> float:
    return 100 * (1 - min(direct) / min(whole))


def _config() -> dict[str, object]:
    """Three waves, each gated on the one before it."""
    gates = {later: {"question": earlier, "threshold": 0.1} for earlier, later in pairwise(WAVES)}
    return {
        "evaluators": [{"use": Constant(name), "when": gates.get(name)} for name in WAVES],
        "components": {
            name: {"inputs": {name: {"verdicts_of": name, "if_skipped": "zero"}}} for name in gates
        },
        "reward": {"first": 1.0, "second": 0.5, "third": -0.2},
    }


async def _prepare_alone(jury: Jury) -> float:
    tasks = _tasks()
    start = process_time()
    for task in tasks:
        await jury.aprepare(task)
    return (process_time() - start) / len(tasks) * 1e3


def _figures_of_one_call() -> Iterator[Figure]:
    """Yield the cost of one `ascore` with one evaluator by code, planning included, and its ratio to the bare nodes."""
    for evaluator in (Inline("inline"), InThread("in a thread")):
        with Jury(evaluators=[evaluator]) as jury:
            asyncio.run(_score_alone(jury))
            rounds = []
            for _ in range(ROUNDS):
                whole = asyncio.run(_score_alone(jury))
                with _called_directly():
                    rounds.append((whole, asyncio.run(_score_alone(jury))))
        whole, direct = map(min, zip(*rounds, strict=True))
        yield Figure(f"ascore, one response by code, {evaluator.name}", whole, "ms CPU")
        yield Figure("... against the nodes called directly", whole / direct, "times")


async def _score_alone(jury: Jury) -> float:
    tasks = _tasks()
    start = process_time()
    for task in tasks:
        await jury.ascore(task, ["6 x 7 = 42."])
    return (process_time() - start) / len(tasks) * 1e3


def _tasks() -> list[Task]:
    return [Task(id=f"task-{i}", query="How much is 6 x 7?") for i in range(GROUPS)]


def _spend(jury: Jury, size: int) -> Spent:
    """Prepare and score groups of this size."""
    return asyncio.run(_prepare_and_score(jury, size))


def _spend_directly(jury: Jury, size: int) -> Spent:
    """Prepare and score groups of this size without LangGraph."""
    with _called_directly():
        return _spend(jury, size)


@contextmanager
def _called_directly() -> Iterator[None]:
    """Call the nodes of both graphs without LangGraph."""
    prepare = DirectGraph(prepare_graph.build())
    score = DirectGraph(score_graph.build())
    with (
        patch.object(prepare_graph, "build", lambda: prepare),
        patch.object(score_graph, "build", lambda: score),
    ):
        yield


async def _prepare_and_score(jury: Jury, size: int) -> Spent:
    tasks = _tasks()
    texts = [f"6 x 7 = {k}. " * 20 for k in range(size)]
    start = process_time()
    plans = [plan async for plan in jury.aprepare_many((task, None) for task in tasks)]
    prepared = process_time() - start
    groups = [
        Group(
            task, [Response(id=f"{task.id}/{k}", text=text) for k, text in enumerate(texts)], plan
        )
        for task, plan in zip(tasks, plans, strict=True)
    ]
    gc.collect()
    gc.freeze()
    start = process_time()
    async for _traces in jury.ascore_many(groups):
        pass
    return Spent(prepared / GROUPS * 1e3, (process_time() - start) / GROUPS / size * 1e3)
