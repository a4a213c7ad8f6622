"""Overlap of what two raters each rate high: the Jaccard similarity, and that of selections by chance.

It is the coarse agreement of "Aggregate vs. Personalized Judges": who uses a scale differently may select the same.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.arrays import Bools, Floats, as_ratings


def jaccard_above_median(ratings: ArrayLike, least: int = 10) -> Floats:
    """Return the Jaccard similarity of the items that two raters each rated above their own median, [raters, raters].

    A rater's median is that of all own ratings; the items are those that both rated. NaN for a pair with fewer than
    `least` such items, and where neither rated any of them above the own median. Two raters who select by chance do not
    have 0: if each selects half of many items, they have 1/3 (`jaccard_by_chance`).

    Args:
        ratings: [raters, items], with NaN where a rater did not rate an item.
        least: least number of items that both rated.

    Raises:
        PlanError: another shape, or an infinite number.
    """
    return _compare_selections(as_ratings(ratings), least, _jaccard)


def jaccard_by_chance(ratings: ArrayLike, least: int = 10) -> Floats:
    """Return the mean of `jaccard_above_median` if each rater selected as many items by chance, [raters, raters]."""
    return _compare_selections(as_ratings(ratings), least, _expected_jaccard)


def _compare_selections(table: Floats, least: int, similarity: Callable[[Bools, Bools], float]) -> Floats:
    given = ~np.isnan(table)
    result = np.full((len(table), len(table)), np.nan)
    medians = np.array([np.median(row[~np.isnan(row)]) if (~np.isnan(row)).any() else np.nan for row in table])
    above = table > medians[:, None]
    for first in range(len(table)):
        for second in range(first, len(table)):
            both = given[first] & given[second]
            if np.count_nonzero(both) >= max(1, least):
                result[first, second] = similarity(above[first, both], above[second, both])
                result[second, first] = result[first, second]
    return result


def _jaccard(first: Bools, second: Bools) -> float:
    either = np.count_nonzero(first | second)
    return np.count_nonzero(first & second) / either if either else np.nan


def _expected_jaccard(first: Bools, second: Bools) -> float:
    """Return the mean Jaccard of random selections of these sizes: their overlap is hypergeometric."""
    from scipy import stats  # imported lazily: every `study` command would wait for it

    larger = max(np.count_nonzero(first), np.count_nonzero(second))
    smaller = min(np.count_nonzero(first), np.count_nonzero(second))
    if not larger:
        return np.nan
    overlap = np.arange(smaller + 1)
    chances = stats.hypergeom.pmf(overlap, len(first), larger, smaller)
    return float(chances @ (overlap / (larger + smaller - overlap)))
