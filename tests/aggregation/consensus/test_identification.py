"""Warnings about panels whose confusions are not identifiable."""

import numpy as np
import pytest

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import fitting
from jurygraph.aggregation.consensus.fitting import panel
from jurygraph.aggregation.consensus.votes import encode
from tests.aggregation.consensus.reference import drawn
from tests.rows import all_rows


def warnings_of(item: object, annotator: object, label: object, k: int = 3) -> str:
    return "; ".join(consensus.fit(item, annotator, label, n_classes=k).warnings)  # type: ignore[arg-type]


@pytest.mark.landing
@pytest.mark.parametrize(("annotators", "cells", "unknowns"), [(1, 2, 8), (2, 8, 14)])
def test_fewer_than_three_annotators_are_not_identifiable(annotators: int, cells: int, unknowns: int) -> None:
    item, annotator, label, _ = drawn(50, annotators, 3, seed=0)
    who = "one annotator is" if annotators == 1 else f"{annotators} annotators are"
    sentence = f"{who} not identifiable: {cells} free cells for {unknowns} unknowns"
    assert sentence in warnings_of(item, annotator, label)
    assert sentence in str(consensus.too_small(encode(item, annotator, label, range(3))))


@pytest.mark.parametrize(
    ("items", "warning"),
    [(149, "the panel's depth is 74.5, and below 75 the majority is the better guess"), (150, None)],
)
def test_a_depth_of_75_is_enough(items: int, warning: str | None) -> None:
    """Three labels of each item for six free cells, times one label beyond two."""
    item, annotator, label, _ = drawn(items, 3, 2, seed=0)
    assert consensus.too_small(encode(item, annotator, label, range(2))) == warning


@all_rows("classes", [1, 2, 4])
@all_rows(("annotators", "beyond_two"), [(1, 0), (2, 0), (3, 1), (5, 3)])
def test_depth_is_labels_a_cell_times_labels_of_an_item_beyond_two(
    classes: int, annotators: int, beyond_two: int
) -> None:
    item, annotator = np.repeat(np.arange(12), annotators), np.tile(np.arange(annotators), 12)
    coded = encode(item, annotator, np.zeros(len(item), int), range(classes))
    cells = annotators * classes * max(1, classes - 1)
    assert panel(coded).depth == pytest.approx(12 * annotators / cells * beyond_two)


def test_unconnected_annotators_are_named_and_the_largest_part_counts() -> None:
    item, annotator, label, _ = drawn(600, 4, 3, seed=1, right=0.8)
    stray = [*item, 9001, 9001], [*annotator, "s", "t"], [*label, 0, 1]
    assert panel(encode(*stray, range(3))).parts.tolist() == [0, 0, 0, 0, 1, 1]
    assert "no item connects the others with s, t: only the class shares join them" in warnings_of(*stray)
    assert consensus.too_small(encode(*stray, range(3))) is None
    apart = np.where(annotator < 2, item, item + 1000)
    assert "2 annotators are not identifiable" in warnings_of(apart, annotator, label)


def test_parts_are_numbered_by_their_labels_and_equal_ones_by_their_first_annotator() -> None:
    labels = np.tile([1, 2], 20)  # of annotators 0 to 39, who share no item
    annotator = np.repeat(np.arange(40), labels)
    parts = panel(encode(np.arange(60), annotator, np.zeros(60, int), range(2))).parts
    assert np.argsort(parts).tolist() == [*range(1, 40, 2), *range(0, 40, 2)]


def test_repeated_rows_and_abstentions_do_not_change_the_depth() -> None:
    item, annotator, label, _ = drawn(60, 3, 3, seed=2)
    depth = panel(encode(item, annotator, label, range(3))).depth
    assert depth == pytest.approx(180 / (3 * 6) * 1)
    twice = (np.tile(one, 2) for one in (item, annotator, label))
    assert panel(encode(*twice, range(3))).depth == pytest.approx(depth)
    silent = [*item, 0, 1], [*annotator, "s", "t"], [*label, None, None]
    assert panel(encode(*silent, range(3))).depth == pytest.approx(depth)
    assert panel(encode(*silent, range(3))).parts.tolist() == [0, 0, 0, -1, -1]


def test_annotators_with_fewer_labels_than_classes_are_named() -> None:
    item, annotator, label, _ = drawn(100, 4, 3, seed=2, right=0.8)
    assert warnings_of([*item, 0], [*annotator, 9], [*label, 0]) == ("fewer labels than classes: little is known of 9")
    for many, named in ((8, "10, 11, 12, 13, 14 and 3 more"), (6, "10, 11, 12, 13, 14 and 1 more"), (5, "13, 14")):
        warning = warnings_of([*item, *range(many)], [*annotator, *range(10, 10 + many)], [*label, *[0] * many])
        assert warning.endswith(named)
    assert warnings_of([*item, 0, 1, 2], [*annotator, 9, 9, 9], [*label, 0, 1, 2]) == ""


def test_annotators_count_by_their_labels_in_the_usual_label_of_a_class() -> None:
    votes = encode([0, 1, 2, 0], [0, 0, 0, 1], [0, 1, 1, 1], range(2))
    own, other = [[0.9, 0.1], [0.1, 0.9]], [[0.0, 1.0], [0.2, 0.8]]
    for many, warning in (
        ([own, other], []),
        ([other, own], ["what the model takes for class 0 is called 1 more often"]),
    ):
        found = [one.partition(":")[0] for one in fitting.doubts(votes, np.array(many), None)]
        assert [one for one in found if "the model takes" in one] == warning
