"""Paired differences of two runs over whole tasks: means with intervals, sign-flip tests, rank correlations."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from jurygraph.arrays import Floats, Ints
from jurygraph.inference.clusters import Estimate, effective_size, interval_among, ratio_interval
from jurygraph.inference.equivalence import detectable_difference
from jurygraph.inference.sign_flips import flippable_sums, holm, sign_flip_p
from jurygraph.runs.reports.comparison.pairing import PairedRewards, subtract

_RANKED_DECIMALS = 12
_LARGEST_RANKED = 1e200


class Difference(NamedTuple):
    """Paired values of A and B: their number, their means, the mean of B - A with its interval, and its p-value.

    All but the numbers are None without a pair. The p-value is None where the mean of no task changed.
    """

    n: int
    changed_tasks: int
    mean_a: float | None
    mean_b: float | None
    estimate: Estimate | None
    p: float | None

    @property
    def tasks(self) -> int:
        """The number of tasks that the pairs belong to."""
        return 0 if self.estimate is None else self.estimate.clusters

    def fields(self, rows: int = 1) -> dict[str, Any]:
        """Return the fields of a `PairedDifference`, without the adjusted p-value; its interval is one of `rows`."""
        estimate = self.estimate
        low, high = (None, None) if estimate is None else interval_among(estimate, max(1, rows))
        return {
            "n": self.n,
            "tasks": self.tasks,
            "changed_tasks": self.changed_tasks,
            "mean_a": self.mean_a,
            "mean_b": self.mean_b,
            "mean_delta": None if estimate is None else estimate.value,
            "mean_delta_low": low,
            "mean_delta_high": high,
            "mean_delta_p": self.p,
        }


def paired_difference(a: Floats, b: Floats, tasks: Ints) -> Difference:
    """Return the mean difference of paired values [n], with whole tasks as independent units."""
    if not len(a):
        return Difference(0, 0, None, None, None, None)
    sums, sizes = sum_by_task(subtract(b, a), tasks)
    changed = len(flippable_sums(sums))
    return Difference(len(a), changed, fmean(a), fmean(b), ratio_interval(sums, sizes), sign_flip_p(sums))


def adjusted_fields(differences: Sequence[Difference]) -> list[dict[str, Any]]:
    """Return the fields of the rows of one table, whose p-values and intervals allow for the number of tests."""
    p_values = [difference.p for difference in differences]
    tests = len(p_values) - p_values.count(None)
    return [
        {**difference.fields(tests), "holm_p": p} for difference, p in zip(differences, holm(p_values), strict=True)
    ]


def sum_by_task(values: Floats | Ints, tasks: Ints) -> tuple[Floats, Ints]:
    """Return the sum and the number of the values of each task that has some."""
    sizes = np.bincount(tasks)
    sums = np.bincount(tasks, values).astype(np.float64)
    return sums[sizes > 0], sizes[sizes > 0]


def sum_passes(rewards: PairedRewards, passing: float) -> Floats:
    """Return the gained less the lost passes of each task, which the test of passes flips."""
    return sum_by_task(rewards.pass_changes(passing), rewards.tasks)[0]


def reward_statistics(rewards: PairedRewards, difference: Difference, passes: Floats, passing: float) -> dict[str, Any]:
    """Return the figures of the rewards; `difference` is that of all of them, `passes` has the sums of `sum_passes`."""
    deltas = rewards.deltas
    tasks = rewards.tasks
    estimate = difference.estimate
    gained = rewards.pass_changes(passing)
    return {
        **difference.fields(),
        "mean_delta_error": None if estimate is None else estimate.error,
        "effective_size": effective_size(deltas, tasks),
        "detectable_difference": None if estimate is None else detectable_difference(estimate),
        "median_delta": float(np.median(deltas)) if len(deltas) else None,
        "passed_a_only": int((gained < 0).sum()),
        "passed_b_only": int((gained > 0).sum()),
        "pass_p": sign_flip_p(passes),
        **_rank_correlations(rewards.a, rewards.b, tasks),
    }


def _rank_correlations(a: Floats, b: Floats, tasks: Ints) -> dict[str, Any]:
    """Return the mean of tau-b over the tasks in which neither side is constant, and the number of these tasks.

    Over all responses it would also reward a ranking of easy tasks above hard ones.
    """
    a = _round_for_ranks(a)
    b = _round_for_ranks(b)
    order = np.argsort(tasks, kind="stable")
    ends = np.cumsum(np.bincount(tasks))[:-1]
    pairs = zip(np.split(a[order], ends), np.split(b[order], ends), strict=True)
    within = [_kendall(x, y) for x, y in pairs if _can_rank(x, y)]
    return {"kendall_within": round(fmean(within), 12) if within else None, "kendall_tasks": len(within)}


def _round_for_ranks(values: Floats) -> Floats:
    """Return values with 12 decimals, so that rounding errors are ties; beyond 1e200 they would overflow, and tie."""
    return values.clip(-_LARGEST_RANKED, _LARGEST_RANKED).round(_RANKED_DECIMALS)


def _can_rank(a: Floats, b: Floats) -> bool:
    return len(a) > 1 and bool(np.ptp(a)) and bool(np.ptp(b))


def _kendall(a: Floats, b: Floats) -> float:
    from scipy import stats

    return round(float(stats.kendalltau(a, b, variant="b").statistic), 12)
