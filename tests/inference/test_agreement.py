"""Kappa and its interval: equal to statsmodels, covering in simulations, and known where all labels agree."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa

from jurygraph.aggregation.agreement import kappa_interval, weighted_kappa
from jurygraph.errors import PlanError
from jurygraph.inference.agreement import kappa, kappa_estimate, label_table
from jurygraph.inference.clusters import t_quantile
from jurygraph.inference.shares import wilson

LABELS = np.arange(4.0)
DISTANCES = {
    None: 1.0 - np.eye(4),
    "linear": np.abs(LABELS[:, None] - LABELS),
    "quadratic": (LABELS[:, None] - LABELS) ** 2,
}
tables = st.lists(st.integers(0, 9), min_size=16, max_size=16).map(lambda cells: np.array(cells).reshape(4, 4))


@given(tables, st.sampled_from([None, "linear", "quadratic"]))
def test_the_value_equals_statsmodels(table: np.ndarray, weights: str | None) -> None:
    """For plain, linear and quadratic weights."""
    distances = DISTANCES[weights]
    value = kappa(table, distances) if table.any() else math.nan
    if math.isnan(value):
        return
    with np.errstate(invalid="ignore", divide="ignore"):  # its z-value is 0 / 0 where the variance is 0
        expected = cohens_kappa(table, wt=weights)
    assert value == pytest.approx(expected.kappa, abs=1e-12)


def test_labels_at_uneven_steps_count_by_their_numbers() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (2, 40))
    steps = np.array([1.0, 2.0, 5.0])
    table = label_table(codes[0], codes[1], 3)
    for weights in ("linear", "quadratic"):
        expected = cohens_kappa(table, weights=steps, wt=weights).kappa
        assert weighted_kappa(steps[codes[0]], steps[codes[1]], weights) == pytest.approx(expected, abs=1e-12)
        words = np.array(["bad", "fair", "good"])[codes]
        in_steps = cohens_kappa(table, wt=weights).kappa
        assert weighted_kappa(*words, weights, ["bad", "fair", "good"]) == pytest.approx(in_steps, abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 5)), min_size=2, max_size=40))
def test_the_error_is_the_jackknife_over_tasks(items: list[tuple[int, int, int]]) -> None:
    """Cluster by cluster, with kappa computed anew; the interval contains kappa and stays within [-1, 1]."""
    first, second, tasks = (np.array(column) for column in zip(*items, strict=True))
    found = kappa_interval(first, second, "linear", tasks=tasks)
    value = weighted_kappa(first, second, "linear")
    if found is None:
        assert math.isnan(value)
        return
    without = [
        weighted_kappa(first[tasks != one], second[tasks != one], "linear") if (tasks != one).any() else math.nan
        for one in np.unique(tasks)
    ]
    if found.error is None:
        constant = len(set(first)) == 1 or len(set(second)) == 1
        assert constant or len(without) < 2 or any(map(math.isnan, without))
        return
    changes = np.array(without) - value
    if (first != second).any() and len(without) > 6:
        assert found.error**2 == pytest.approx((1 - 1 / len(without)) * np.sum(changes**2), abs=1e-9)
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
    alone = kappa_interval([0, 0, 1, 0], [0, 0, 0, 1], tasks=[1, 1, 2, 2])  # without task 2 only one label is left
    assert alone[1:] == (None, None, None, 2)
    assert kappa_interval([0, 1, 0], [0, 0, 0]) == (0.0, None, None, None, 3), "one annotator never varies"


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
        ({"weights": "linear"}, "linear weights need the order of the labels a, b: give labels"),
        ({"labels": ["a", "c"]}, "labels lacks 'b', which an annotator gave"),
        ({"labels": ["a", "b", "a"]}, "labels has a label twice"),
        ({"tasks": ["t"]}, "tasks has shape (1,) and first (2,): give each item its task"),
    ],
)
def test_an_argument_that_does_not_fit_is_named(arguments: dict, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        kappa_interval(["a", "b"], ["a", "b"], **arguments)
    assert str(caught.value) == message
