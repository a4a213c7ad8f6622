"""Rows of anything become codes, and what cannot is refused in one sentence; nothing ends in a silent NaN."""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus.model import encode
from jurygraph.errors import PlanError
from tests.aggregation.consensus.reference import Row, votes
from tests.rows import all_rows

NAMES: dict[str, Callable[[int], Hashable]] = {
    "numbers": lambda number: 7 - 3 * number,
    "text": str,
    "both": lambda number: number if number % 2 else f"{number + 1}",
}
SCALE = [2, 0, 1]


@pytest.mark.parametrize("kind", NAMES)
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 3), st.sampled_from([None, *SCALE])),
        max_size=15,
    )
)
def test_rows_are_coded_in_the_order_of_appearance_and_classes_as_they_are_named(
    kind: str, rows: list[tuple[int, int, int | None]]
) -> None:
    rows = [*rows, (0, 0, 2)]
    named = [(NAMES[kind](item), NAMES[kind](annotator), label) for item, annotator, label in rows]
    labelled = [row for row in named if row[2] is not None]
    coded = encode(*([row[column] for row in named] for column in range(3)), SCALE)  # type: ignore[arg-type]
    items, annotators = (list(dict.fromkeys(row[column] for row in named)) for column in range(2))
    assert (coded.items, coded.annotators, coded.classes, coded.has_ordered_classes) == (
        items,
        annotators,
        SCALE,
        True,
    )
    assert coded.shape == (len(items), len(annotators), 3)
    assert coded.item_code_by_row.tolist() == [items.index(row[0]) for row in named]
    assert coded.item.tolist() == [items.index(row[0]) for row in labelled]
    assert coded.annotator.tolist() == [annotators.index(row[1]) for row in labelled]
    assert coded.label.tolist() == [SCALE.index(row[2]) for row in labelled]  # type: ignore[arg-type]
    assert coded.abstention_count == len(rows) - len(labelled)
    assert coded.repeated_rows == len(labelled) - len({row[:2] for row in labelled})
    assert coded.counts.tolist() == [
        [labels_of(labelled, one).count(c) for c in SCALE] for one in items
    ]
    assert coded.has_label.tolist() == [bool(labels_of(labelled, one)) for one in items]


def labels_of(rows: list[tuple[Any, Any, Any]], item: Hashable) -> list[Any]:
    return [label for own, _, label in rows if own == item]


@pytest.mark.parametrize(
    ("labels", "classes", "ranked"),
    [
        ([2, 0, 2], [0, 2], True),
        ([0.5, -1.0], [-1.0, 0.5], True),
        (["no", "a"], ["a", "no"], False),
        ([(1, 0), (0, 1)], [(0, 1), (1, 0)], False),
    ],
)
def test_classes_that_are_not_named_are_those_that_occur_and_numbers_are_ranked(
    labels: list[Any], classes: list[Any], ranked: bool
) -> None:
    column = np.empty(len(labels), dtype=object)
    column[:] = labels
    coded = encode(range(len(labels)), [0] * len(labels), column)
    assert (coded.classes, coded.has_ordered_classes) == (classes, ranked)
    assert [coded.classes[code] for code in coded.label] == labels


@given(votes())
def test_the_matrix_has_every_row(rows: list[Row]) -> None:
    item, annotator, label = (list(one) for one in zip(*rows, strict=True))
    coded = encode(item, annotator, label, range(3))
    expected = np.zeros((len(coded.items), len(coded.annotators) * 3))
    for own, by, given_label in rows:
        expected[coded.items.index(own), coded.annotators.index(by) * 3 + given_label] += 1
    assert coded.matrix.toarray().tolist() == expected.tolist()
    assert coded.counts.tolist() == expected.reshape(len(coded.items), -1, 3).sum(axis=1).tolist()


@given(votes())
def test_select_labels_keeps_exactly_the_rows_of_annotators(rows: list[Row]) -> None:
    item, annotator, label = (list(one) for one in zip(*rows, strict=True))
    coded = encode(item, annotator, label, range(3))
    kept = np.array([one % 2 == 0 for one in range(len(coded.annotators))])
    own = coded.select_labels(kept[coded.annotator])
    assert (own.items, own.annotators, own.classes) == (
        coded.items,
        coded.annotators,
        coded.classes,
    )
    columns = zip(coded.item, coded.annotator, coded.label, strict=True)
    assert [row for row in columns if kept[row[1]]] == list(
        zip(own.item, own.annotator, own.label, strict=True)
    )


