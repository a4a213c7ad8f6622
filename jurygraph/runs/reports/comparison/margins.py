"""Non-inferiority as a condition of `--gate`: `no_worse_than=0.02`."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from jurygraph.errors import InputError
from jurygraph.inference.clusters import Estimate
from jurygraph.inference.equivalence import ONE_SIDED, lowest_value, needed_clusters, no_worse_p
from jurygraph.messages import did_you_mean, shorten
from jurygraph.runs.reports.comparison.figures import Comparison, ComparisonStatistics, MarginTest
from jurygraph.runs.reports.gate import NUMBER, Threshold, parse_threshold, split_conditions

NO_WORSE = "no_worse_than"
_MARGIN = re.compile(rf"\s*(\w+)\s*=\s*({NUMBER})\s*", re.ASCII)
_EXAMPLE = '"mean_delta>-0.01", "mean_delta_low>=-0.02, flips<=3" or "no_worse_than=0.02"'


class Margin(NamedTuple):
    """The largest loss that does not matter, in units of the reward, above 0: B is worse than A by less."""

    size: float


def parse_gate(text: str) -> tuple[list[Threshold], list[Margin]]:
    """Parse the conditions of a comparison: NAME OP NUMBER on its statistics, and NAME=MARGIN.

    Raises InputError for anything else, and for a margin that is not above 0.
    """
    thresholds: list[Threshold] = []
    margins: list[Margin] = []
    for part in split_conditions(text):
        margin = _parse_margin(part, text)
        if margin is None:
            thresholds.append(parse_threshold(part, text, list(ComparisonStatistics.model_fields), _EXAMPLE))
        else:
            margins.append(margin)
    return thresholds, margins


def _parse_margin(part: str, gate: str) -> Margin | None:
    """Return the margin of a condition; None if it is a threshold on a statistic."""
    name = next(iter(re.findall(r"\w+", part)), "")
    match = _MARGIN.fullmatch(part)
    if name != NO_WORSE:
        hint = did_you_mean(name, [NO_WORSE]) if match else None
        if hint and name not in ComparisonStatistics.model_fields:
            raise InputError(f"gate {shorten(gate)!r}: unknown condition {shorten(name)!r}; {hint}")
        return None
    if match is None:
        problem = f"{shorten(part.strip())!r} is not a condition; {name} takes a margin, as in {name}=0.02"
        raise InputError(f"gate {shorten(gate)!r}: {problem}")
    size = float(match[2])
    if not 0.0 < size < float("inf"):
        raise InputError(f"gate {shorten(gate)!r}: the margin of {name} must be above 0 and finite, got {match[2]}")
    return Margin(size)


def check_margins(margins: Sequence[Margin], estimate: Estimate | None, largest_loss: float) -> tuple[MarginTest, ...]:
    """Return for each margin whether B is shown to be no worse, where one task can lose `largest_loss`."""
    return tuple(_test_margin(margin.size, estimate, largest_loss) for margin in margins)


def tasks_for_bound(threshold: Threshold, comparison: Comparison, largest_loss: float) -> int | None:
    """Return how many unchanged tasks would show a missed lower bound of the mean difference that has no interval.

    None for other conditions, for a bound that no number of unchanged tasks shows, and with a single task.
    """
    is_lower_bound = threshold.name == "mean_delta_low" and threshold.sign in (">", ">=") and threshold.bound < 0.0
    if not is_lower_bound or comparison.mean_delta is None or comparison.tasks < 2:
        return None
    estimate = Estimate(comparison.mean_delta, None, None, 0.0, comparison.tasks)
    return needed_clusters(estimate, -threshold.bound, largest_loss)


def _test_margin(margin: float, estimate: Estimate | None, largest_loss: float) -> MarginTest:
    p = None
    lowest = None
    needed = None
    if estimate is not None and estimate.clusters > 1:
        p = no_worse_p(estimate, margin, largest_loss)
        lowest = lowest_value(estimate, largest_loss)
        needed = needed_clusters(estimate, margin, largest_loss)
    return MarginTest(
        name=NO_WORSE,
        margin=margin,
        holds=p is not None and p < ONE_SIDED,
        p=p,
        lowest=lowest,
        largest_loss=largest_loss,
        needed_tasks=needed,
    )
