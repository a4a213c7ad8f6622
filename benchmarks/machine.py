"""The cost of the state machines alone: groups of 8, three waves, evaluators that do nothing."""

import asyncio
import gc
import statistics
from itertools import pairwise
from time import process_time

from benchmarks.figure import Figure, at_most
from jurygraph import Evaluator, Group, Jury, Response, Task
from jurygraph.agents.functions import REGISTERED
from jurygraph.agents.roles import EvaluatorInput

GROUPS, SIZE, ROUNDS = 200, 8, 5
WAVES = ("first", "second", "third")


class Constant(Evaluator):
    """Scores everything 0.5."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def answer(self, inputs: EvaluatorInput) -> float:
        return 0.5


def measure() -> list[Figure]:
    """CPU milliseconds a response, in all of the process, the median of five rounds; and a task, to prepare."""
    REGISTERED.update({name: Constant(name) for name in WAVES})
    with Jury.from_config(_config()) as jury:
        prepared, scored = asyncio.run(_rounds(jury))
    return [
        at_most("score, decide included, a response", statistics.median(scored), "ms CPU", 0.6),
        Figure("score, the best round", min(scored), "ms CPU"),
        Figure("prepare, a task", prepared, "ms CPU"),
    ]


def _config() -> dict[str, object]:
    """Three waves, each gated on the one before it."""
    gates = {later: {"question": earlier, "threshold": 0.1} for earlier, later in pairwise(WAVES)}
    return {
        "evaluators": [{"use": name, "when": gates.get(name)} for name in WAVES],
        "components": {name: {"inputs": {name: {"verdicts_of": name, "if_skipped": "zero"}}} for name in gates},
        "reward": {"first": 1.0, "second": 0.5, "third": -0.2},
    }


async def _rounds(jury: Jury) -> tuple[float, list[float]]:
    tasks = [Task(id=f"task-{i}", query="How much is 6 x 7?") for i in range(GROUPS)]
    start = process_time()
    plans = [await jury.aprepare(task) for task in tasks]
    prepared = (process_time() - start) / GROUPS * 1e3
    texts = [f"6 x 7 = {k}. " * 20 for k in range(SIZE)]
    groups = [
        Group(task, [Response(id=f"{task.id}/{k}", text=text) for k, text in enumerate(texts)], plan)
        for task, plan in zip(tasks, plans, strict=True)
    ]
    gc.collect()
    gc.freeze()
    scored = []
    for _ in range(ROUNDS):
        start = process_time()
        async for _traces in jury.ascore_many(groups):
            pass
        scored.append((process_time() - start) / GROUPS / SIZE * 1e3)
    return prepared, scored
