"""Kappa, alpha and Jaccard: equal to statsmodels, covering in simulations, and known where all labels agree."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa

from jurygraph.aggregation.agreement import cohen_kappa, kappa_interval, krippendorff_alpha
from jurygraph.errors import PlanError
from jurygraph.inference.agreement import (
    MeasurementLevel,
    alphas_leaving_out_clusters,
    jaccard_above_median,
    jaccard_by_chance,
    jaccard_excess,
    kappa,
    kappa_estimate,
    label_table,
)
from jurygraph.inference.clusters import t_quantile, wilson

LABELS = np.arange(4.0)
DISTANCES = {
    None: 1.0 - np.eye(4),
    "linear": np.abs(LABELS[:, None] - LABELS),
    "quadratic": (LABELS[:, None] - LABELS) ** 2,
}
tables = st.lists(st.integers(0, 9), min_size=16, max_size=16).map(
    lambda cells: np.array(cells).reshape(4, 4)
)


@given(tables, st.sampled_from([None, "linear", "quadratic"]))
def test_the_value_equals_statsmodels(table: np.ndarray, weights: str | None) -> None:
    """For plain, linear and quadratic weights."""
    distances = DISTANCES[weights]
    value = kappa(table, distances) if table.any() else math.nan
    if math.isnan(value):
        return
    # its z-value is 0 / 0 where the variance is 0
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = cohens_kappa(table, wt=weights)
    assert value == pytest.approx(expected.kappa, abs=1e-12)


def test_labels_at_uneven_steps_count_by_their_numbers() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (2, 40))
    steps = np.array([1.0, 2.0, 5.0])
    table = label_table(codes[0], codes[1], 3)
    for weights in ("linear", "quadratic"):
        expected = cohens_kappa(table, weights=steps, wt=weights).kappa
        assert cohen_kappa(steps[codes[0]], steps[codes[1]], weights) == pytest.approx(
            expected, abs=1e-12
        )


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 5)), min_size=2, max_size=40
    )
)
def test_the_error_is_the_jackknife_over_tasks(items: list[tuple[int, int, int]]) -> None:
    """Cluster by cluster, with kappa computed anew; the interval contains kappa and stays within [-1, 1]."""
    first, second, tasks = (np.array(column) for column in zip(*items, strict=True))
    found = kappa_interval(first, second, "linear", tasks=tasks)
    value = cohen_kappa(first, second, "linear")
    if found is None:
        assert math.isnan(value)
        return
    without = [
        cohen_kappa(first[tasks != one], second[tasks != one], "linear")
        if (tasks != one).any()
        else math.nan
        for one in np.unique(tasks)
    ]
    if found.error is None:
        constant = len(set(first)) == 1 or len(set(second)) == 1
        assert constant or len(without) < 2 or any(map(math.isnan, without))
        return
    changes = np.array(without) - value
    if (first != second).any() and len(without) > 6:
        assert found.error**2 == pytest.approx(
            (1 - 1 / len(without)) * np.sum(changes**2), abs=1e-9
        )
    assert -1.0 <= found.low <= value + 1e-12
    assert value - 1e-12 <= found.high <= 1.0


def test_full_agreement_has_an_interval_of_positive_width() -> None:
    """The disagreement of 20 items is Wilson's for 0 of 20; of 5 tasks with 4 items each, for 0 of 5."""
    labels = [0, 1, 1, 0] * 5
    found = kappa_interval(labels, labels)
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(1.0 - wilson(0, 20, t_quantile(19))[1] / 0.5)
    together = kappa_interval(labels, labels, tasks=np.repeat(range(5), 4))
    assert together.low == pytest.approx(1.0 - wilson(0, 5, t_quantile(4))[1] / 0.5)


