"""MACRM's rule-based reward on real GSM8K solutions: what it costs beside a training step, recipe by recipe.

The paper tells of 5 ms a training step (Table 6). Here it is CPU a response, from plan to trace, of this process; the
worker that compares answers has its own.
"""

import asyncio
import gc
from pathlib import Path
from time import process_time

from benchmarks.figure import Figure, at_most
from jurygraph import Jury
from jurygraph.sources import read_tasks

ROOT = Path(__file__).parent.parent
TASKS = ROOT / "examples" / "maths" / "tasks.jsonl"
RECIPES = {
    "five rules (examples/maths/jury.yaml)": ROOT / "examples" / "maths" / "jury.yaml",
    "two agents (macrm-vanilla-2)": {"preset": "macrm-vanilla-2"},
    "three agents (macrm-vanilla-3)": {"preset": "macrm-vanilla-3"},
    "four agents, with contrasts (macrm-vanilla-4)": {"preset": "macrm-vanilla-4"},
}
LIMIT = 5.0


def measure() -> list[Figure]:
    """CPU a response, for each recipe."""
    return [at_most(name, _cpu(recipe), "ms CPU", LIMIT) for name, recipe in RECIPES.items()]


def _cpu(recipe: Path | dict[str, str]) -> float:
    """Milliseconds of CPU a response: the better of two passes over 400 solutions."""
    with Jury.from_config(recipe) as jury:
        return asyncio.run(_best(jury))


async def _best(jury: Jury) -> float:
    return min([await _scored(jury) for _ in range(2)])


async def _scored(jury: Jury) -> float:
    groups = [(task, responses, await jury.aprepare(task)) for task, responses in read_tasks(TASKS)]
    gc.collect()
    gc.freeze()  # as the command does
    start, count = process_time(), 0
    async for traces in jury.ascore_all(groups):
        count += len(traces)
    return (process_time() - start) / count * 1e3
