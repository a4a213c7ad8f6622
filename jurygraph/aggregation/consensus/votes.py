"""Votes: rows of item, annotator and label, encoded as integer codes."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.arrays import Bools, Ints
from jurygraph.errors import PlanError

Key = Hashable
MOST_CELLS = 2**28
"""Cells of all confusion matrices together; more would take over 2 GB."""


@dataclass(frozen=True)
class Votes:
    """Rows of (item, annotator, label) as codes, in their order.

    Abstentions are left out of `item`, `annotator` and `label` [L].

    `items` [N], `annotators` [A] and their codes are in the order of first appearance; `classes` [K] run from low to
    high if they are `ranked`: passed in that order, or numbers. `item_of_row` has the items of all rows, including
    abstentions.
    """

    items: Sequence[Key]
    annotators: Sequence[Key]
    classes: Sequence[Key]
    ranked: bool
    item: Ints
    annotator: Ints
    label: Ints
    item_of_row: Ints

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return N, A, K."""
        return len(self.items), len(self.annotators), len(self.classes)

    @property
    def abstentions(self) -> int:
        return len(self.item_of_row) - len(self.item)

    @cached_property
    def repeated_rows(self) -> int:
        """Return the number of rows whose annotator labelled the same item before. They count as any other."""
        pairs = np.sort(self.item * len(self.annotators) + self.annotator)
        return int(np.count_nonzero(pairs[1:] == pairs[:-1]))

    @cached_property
    def has_label(self) -> Bools:
        """Return which items have a label, [N]."""
        return np.bincount(self.item, minlength=len(self.items)) > 0

    @cached_property
    def counts(self) -> Ints:
        """Return how often each item got each label, [N,K]."""
        n, _, k = self.shape
        return np.bincount(self.item * k + self.label, minlength=n * k).reshape(n, k)

    @cached_property
    def matrix(self) -> Any:
        """Return how often each item got each label by each annotator, sparse, [N, A·K] by annotator · K + label."""
        from scipy.sparse import coo_array

        n, a, k = self.shape
        cells = self.annotator * k + self.label
        return coo_array((np.ones(len(cells)), (self.item, cells)), shape=(n, a * k)).tocsr()

    def select_annotators(self, kept: Bools) -> "Votes":
        """Return the rows of these annotators [A] only; items, annotators and classes keep their codes."""
        rows = kept[self.annotator]
        return replace(self, item=self.item[rows], annotator=self.annotator[rows], label=self.label[rows])


def encode(item: ArrayLike, annotator: ArrayLike, label: ArrayLike, classes: Sequence[Key] | None = None) -> Votes:
    """Encode rows. A label that is None, NaN or "" is an abstention.

    Args:
        item, annotator, label: row by row, [rows]; numbers, strings, or other hashable values.
        classes: all labels, from low to high; by default those that occur, sorted.

    Raises:
        PlanError: lists of different lengths, empty lists, a label that is not a class, or only abstentions.
    """
    columns = {"item": item, "annotator": annotator, "label": label}
    rows = {name: _column(name, values) for name, values in columns.items()}
    if len({len(column) for column in rows.values()}) > 1:
        sizes = ", ".join(f"{name} {len(column)}" for name, column in rows.items())
        raise PlanError(f"the columns differ in length: {sizes}; give each row all three")
    has_label = ~_are_missing(rows["label"])
    if not has_label.any():
        raise PlanError("there is no label: nothing but abstentions" if len(has_label) else "there are no rows")
    of_row, items = _encode_values("item", rows["item"])
    by, annotators = _encode_values("annotator", rows["annotator"])
    if classes is not None:
        _refuse_large(len(annotators), len(classes))
    labels, known, ranked = _encode_labels(rows["label"], has_label, classes)
    _refuse_large(len(annotators), len(known))
    return Votes(items, annotators, known, ranked, of_row[has_label], by[has_label], labels, of_row)


def _refuse_large(annotators: int, classes: int) -> None:
    if annotators * classes**2 > MOST_CELLS:
        cells = f"{annotators} annotators and {classes} classes"
        raise PlanError(f"{cells} have more than {MOST_CELLS} cells of confusion; join classes that are alike")


def _column(name: str, values: Any) -> list[Any]:
    """Return a column as a list of Python values. A list is not made an array: 1 and "1" would become the same."""
    if isinstance(values, list | tuple):
        return [value.item() if isinstance(value, np.generic) else value for value in values]
    column = np.asarray(values)
    if column.ndim != 1:
        raise PlanError(f"{name} has shape {column.shape} where one value a row is needed")
    return list(column.tolist())


def code_column(name: str, values: ArrayLike) -> tuple[Ints, Sequence[Key]]:
    """Return the codes of a column, in the order of first appearance, and their values. PlanError if one is empty."""
    return _encode_values(name, _column(name, values))


def _are_missing(values: Sequence[Any]) -> Bools:
    return np.array([x is None or x in ("", b"") or x != x for x in values], dtype=np.bool_)  # NaN is not itself


def _encode_values(name: str, values: Sequence[Any]) -> tuple[Ints, list[Any]]:
    is_missing = _are_missing(values)
    if is_missing.any():
        raise PlanError(f"{name}[{int(np.argmax(is_missing))}] is empty; name it")
    code_of: dict[Any, int] = {}
    try:
        codes = [code_of.setdefault(value, len(code_of)) for value in values]
    except TypeError as error:
        raise PlanError(f"{name}: {error}; give numbers or text") from error
    return np.array(codes, dtype=np.intp), list(code_of)


def _encode_labels(
    label: Sequence[Any], has_label: Bools, classes: Sequence[Key] | None
) -> tuple[Ints, Sequence[Key], bool]:
    codes, seen = _encode_values("label", list(compress(label, has_label)))
    if classes is None:
        known = _sort_labels(seen)
        ranked = all(isinstance(name, int | float) for name in seen)
    else:
        known = list(classes)
        ranked = True
    if len(set(known)) < len(known):
        raise PlanError(f"classes: one is there twice in {known}; name each once, from low to high")
    class_codes = {name: class_code for class_code, name in enumerate(known)}
    for code, name in enumerate(seen):
        if name not in class_codes:
            row = int(np.flatnonzero(has_label)[np.argmax(codes == code)])
            names = ", ".join(map(repr, known[:20])) + (f", … ({len(known)})" if len(known) > 20 else "")
            raise PlanError(f"label[{row}] is {name!r}, which is none of the classes {names}")
    return np.array([class_codes[name] for name in seen])[codes], known, ranked


def _sort_labels(labels: Sequence[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:
        kinds = ", ".join(sorted({type(label).__name__ for label in labels}))
        raise PlanError(f"label: no order between {kinds}; write all labels alike, or name them in `classes`") from None
