"""Means of labels that verdicts correct: PPI++ and Rogan-Gladen."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulation.need import exact_sample
from jurygraph.inference.clusters import max_unseen_cluster_share, ratio_interval, share_interval
from jurygraph.inference.corrected import (
    LabelledSample,
    needed_label_count,
    ppi_mean,
    ppi_weight,
    rogan_gladen,
)
from tests.rows import all_rows


def sample(labels: list[float], predictions: list[float], others: list[float]) -> LabelledSample:
    """Every item is a task of its own."""
    numbers = np.arange(len(labels) + len(others))
    columns = [np.array(column, dtype=np.float64) for column in (labels, predictions, others)]
    return LabelledSample(
        columns[0], columns[1], numbers[: len(labels)], columns[2], numbers[len(labels) :]
    )


# Value and interval by `ppi_mean_pointestimate` and `ppi_mean_ci` of ppi-python 0.2.3.
RECORDED = [
    (
        [1, 0, 1, 1, 0, 1, 0, 1, 1, 0],
        [1, 0, 1, 0, 0, 1, 1, 1, 1, 0],
        [1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 0, 1, 0, 1, 1, 1, 0, 0, 1, 1, 0, 1, 1, 0, 1],
        *(0.6166433566433567, 0.3529557301939116, 0.8803309830928018),
    ),
    (
        [2.0, 3.5, 4.0, 1.0, 5.0, 3.0],
        [2.5, 3.0, 4.5, 2.0, 4.0, 3.5],
        [3.0, 1.5, 4.5, 2.5, 5.0, 4.0, 4.5, 2.0],
        *(3.1391018619934283, 2.264620357862918, 4.013583366123939),
    ),
    (
        [1.0, 2.0, 3.0, 4.0],
        [4.0, 3.0, 2.5, 1.0],
        [2.0, 2.0, 3.5],
        2.5,
        1.404346824279273,
        3.5956531757207273,
    ),
]


@all_rows("labels, predictions, others, value, low, high", RECORDED)
def test_the_mean_is_that_of_ppi_python(
    labels: list[float],
    predictions: list[float],
    others: list[float],
    value: float,
    low: float,
    high: float,
) -> None:
    found = ppi_mean(sample(labels, predictions, others))
    assert found.value == pytest.approx(value, abs=1e-9)
    assert found.low is not None
    assert found.high is not None
    assert found.low < low  # ours is of t and the unbiased variance: wider for few labels
    assert found.high > high


def test_the_error_is_that_of_both_means() -> None:
    """With as many labels as verdicts without one, the jackknife of both is the textbook error."""
    rng = np.random.default_rng(0)
    labels = rng.normal(size=400)
    predictions = labels + rng.normal(size=400)
    others = rng.normal(size=400) * 1.4
    drawn = sample(list(labels), list(predictions), list(others))
    weight = ppi_weight(drawn)
    expected = np.sqrt((np.var(labels - weight * predictions) + weight**2 * np.var(others)) / 400)
    assert ppi_mean(drawn).error == pytest.approx(expected, rel=0.01)
    assert 0.0 < weight < 1.0


def test_without_other_verdicts_it_is_the_mean_of_the_labels() -> None:
    found = ppi_mean(sample([1.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 1.0], []))
    assert found == pytest.approx(ratio_interval([1.0, 0.0, 1.0, 1.0], [1.0] * 4))


def test_the_true_rate_by_hand() -> None:
    """TPR 3/4, TNR 2/3; 11 of 20 are called positive: (11/20 + 2/3 - 1) / (3/4 + 2/3 - 1) = 13/25."""
    labels = [1.0] * 4 + [0.0] * 6
    predictions = [1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    found = rogan_gladen(sample(labels, predictions, [1.0] * 6 + [0.0] * 4))
    assert found is not None
    assert found.value == pytest.approx(13 / 25)
    assert found.low is not None
    assert found.high is not None
    assert 0.0 <= found.low < found.value < found.high <= 1.0


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=30))
def test_where_all_is_labelled_the_true_rate_is_that_of_the_labels(
    pairs: list[tuple[bool, bool]],
) -> None:
    labels = [float(label) for label, _ in pairs]
    predictions = [float(said) for _, said in pairs]
    found = rogan_gladen(sample(labels, predictions, []))
    if found is not None:
        assert found.value == pytest.approx(np.mean(labels))


def test_a_judge_that_says_nothing_has_no_true_rate() -> None:
    assert rogan_gladen(sample([1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0], [1.0])) is None
    assert rogan_gladen(sample([1.0, 1.0], [1.0, 0.0], [1.0])) is None  # no negative label


@all_rows("accuracy, expected", [(0.6, 2174), (0.75, 1804), (0.85, 1321), (0.9, 980), (0.95, 549)])
def test_a_better_judge_needs_fewer_labels(accuracy: float, expected: int) -> None:
    """Of 10,000 independent items with a mean of .37, for ±.02: the normal formula, of which t is a little above."""
    assert needed_label_count(exact_sample(accuracy), 0.02, (0.0, 1.0)) == pytest.approx(
        expected, rel=0.03
    )


def test_labels_are_needed_up_to_all_items() -> None:
    """Without a judge it is the number for a mean; none where not even all items would do, or of one task."""
    drawn = sample([0.0, 1.0] * 50, [1.0] * 100, [1.0] * 900)
    needed = needed_label_count(drawn, 0.05, (0.0, 1.0))
    assert needed == pytest.approx((1.96 * 0.5025 / 0.05) ** 2, rel=0.01)
    assert needed_label_count(drawn, 0.03, (0.0, 1.0)) is None
    assert needed_label_count(drawn._replace(tasks=drawn.tasks * 0), 0.5, (0.0, 1.0)) is None
    agreeing = drawn._replace(tasks=np.arange(100) // 2)  # one right and one wrong response each
    assert ppi_mean(agreeing, (0.0, 1.0)).low is None
    assert needed_label_count(agreeing, 0.05, (0.0, 1.0)) is None


@all_rows("said", [[0.0, 1.0] * 20, [0.0] * 40])
def test_the_needed_labels_of_one_kind_and_of_a_perfect_judge_show_what_they_must(
    said: list[float],
) -> None:
    """Labels like these, as many as needed, have the wanted interval, and one less has not."""
    labels = said if np.ptp(said) else [0.0] * 40
    needed = needed_label_count(sample(labels, labels, labels * 200), 0.04, (0.0, 1.0))
    assert needed is not None
    widths = []
    for count in (needed - 1, needed):
        given = (labels * 10)[:count]
        found = ppi_mean(sample(given, given, (labels * 201)[count:]), (0.0, 1.0))
        assert found.low is not None
        assert found.high is not None
        widths.append((found.high - found.low) / 2.0)
    assert widths[1] <= 0.0401
    assert widths[0] >= 0.0399


labelled = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=12)


@given(labelled, st.lists(st.booleans(), max_size=9))
def test_rates_and_their_intervals_are_from_0_to_1(
    pairs: list[tuple[bool, bool]], others: list[bool]
) -> None:
    drawn = sample(
        [float(label) for label, _ in pairs],
        [float(said) for _, said in pairs],
        list(map(float, others)),
    )
    for found in (ppi_mean(drawn, (0.0, 1.0)), rogan_gladen(drawn)):
        if found is not None:
            ends = (found.value,) if found.low is None else (found.low, found.value, found.high)
            assert all(0.0 <= low <= high <= 1.0 for low, high in pairwise([0.0, *ends, 1.0]))
            assert found.low is None or found.low < found.high


def test_labels_of_one_kind_have_the_exact_interval_of_their_tasks() -> None:
    """None of 40 labels is true: at most 1 - .025^(1/40) are, as with no judge at all; likewise for ends of a scale."""
    said = [0.0, 1.0] * 20
    found = ppi_mean(sample([0.0] * 40, said, said), (0.0, 1.0))
    expected = share_interval([0.0] * 40, [1.0] * 40)
    assert expected is not None
    assert (found.value, found.low, found.high) == pytest.approx((0.0, 0.0, expected.high))
    best = ppi_mean(sample([5.0] * 40, [4.0, 5.0] * 20, [3.0] * 9), (1.0, 5.0))
    assert (best.low, best.high) == pytest.approx((5.0 - 4.0 * max_unseen_cluster_share(40), 5.0))


def test_a_judge_without_an_error_is_not_taken_for_one_that_never_errs() -> None:
    """Of 30 tasks none shows an error, so that 11.6 % of all may; a thousand verdicts more say nothing of that."""
    said = [0.0, 1.0] * 15
    drawn = sample(said, said, [0.0, 1.0] * 500)
    for found, reach in (
        (ppi_mean(drawn, (0.0, 1.0)), max_unseen_cluster_share(30)),
        (rogan_gladen(drawn), max_unseen_cluster_share(15) / 2),
    ):
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        assert found.value == pytest.approx(0.5)
        assert found.low <= 0.5 - reach
        assert found.high >= 0.5 + reach


@pytest.mark.parametrize("size", [200, 1000])
def test_the_intervals_cover_the_true_rate(size: int) -> None:
    """300 draws of tasks with two responses, by a judge with TPR .85 and TNR .9: within the 99 % bounds of chance."""
    rng = np.random.default_rng(size)
    covered = np.zeros(2)
    for _ in range(300):
        labels = rng.random(size + 2000) < 0.3
        said = np.where(
            labels, rng.random(len(labels)) < 0.85, rng.random(len(labels)) < 0.1
        ).astype(np.float64)
        tasks = np.arange(len(labels)) // 2
        columns = (
            labels[:size].astype(np.float64),
            said[:size],
            tasks[:size],
            said[size:],
            tasks[size:],
        )
        drawn = LabelledSample(*columns)
        for place, found in enumerate((ppi_mean(drawn), rogan_gladen(drawn))):
            assert found is not None
            assert found.low is not None
            assert found.high is not None
            covered[place] += found.low <= 0.3 <= found.high
    assert (np.abs(covered / 300 - 0.95) < 2.576 * np.sqrt(0.95 * 0.05 / 300)).all()