@pytest.mark.parametrize(
    ("nothing", "names"),
    [(None, [0, 1]), (float("nan"), [0, 1]), ("", ["a", "b"]), (b"", [b"a", b"b"])],
)
def test_a_missing_label_is_an_abstention(nothing: object, names: list[Any]) -> None:
    fitted = consensus.fit(
        [1, 1, 2, 3], [1, 2, 1, 1], [names[0], names[1], names[1], nothing], classes=names
    )  # type: ignore[list-item]
    assert fitted.votes.abstention_count == 1
    np.testing.assert_allclose(fitted.posterior[2], fitted.prior)
    assert [one for one in fitted.warnings if "abstention" in one or "without a label" in one] == [
        "abstentions, left out: 1",
        "items without a label: 1; they count for no agent",
    ]


@all_rows(
    ("item", "annotator", "label", "wrong"),
    [
        ([], [], [], "there are no rows"),
        (*[np.array([], dtype=object)] * 3, "there are no rows"),
        ([1, 2], [1, 1], [None, None], "there is no label: nothing but abstentions"),
        ([1, 2], [1], [0, 1], "the columns differ in length: item 2, annotator 1, label 2; give"),
        ([1, None], [1, 1], [0, 1], r"item\[1\] is empty"),
        ([1, 2], [1, ""], [0, 1], r"annotator\[1\] is empty"),
        ([1, 2], [1, 1], [0, "x"], "label: no order between int, str"),
        ([[1], [2]], [1, 1], [0, 1], "item: unhashable type: 'list'; give numbers or text"),
        ([1, 2], [1, [1, 2]], [0, 1], "annotator: unhashable type: 'list'; give numbers or text"),
        ([1, 2], [1, 1], 0, r"label has shape \(\)"),
        ([1, 2], [1, 1], [{}, {}], "label: unhashable type: 'dict'; give numbers or text"),
        ([1, {}], [1, 1], [0, 1], "item: unhashable type: 'dict'; give numbers or text"),
        (
            [1, 2],
            [1, 1],
            [3, 3],
            "every label is 3: at least two classes are needed; name the whole scale",
        ),
    ],
)
def test_invalid_columns_are_refused(item: list, annotator: list, label: list, wrong: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(PlanError, match=f"^{wrong}"):
        consensus.fit(item, annotator, label)


def test_a_label_off_the_scale_is_named_with_its_row() -> None:
    with pytest.raises(PlanError, match=r"label\[2\] is 5, which is none of the classes 0, 1, 2"):
        consensus.fit([1, 2, 3], [1, 1, 1], [0, 1, 5], n_classes=3)
    with pytest.raises(
        PlanError, match=r"label\[3\] is 'god', which is none of the classes 'bad', 'good'$"
    ):
        consensus.fit(
            [1, 2, 3, 4], [1, 1, 1, 1], ["bad", "", "good", "god"], classes=["bad", "good"]
        )
    for many, last in ((20, "19"), (21, r"19, … \(21\)")):
        with pytest.raises(PlanError, match=rf"none of the classes 0, 1, .*, {last}$"):
            consensus.fit([1, 2], [1, 1], [0, many], n_classes=many)


@pytest.mark.parametrize(
    ("scale", "wrong"),
    [
        ({"n_classes": 10**9}, "1 annotators and 1000000000 classes have more than"),
        ({"n_classes": 2.5}, "n_classes is 2.5: a whole number is needed"),
        (
            {"classes": [1, 0, 1]},
            r"classes: one is there twice in \[1, 0, 1\]; name each once, from low to high",
        ),
        (
            {"n_classes": 2, "classes": [0, 1]},
            "n_classes and classes: both say what the labels are",
        ),
    ],
)
def test_an_invalid_scale_is_refused(scale: dict[str, object], wrong: str) -> None:
    with pytest.raises(PlanError, match=wrong):
        consensus.fit([0, 1], [0, 0], [0, 1], **scale)  # type: ignore[arg-type]
