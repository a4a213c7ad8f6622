"""Notes of a comparison: other differences of the runs, and limits of the figures."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np

from jurygraph.inference.clusters import LEVEL, Estimate, means_differ
from jurygraph.inference.sign_flips import least_p
from jurygraph.runs.reports.comparison.pairing import Side
from jurygraph.runs.store.header import Header, changes, format_value
from jurygraph.runs.store.packing import ERASED

_FEW_TASKS = 20
_MAX_SETTINGS = 10
_SETTINGS_WITHOUT_EFFECT = ("config.calls.cache", "config.calls.record", "config.calls.key", "config.calls.concurrency")
_SIGNIFICANT = 1.0 - LEVEL


def run_notes(a: Side, b: Side, ids: Sequence[str], unequal_samples: int, judged_both: int) -> Iterator[str]:
    """Yield what differs between the runs besides rewards and verdicts."""
    shared = a.tasks.keys() & b.tasks.keys()
    only_a = len(a.tasks) - len(shared)
    only_b = len(b.tasks) - len(shared)
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


def setting_notes(a: Header, b: Header) -> Iterator[str]:
    """Yield which settings, files and versions differ between two runs."""
    parts = ("tasks", "responses", "config", "model", "evaluators", "derivers", "combiners", "domain")
    in_run_a = a.model_dump(mode="json", include=set(parts))
    in_run_b = b.model_dump(mode="json", include=set(parts))
    differing = [
        f"{key.removeprefix('config.')}: {format_value(in_a)} in A, {format_value(in_b)} in B"
        for key, in_a, in_b in changes(in_run_a, in_run_b)
        if not key.startswith(_SETTINGS_WITHOUT_EFFECT) and ERASED not in (in_a, in_b)
    ]
    yield from (f"the runs differ in {each}" for each in differing[:_MAX_SETTINGS])
    if len(differing) > _MAX_SETTINGS:
        yield f"the runs differ in {len(differing) - _MAX_SETTINGS} more settings"


def failure_notes(a: Side, b: Side, ids: Sequence[str]) -> Iterator[str]:
    """Yield whether the responses that failed in one run are others than the rest, by their rewards in the other."""
    for failed, judged in ((a, b), (b, a)):
        is_failed = np.array([math.isnan(failed.responses[name].reward) for name in ids], dtype=np.bool_)
        rewards = np.array([judged.responses[name].reward for name in ids], dtype=np.float64)
        lost = rewards[is_failed & ~np.isnan(rewards)]
        kept = rewards[~is_failed & ~np.isnan(rewards)]
        if means_differ(lost, kept):
            yield (
                f"means and tests mislead: the {len(lost)} responses that failed in {failed.name} alone have a mean of "
                f"{lost.mean():.4f} in {judged.name}, and the others one of {kept.mean():.4f}"
            )


def no_interval_problem(estimate: Estimate | None) -> str | None:
    """Return why the mean difference has no interval; None if it has one."""
    if estimate is None:
        return "no response has a reward in both runs"
    if estimate.low is not None:
        return None
    if estimate.clusters == 1:
        return "all rewards are of one task, and responses to one task are not independent draws"
    share = 1.0 - (1.0 - LEVEL) ** (1.0 / estimate.clusters)
    alike = "no task differs" if estimate.value == 0.0 else "all tasks differ equally"
    return f"{alike}, but up to {share:.1%} of all tasks may differ otherwise (95 %)"


def task_notes(estimate: Estimate | None) -> Iterator[str]:
    """Yield what the number of tasks and their differences mean for the interval of the mean."""
    problem = no_interval_problem(estimate)
    if problem is not None:
        yield f"the mean difference has no interval: {problem}"
    elif estimate is not None and estimate.clusters < _FEW_TASKS:
        rest = f"with fewer than {_FEW_TASKS}, intervals rely on task means that are nearly normal"
        yield f"only {estimate.clusters} tasks: {rest}"


def limits_of_tests(changed: Mapping[str, int], tasks: int) -> Iterator[str]:
    """Yield which tests cannot be significant, from the number of tasks of each that changed."""
    found = [name for name, count in changed.items() if count and least_p(count) > _SIGNIFICANT]
    for count, names in groupby(sorted(found, key=lambda name: -changed[name]), key=lambda name: changed[name]):
        yield (
            f"{', '.join(names)} cannot fall below .05: {count} of the {tasks} tasks changed, so the least p is "
            f"2^(1 - {count}) = {least_p(count):g}"
        )
