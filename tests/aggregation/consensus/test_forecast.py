"""The ambiguity that further labels leave: equal to the enumeration of all labels, and never more with more of them."""

from itertools import pairwise, product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import HIGH_AMBIGUITY, Consensus
from tests.aggregation.consensus.reference import drawn


def fit_drawn(seed: int, items: int = 30, annotators: int = 4, classes: int = 3) -> Consensus:
    item, annotator, label, _ = drawn(items, annotators, classes, seed, right=0.6)
    return consensus.fit(item, annotator, label, classes=range(classes))


def enumerate_ambiguity(fitted: Consensus, item: int, labels: int) -> tuple[float, float]:
    """Return the exact expectation of the ambiguity, and the probability that it is high."""
    rows = np.bincount(fitted.votes.annotator)
    share = rows / rows.sum()
    annotators, classes, _ = fitted.confusion.shape
    ambiguity = high = 0.0
    cells = list(product(range(annotators), range(classes)))
    for votes in product(cells, repeat=labels):
        joint = fitted.posterior[item].copy()
        for annotator, label in votes:
            joint *= share[annotator] * fitted.confusion[annotator, :, label]
        probability = joint.sum()
        if probability > 0.0:
            left = 1.0 - joint.max() / probability
            ambiguity += probability * left
            high += probability * (left > HIGH_AMBIGUITY)
    return ambiguity, high


def test_the_simulation_is_within_its_error_of_the_enumeration_of_all_labels() -> None:
    fitted = fit_drawn(3)
    items = np.argsort(-fitted.ambiguity())[:2]
    for forecast in consensus.expected_ambiguity(
        fitted, items, max_further_labels=2, draw_count=40_000
    ):
        exact = [enumerate_ambiguity(fitted, item, forecast.labels) for item in items.tolist()]
        ambiguity, high = np.array(exact).T
        assert abs(forecast.ambiguity - ambiguity.mean()) <= 2.0 / np.sqrt(40_000)
        assert abs(forecast.high - high.sum()) <= 4.0 * 2 * 0.5 / np.sqrt(40_000)


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(2, 5))
def test_no_label_leaves_the_ambiguity_and_more_labels_never_raise_it(
    seed: int, classes: int, annotators: int
) -> None:
    fitted = fit_drawn(seed, annotators=annotators, classes=classes)
    items = np.arange(len(fitted.items))[:: 1 + seed % 3]
    forecasts = consensus.expected_ambiguity(
        fitted, items, max_further_labels=4, draw_count=3_000, seed=seed
    )
    assert [forecast.labels for forecast in forecasts] == [0, 1, 2, 3, 4]
    first = forecasts[0]
    np.testing.assert_allclose(first.ambiguity, fitted.ambiguity()[items].mean(), atol=1e-12)
    assert first.high == (fitted.ambiguity()[items] > HIGH_AMBIGUITY).sum()
    for fewer, more in pairwise(forecasts):
        assert more.ambiguity <= fewer.ambiguity + 2.0 / np.sqrt(3_000)
    assert forecasts == consensus.expected_ambiguity(fitted, items, 4, 3_000, seed)


def test_of_no_items_nothing_is_expected() -> None:
    assert consensus.expected_ambiguity(fit_drawn(0), np.array([], dtype=np.intp)) == []
