"""Rows of anything become codes, and what cannot is refused in one sentence; nothing ends in a silent NaN."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus.patterns import patterns
from jurygraph.aggregation.consensus.votes import encode
from jurygraph.errors import PlanError
from tests.aggregation.consensus.reference import Row, votes


@given(votes())
def test_patterns_hold_every_row_of_every_item(rows: list[Row]) -> None:
    item, annotator, label = (list(one) for one in zip(*rows, strict=True))
    coded = encode(item, annotator, label, range(3))
    made = patterns(coded)
    ends = np.append(made.start, len(made.code))
    for place, one in enumerate(coded.items):
        own = sorted(coded.annotators.index(by) * 3 + said for which, by, said in rows if which == one)
        pattern = made.of[place]
        assert made.code[ends[pattern] : ends[pattern + 1]].tolist() == own
    assert made.weight.tolist() == np.bincount(made.of).tolist()
    assert len({tuple(made.code[a:b]) for a, b in pairwise(ends)}) == len(made.weight)


@given(votes())
def test_rows_of_some_annotators_are_those_that_they_gave(rows: list[Row]) -> None:
    item, annotator, label = (list(one) for one in zip(*rows, strict=True))
    coded = encode(item, annotator, label, range(3))
    kept = np.array([one % 2 == 0 for one in range(len(coded.annotators))])
    own = coded.by(kept)
    there = [
        (coded.items[i], coded.annotators[a], int(c))
        for i, a, c in zip(coded.item, coded.annotator, coded.label, strict=True)
        if kept[a]
    ]
    assert there == [
        (own.items[i], own.annotators[a], int(c)) for i, a, c in zip(own.item, own.annotator, own.label, strict=True)
    ]


@pytest.mark.parametrize("nothing", [None, float("nan"), ""])
def test_nothing_said_is_an_abstention(nothing: object) -> None:
    said = ["a", "b"] if nothing == "" else [0, 1]
    fitted = consensus.fit([1, 1, 2, 3], [1, 2, 1, 1], [said[0], said[1], said[1], nothing], classes=said)  # type: ignore[list-item]
    assert fitted.votes.abstained == 1
    np.testing.assert_allclose(fitted.posterior[2], fitted.prior)
    assert [one for one in fitted.warnings if "abstention" in one or "without a label" in one] == [
        "abstentions, left out: 1",
        "items without a label: 1; their posterior is the class shares, and they count for no agent",
    ]


@pytest.mark.parametrize(
    ("item", "annotator", "label", "wrong"),
    [
        ([], [], [], "there are no rows"),
        ([1, 2], [1, 1], [None, None], "nothing but abstentions"),
        ([1, 2], [1], [0, 1], "differ in length: item 2, annotator 1, label 2"),
        ([1, None], [1, 1], [0, 1], r"item\[1\] is empty"),
        ([1, 2], [1, ""], [0, 1], r"annotator\[1\] is empty"),
        ([1, 2], [1, 1], [0, "x"], "label: no order between int, str"),
        ([[1], [2]], [1, 1], [0, 1], "item has shape"),
        ([1, {}], [1, 1], [0, 1], "item: unhashable type: 'dict'; give numbers or text"),
        ([1, 2], [1, 1], [3, 3], "every label is 3: nothing to tell apart; name the whole scale"),
    ],
)
def test_rows_that_cannot_be_read_are_refused(item: list, annotator: list, label: list, wrong: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(PlanError, match=wrong):
        consensus.fit(item, annotator, label)


def test_a_label_off_the_scale_is_named_with_its_row() -> None:
    with pytest.raises(PlanError, match=r"label\[2\] is 5, which is none of the classes 0, 1, 2"):
        consensus.fit([1, 2, 3], [1, 1, 1], [0, 1, 5], n_classes=3)
    with pytest.raises(PlanError, match=r"label\[3\] is 'god', which is none of the classes 'bad', 'good'"):
        consensus.fit([1, 2, 3, 4], [1, 1, 1, 1], ["bad", "", "good", "god"], classes=["bad", "good"])


def test_a_class_that_is_named_twice_is_refused() -> None:
    with pytest.raises(PlanError, match="one is there twice"):
        consensus.fit([1], [1], [0], classes=[0, 1, 0])


def test_a_million_annotators_have_an_answer() -> None:
    many = 1_000_000
    item = np.arange(many) % 1000
    fitted = consensus.fit(item, np.arange(many), (item + np.arange(many) // 1000 % 5 // 4) % 2, max_iter=2)
    assert fitted.confusion.shape == (many, 2, 2)
    assert np.isfinite(fitted.posterior).all()
    assert np.isfinite(fitted.confusion).all()


def test_too_many_cells_are_refused() -> None:
    many = 60_000
    with pytest.raises(PlanError, match="60000 annotators and 100 classes have more than"):
        consensus.fit(np.zeros(many, int), np.arange(many), np.arange(many) % 100)


@pytest.mark.parametrize(
    "rows",
    [
        [(0, 0, 0), (1, 0, 1), (2, 0, 2)],
        [(0, 0, 0), (0, 1, 2), (1, 0, 1)],
        [(0, 0, 1)],
        [(0, 0, 1)] * 50,
    ],
    ids=["one annotator", "an annotator with one label", "one row", "repeats alone"],
)
def test_hardly_any_rows_have_an_answer(rows: list[Row]) -> None:
    fitted = consensus.fit(*zip(*rows, strict=True), n_classes=3)  # type: ignore[arg-type]
    for one in (fitted.posterior, fitted.prior, fitted.confusion, fitted.credit(), [fitted.log_likelihood]):
        assert np.isfinite(one).all()
    assert all(np.isfinite([*one[:3], *one.accuracy_interval]).all() for one in fitted.annotators().values())
    assert fitted.warnings


def test_repeated_rows_are_counted_and_each_counts() -> None:
    fitted = consensus.fit([0, 0, 0, 1], [0, 0, 1, 1], [1, 1, 0, 0], n_classes=2)
    assert fitted.votes.repeated == 1
    assert "rows that repeat an item and annotator: 1; each counts" in fitted.warnings
    assert fitted.votes.counts[0].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("scale", "wrong"),
    [
        ({"n_classes": 10**9}, "1000000000 classes have more than"),
        ({"n_classes": 2.5}, "n_classes is 2.5: a whole number is needed"),
        ({"n_classes": 2, "classes": [0, 1]}, "n_classes and classes: both say what the labels are"),
    ],
)
def test_a_scale_that_is_none_is_refused(scale: dict[str, object], wrong: str) -> None:
    with pytest.raises(PlanError, match=wrong):
        consensus.fit([0, 1], [0, 0], [0, 1], **scale)  # type: ignore[arg-type]


def test_empty_bytes_say_nothing_as_empty_text_does() -> None:
    fitted = consensus.fit([0, 1, 2], [0, 0, 0], np.array([b"a", b"", b"b"]))
    assert fitted.votes.abstained == 1
    assert fitted.classes == [b"a", b"b"]
