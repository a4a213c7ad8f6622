"""Overlap of what two raters each rate high."""

from itertools import permutations

import numpy as np
import pytest

from jurygraph.inference.selections import jaccard_above_median, jaccard_by_chance


def test_jaccard_compares_what_each_rater_rates_above_the_own_median() -> None:
    """Medians 2.5, 2.5 and 3: above are items 2 and 3; 1 and 3; none of the third rater's, who likes all alike."""
    ratings = [[1, 2, 3, 4], [1, 5, 0, 4], [3, 3, 3, 3], [np.nan, 0, 1, 2]]
    found = jaccard_above_median(ratings, least=3)
    assert found[0, 1] == found[1, 0] == 1 / 3
    assert found[0, 2] == 0.0
    assert np.isnan(found[2, 2])
    assert found[0, 3] == 1 / 2  # median 1 of three items: the last alone is above
    assert np.isnan(jaccard_above_median(ratings, least=4)[0, 3])


def test_the_jaccard_of_chance_is_the_mean_over_all_orders_of_the_items() -> None:
    ratings = np.array([[1, 2, 3, 4, 5], [5, 1, 4, 0, 0]], dtype=np.float64)
    every = [jaccard_above_median([ratings[0], list(order)], least=5)[0, 1] for order in permutations(ratings[1])]
    assert jaccard_by_chance(ratings, least=5)[0, 1] == pytest.approx(np.mean(every), abs=1e-12)