def test_without_a_second_label_or_task_there_is_no_interval() -> None:
    assert kappa_interval([1, 1], [1, 1]) is None
    assert kappa_interval([0, 1, 0], [0, 1, 1], tasks=["a", "a", "a"])[1:] == (None, None, None, 1)
    # without task 2 only one label is left
    alone = kappa_interval([0, 0, 1, 0], [0, 0, 0, 1], tasks=[1, 1, 2, 2])
    assert alone[1:] == (None, None, None, 2)
    assert kappa_interval([0, 1, 0], [0, 0, 0]) == (0.0, None, None, None, 3), (
        "one annotator never varies"
    )


@pytest.mark.parametrize(("size", "true"), [(20, 0.0), (20, 0.8), (50, 0.4)])
def test_the_interval_covers_in_small_samples(size: int, true: float) -> None:
    """500 samples of three labels with quadratic weights."""
    rng = np.random.default_rng(5)
    shares = np.array([0.4, 0.35, 0.25])
    cells = true * np.diag(shares) + (1.0 - true) * np.outer(shares, shares)
    drawn = rng.choice(9, size=(500, size), p=cells.ravel())
    distances = DISTANCES["quadratic"][:3, :3]
    covered = 0
    for first, second in zip(drawn // 3, drawn % 3, strict=True):
        found = kappa_estimate(first, second, distances, np.arange(size))
        covered += found.low <= true <= found.high
    assert covered / 500 >= 0.93


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": "cubic"}, "weights is 'cubic': one of equal, linear, quadratic is needed"),
        ({"weights": "linear"}, "linear weights need numbers, and the labels are a, b"),
        ({"tasks": ["t"]}, "tasks has shape (1,), and there are 2 items: give each item its task"),
    ],
)
def test_an_argument_that_does_not_fit_is_named(arguments: dict, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        kappa_interval(["a", "b"], ["a", "b"], **arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alpha_is_given_of_all_items_and_without_each_cluster(level: MeasurementLevel) -> None:
    rng = np.random.default_rng(0)
    positions = np.array([-1.0, 0.0, 2.0, 5.0])
    first, second = rng.integers(0, 4, (2, 60))
    clusters = rng.integers(0, 3, 60)
    counts = np.eye(4)[first] + np.eye(4)[second]
    expected = [krippendorff_alpha(positions[[first, second]], level)]
    for cluster in range(3):
        kept = clusters != cluster
        expected.append(krippendorff_alpha(positions[[first[kept], second[kept]]], level))
    found = alphas_leaving_out_clusters(counts, positions, level, clusters)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


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
    every = [
        jaccard_above_median([ratings[0], list(order)], least=5)[0, 1]
        for order in permutations(ratings[1])
    ]
    assert jaccard_by_chance(ratings, least=5)[0, 1] == pytest.approx(np.mean(every), abs=1e-12)
    many = np.array([np.arange(3000) % 3, np.arange(3000) % 2], dtype=np.float64)
    overlap = np.arange(1001)
    shares = overlap / (1000 + 1500 - overlap)
    exact = float(stats.hypergeom.pmf(overlap, 3000, 1500, 1000) @ shares)
    assert jaccard_by_chance(many)[0, 1] == pytest.approx(exact, abs=1e-12), "of likely overlaps"


def test_the_excess_of_jaccard_is_a_jackknife_over_clusters() -> None:
    """Two raters who select the same 24 of 48 items: 1 less what chance gives, and so without any of the groups."""
    ratings = np.array([np.arange(48) % 2, np.arange(48) % 2], dtype=np.float64)
    found = jaccard_excess(ratings, np.arange(48) // 4)
    assert found is not None
    assert found.clusters == 12
    assert found.value == pytest.approx(1.0 - jaccard_by_chance(ratings)[0, 1])
    assert jaccard_excess(ratings, np.arange(48) // 4, least=49) is None
    noisy = np.random.default_rng(7).normal(size=(3, 200)) + np.random.default_rng(8).normal(
        size=200
    )
    excess = jaccard_excess(noisy, np.arange(200))
    assert excess is not None
    assert excess.low is not None
    assert 0.0 < excess.low < excess.value
