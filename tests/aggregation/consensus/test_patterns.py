"""Items that were labelled alike are one pattern; with other weights they are a smaller panel."""

from types import SimpleNamespace

import numpy as np
import pytest

from jurygraph.aggregation.consensus.votes import encode, patterns
from tests.aggregation.consensus.reference import drawn

ITEM = [0, 0, 1, 1, 2, 3, 3]
ANNOTATOR = ["a", "b", "a", "b", "a", "b", "a"]
LABEL = [0, 1, 0, 1, None, 1, 1]
ALIKE = np.zeros(4, dtype=int)


def test_items_with_the_same_rows_are_one_pattern_and_one_without_rows_is_of_none() -> None:
    made = patterns(encode(ITEM, ANNOTATOR, LABEL, range(2)), ALIKE)
    assert made.pattern_of_item.tolist() == [0, 0, -1, 1]
    assert (made.weight.tolist(), made.size.tolist(), made.row.tolist()) == ([2.0, 1.0], [2, 2], [0, 0, 1, 1])
    assert made.code.tolist() == [0, 3, 1, 3]  # annotator * 2 + label
    assert made.cells == 4
    assert made.matrix.toarray().tolist() == [[1, 0, 0, 1], [0, 1, 0, 1]]


def test_items_that_are_kept_apart_share_no_pattern() -> None:
    votes = encode(ITEM, ANNOTATOR, LABEL, range(2))
    made = patterns(votes, np.array([0, 1, 0, 0]))
    assert made.pattern_of_item.tolist() == [0, 1, -1, 2]
    assert made.weight.tolist() == [1.0, 1.0, 1.0]


def test_patterns_of_weight_0_are_left_out_and_their_items_have_none() -> None:
    rows = patterns(encode(ITEM, ANNOTATOR, LABEL, range(2)), ALIKE)
    without_first = rows.with_weights(np.array([0.0, 3.0]))
    assert without_first.pattern_of_item.tolist() == [-1, -1, -1, 0]
    assert (without_first.weight.tolist(), without_first.code.tolist()) == ([3.0], [1, 3])
    assert (without_first.row.tolist(), without_first.size.tolist()) == ([0, 0], [2])
    both = rows.with_weights(np.array([0.5, 3.0]))
    assert both.pattern_of_item.tolist() == rows.pattern_of_item.tolist()
    assert (both.weight.tolist(), both.code.tolist()) == ([0.5, 3.0], rows.code.tolist())
    assert (both.row.tolist(), both.size.tolist(), both.cells) == ([0, 0, 1, 1], [2, 2], 4)


def test_items_with_colliding_hashes_are_not_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where two patterns should share a sum, every item is a pattern of its own."""
    hashes = SimpleNamespace(integers=lambda low, high, size, dtype: np.zeros(size, dtype=dtype))
    monkeypatch.setattr(np.random, "default_rng", lambda seed: hashes)
    made = patterns(encode(ITEM, ANNOTATOR, LABEL, range(2)), ALIKE)
    assert made.pattern_of_item.tolist() == [0, 1, -1, 2]
    assert made.code.tolist() == [0, 3, 0, 3, 1, 3]
    repeated = patterns(encode([0, 1, 1], [0, 0, 0], [1, 1, 1], range(2)), ALIKE[:2])
    assert repeated.pattern_of_item.tolist() == [0, 1]
    apart = patterns(encode([0, 1], [0, 0], [1, 1], range(2)), np.array([0, 1]))
    assert apart.pattern_of_item.tolist() == [0, 1]


@pytest.mark.parametrize("groups", [1, 4])
def test_of_thousands_of_items_those_alike_are_one_pattern_each(groups: int) -> None:
    item, annotator, label, _ = drawn(3000, 4, 4, seed=0)
    apart = np.arange(3000) % groups
    made = patterns(encode(item, annotator, label, range(4)), apart)
    labels = list(zip(*label.reshape(3000, 4).T.tolist(), apart.tolist(), strict=True))
    place = {one: number for number, one in enumerate(dict.fromkeys(labels))}
    assert len(place) < 2000
    assert made.pattern_of_item.tolist() == [place[one] for one in labels]
    assert made.weight.tolist() == [labels.count(one) for one in place]


def test_a_group_is_not_confused_with_a_label() -> None:
    made = patterns(encode([0, 1, 2], [0, 0, 0], [2, 1, 1], range(3)), np.array([2, 1, 1]))
    assert made.pattern_of_item.tolist() == [0, 1, 1]
