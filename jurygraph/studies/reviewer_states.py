"""Compare the judge of each reviewer with the simplest that needs no model: the mean of the reviewer's own scores.

The question is one for each reviewer, so the reviewers are the family of the test, whatever else is compared.
"""

from collections.abc import Iterator

import numpy as np

from jurygraph.arrays import Floats
from jurygraph.inference.agreement import rank_correlation
from jurygraph.inference.clusters import (
    MIN_TESTED_ITEMS,
    Estimate,
    bonferroni_interval,
    cluster_numbers,
    mean_with_cluster_interval,
)
from jurygraph.inference.crossed import t_test_p
from jurygraph.studies.agreement import DimensionRatings
from jurygraph.studies.alternative_annotator import SIGNIFICANCE_LEVEL
from jurygraph.studies.conclusions import name_with_examples, side_of_bound
from jurygraph.studies.report import (
    FigureRows,
    Figures,
    IntervalCell,
    adjust_p_values,
    as_interval,
)
from jurygraph.studies.reviewer_tables import BASELINES_WITHOUT_MODEL


def limit_interval(
    estimate: Estimate | None, least: float, most: float, min_clusters: int = 0
) -> IntervalCell | None:
    """Return an estimate whose interval is cut off at what the scale allows. It has none where it is wider on both
    sides, and of fewer clusters than the least: it would tell nothing."""
    if estimate is None:
        return None
    value, low, high, _, clusters = estimate.within(least, most)
    if (low, high) == (least, most) or clusters < min_clusters:
        low = high = None
    return IntervalCell(value, low, high)


def compare_with_own_mean(
    part: DimensionRatings,
    judge: str,
    shots: int | None,
    errors: Floats,
    own_mean_errors: Floats,
    reviewer: int,
) -> Figures:
    """Return how far off a judge is for a reviewer, and how much nearer than the own mean, on ratings of both.

    Where no judge has a model, it is the own mean that is off. Error and gain are `Estimate`s, and the p-value is that
    of the gain for itself.
    """
    has_model = judge not in BASELINES_WITHOUT_MODEL
    gains = own_mean_errors - errors if has_model else own_mean_errors * np.nan
    errors = errors if has_model else own_mean_errors
    rows = (part.reviewer == reviewer) & ~np.isnan(errors)
    is_compared = rows & ~np.isnan(gains)
    gain = mean_with_cluster_interval(gains[is_compared], part.group[is_compared])
    rows = is_compared if gain else rows
    return {
        "subject": name_with_examples(judge, shots) if has_model else "own mean",
        "state": "alone" if has_model else "own mean",
        "error": mean_with_cluster_interval(errors[rows], part.group[rows]),
        "error_n": rows.sum(),
        "own_mean": gain and own_mean_errors[rows].mean(),
        "own_mean_gain": gain,
        "own_mean_p": t_test_p(gain) if gain and gain.clusters >= MIN_TESTED_ITEMS else None,
    }


def correlate_order(part: DimensionRatings, shifts: Floats, reviewer: int) -> IntervalCell | None:
    """Return the rank correlation of a judge with a reviewer, on all ratings that it predicts, as its error is: what is
    said of a judge must not depend on which others are compared. `shifts` [n] are how far above the scores it is."""
    rows = (part.reviewer == reviewer) & ~np.isnan(shifts)
    scores = part.score[rows]
    groups = cluster_numbers(part.group[rows])
    return as_interval(rank_correlation(scores, scores + shifts[rows], groups))


def tell_states(reviewers: FigureRows, largest: float) -> Iterator[Figures]:
    """Yield the reviewers with the state of the judge, from p-values and gains that hold for all of them together.

    There are no intervals of fewer items than are tested, and none is wider than the `largest` error that can be.
    """
    tests = sum(row["own_mean_p"] is not None for row in reviewers)
    for row in adjust_p_values(reviewers, "own_mean_p"):
        gain = row["own_mean_gain"]
        p = row["own_mean_p"]
        row["error"] = limit_interval(row["error"], 0.0, largest, MIN_TESTED_ITEMS)
        if gain is None:
            yield row
            continue
        state = "better" if gain.value > 0.0 else "worse"
        if gain.clusters < MIN_TESTED_ITEMS:
            state = "too few"
        elif p is None or p >= SIGNIFICANCE_LEVEL:
            state = f"so far {state}"
        elif state == "better" and side_of_bound(row["rank_correlation"], 0.0) != 1:
            state = "nearer"  # as a judge is that gives nearly all the same score
        wider = Estimate(gain.value, *bonferroni_interval(gain, max(tests, 1)), *gain[3:])
        together = limit_interval(wider, -largest, largest, MIN_TESTED_ITEMS)
        yield {**row, "own_mean_gain": together, "own_mean_tests": tests, "state": state}
