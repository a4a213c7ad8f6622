"""Notes of a comparison: other differences of the runs, and limits of the figures."""

from collections.abc import Iterator, Sequence

import numpy as np

from jurygraph.inference.clusters import LEVEL, MIN_CONSTANT, Estimate
from jurygraph.runs.reports.comparison.pairing import PairedRewards, Side

_FEW_TASKS = 20
_DECIMALS = 12  # equal rewards can differ in their last bits


def run_notes(a: Side, b: Side, ids: Sequence[str], unequal_samples: int, judged_both: int) -> Iterator[str]:
    """Yield what differs between the runs besides rewards and verdicts."""
    shared = a.tasks.keys() & b.tasks.keys()
    only_a, only_b = len(a.tasks) - len(shared), len(b.tasks) - len(shared)
    if only_a or only_b:
        yield f"the runs are of different tasks: {len(shared)} in both, {only_a} in A only, {only_b} in B only"
    for part, label in enumerate(("plans", "groups of responses, by their ids or contents,")):
        differing = sum(a.tasks[task][part] != b.tasks[task][part] for task in shared)
        if differing:
            yield f"the {label} of {differing} of the {len(shared)} tasks in both runs differ"
    renamed = sum(a.responses[name].agent != b.responses[name].agent for name in ids)
    if renamed:
        yield f"the agent of {renamed} of the {len(ids)} responses in both runs is another one in B; A's is shown"
    if unequal_samples:
        yield f"{unequal_samples} of the {judged_both} verdicts in both runs have more samples in one of them"


def no_interval_problem(estimate: Estimate | None) -> str | None:
    """Return why the mean difference has no interval; None if it has one."""
    if estimate is None:
        return "no response has a reward in both runs"
    if estimate.error is not None:
        return None
    if estimate.clusters == 1:
        return "all rewards are of one task, and responses to one task are not independent draws"
    return f"{estimate.clusters} tasks that all differ equally do not show by how much tasks vary"


def task_notes(rewards: PairedRewards, estimate: Estimate | None) -> Iterator[str]:
    """Yield what the number of tasks and their differences mean for intervals and tests."""
    problem = no_interval_problem(estimate)
    if problem is not None:
        yield f"the mean difference has no interval: {problem}"
    if estimate is None:
        return
    tasks = estimate.clusters
    if estimate.error == 0.0:
        share = 1.0 - (1.0 - LEVEL) ** (1.0 / tasks)
        yield (
            "all tasks have the same mean difference, so its interval has no width; up to "
            f"{share:.1%} of all tasks may still have another one (95 %)"
        )
    if 1 < tasks < _FEW_TASKS:
        yield f"only {tasks} tasks: with fewer than {_FEW_TASKS}, intervals rely on task means that are nearly normal"
    differing = len(np.unique(rewards.tasks[rewards.deltas.round(_DECIMALS) != 0.0]))
    if 0 < differing < MIN_CONSTANT:
        least = 2.0 ** (1 - differing)
        label = f"{differing} of the {tasks} tasks differ{'s' * (differing == 1)}"
        yield f"{label}, so no p can fall below .05: the least is 2^(1 - {differing}) = {least:g}"
