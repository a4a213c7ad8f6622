"""MACRM's rule-based reward on real GSM8K solutions: its cost, recipe by recipe, compared with a training step.

The paper tells of 5 ms a training step (Table 6). Here it is CPU a response, from plan to trace, of this process; the
worker that compares answers has its own.
"""

import asyncio
import gc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import process_time

from benchmarks.figure import Figure, at_most
from jurygraph import Group, Jury
from jurygraph.sources import read_tasks

ROOT = Path(__file__).parent.parent
TASKS = ROOT / "examples" / "maths" / "tasks.jsonl"
RECIPES: dict[str, Path | dict[str, str]] = {
    "five rules (examples/maths/jury.yaml)": ROOT / "examples" / "maths" / "jury.yaml",
    "two agents (macrm-vanilla-2)": {"preset": "macrm-vanilla-2"},
    "three agents (macrm-vanilla-3)": {"preset": "macrm-vanilla-3"},
    "four agents, with contrasts (macrm-vanilla-4)": {"preset": "macrm-vanilla-4"},
}
LIMIT = 5.0
PASSES = 3
WARM_UP = 10  # groups


def measure() -> list[Figure]:
    """CPU a response, for each recipe."""
    return [at_most(name, _cpu(recipe), "ms CPU", LIMIT) for name, recipe in RECIPES.items()]


def _cpu(recipe: Path | dict[str, str]) -> float:
    """Milliseconds of CPU a response: the best of three passes, each in a new process that has read none of them."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as process:
        return min(process.map(_pass, [recipe] * PASSES))


def _pass(recipe: Path | dict[str, str]) -> float:
    with Jury.from_config(recipe) as jury:
        return asyncio.run(_warm(jury))


async def _warm(jury: Jury) -> float:
    groups = [
        Group(task, responses, await jury.aprepare(task)) for task, responses in read_tasks(TASKS)
    ]
    await _scored(jury, groups[:WARM_UP])
    return await _scored(jury, groups[WARM_UP:])


async def _scored(jury: Jury, groups: list[Group]) -> float:
    gc.collect()
    gc.freeze()  # as the command does
    start, count = process_time(), 0
    async for traces in jury.ascore_many(groups):
        count += len(traces)
    return (process_time() - start) / count * 1e3
