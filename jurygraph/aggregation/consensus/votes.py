"""Who gave which item which label: rows of anything, as codes."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jurygraph.aggregation._inputs import BoolArray, IndexArray
from jurygraph.errors import PlanError

Key = Hashable
MOST_CELLS = 2**28
"""Cells of all confusion matrices together; more would take over 2 GB."""


@dataclass(frozen=True)
class Votes:
    """Rows of (item, annotator, label) as codes, in their order; abstentions are left out of `item`, `annotator` and
    `label` [L].

    `items` [N], `annotators` [A] and their codes are in the order of their first appearance; `classes` [K] from low to
    high, where they are `ranked`: stated in that order, or numbers. `of_row` are the items of all rows, with
    abstentions.
    """

    items: Sequence[Key]
    annotators: Sequence[Key]
    classes: Sequence[Key]
    ranked: bool
    item: IndexArray
    annotator: IndexArray
    label: IndexArray
    of_row: IndexArray

    @property
    def shape(self) -> tuple[int, int, int]:
        """N, A, K."""
        return len(self.items), len(self.annotators), len(self.classes)

    @property
    def abstained(self) -> int:
        return len(self.of_row) - len(self.item)

    @cached_property
    def repeated(self) -> int:
        """Rows whose annotator labelled the same item before. They count as any other."""
        pairs = np.sort(self.item * len(self.annotators) + self.annotator)
        return int(np.count_nonzero(pairs[1:] == pairs[:-1]))

    @cached_property
    def labelled(self) -> BoolArray:
        """The items that have a label, [N]."""
        return np.bincount(self.item, minlength=len(self.items)) > 0

    @cached_property
    def counts(self) -> IndexArray:
        """How often each item got each label, [N,K]."""
        n, _, k = self.shape
        return np.bincount(self.item * k + self.label, minlength=n * k).reshape(n, k)

    def by(self, annotators: BoolArray) -> "Votes":
        """The rows of some annotators [A] alone; items without any are left out, classes stay."""
        rows = annotators[self.annotator]
        item, items = _by_appearance(self.item[rows])
        annotator, names = _by_appearance(self.annotator[rows])
        return replace(
            self,
            items=[self.items[one] for one in items],
            annotators=[self.annotators[one] for one in names],
            item=item,
            annotator=annotator,
            label=self.label[rows],
            of_row=item,
        )


def encode(item: ArrayLike, annotator: ArrayLike, label: ArrayLike, classes: Sequence[Key] | None = None) -> Votes:
    """Rows as codes. A label that is None, NaN or "" is an abstention.

    Args:
        item, annotator, label: row by row, [rows]; numbers, strings, or anything that can be told apart.
        classes: the labels that there are, from low to high; those that occur, sorted, unless given.

    Raises:
        PlanError: lists of different lengths or none, a label that is no class, or nothing but abstentions.
    """
    if classes is not None and len(classes) ** 2 > MOST_CELLS:
        raise PlanError(
            f"{len(classes)} classes have more than {MOST_CELLS} cells of confusion; join those that are alike"
        )
    rows = [_column("item", item), _column("annotator", annotator), _column("label", label)]
    if len({len(one) for one in rows}) > 1:
        sizes = ", ".join(f"{name} {len(one)}" for name, one in zip(("item", "annotator", "label"), rows, strict=True))
        raise PlanError(f"the columns differ in length: {sizes}; give each row all three")
    said = ~_missing(rows[2])
    if not said.any():
        raise PlanError("there is no label: nothing but abstentions" if len(said) else "there are no rows")
    of_row, items = _coded("item", rows[0])
    by, annotators = _coded("annotator", rows[1])
    labels, known, ranked = _labels(rows[2], said, classes)
    if len(annotators) * len(known) ** 2 > MOST_CELLS:
        cells = f"{len(annotators)} annotators and {len(known)} classes"
        raise PlanError(f"{cells} have more than {MOST_CELLS} cells of confusion; join classes that are alike")
    return Votes(items, annotators, known, ranked, of_row[said], by[said], labels, of_row)


def _column(name: str, given: ArrayLike) -> NDArray[Any]:
    try:
        column = np.asarray(given)
    except ValueError as error:
        raise PlanError(f"{name} is no list: {error}") from error
    if column.ndim != 1:
        raise PlanError(f"{name} has shape {column.shape} where one value a row is needed")
    if isinstance(given, list | tuple) and column.dtype.kind == "U" and not all(isinstance(one, str) for one in given):
        return np.array(given, dtype=object)  # 1 and "1" would become the same
    return column


def code_column(name: str, given: ArrayLike) -> tuple[IndexArray, Sequence[Key]]:
    """The codes of a column, in the order of first appearance, and what they stand for. PlanError where one is none."""
    return _coded(name, _column(name, given))


def _missing(label: NDArray[Any]) -> BoolArray:
    if label.dtype.kind == "f":
        return np.asarray(np.isnan(label))
    if label.dtype.kind in "US":
        return np.asarray(label == np.zeros((), dtype=label.dtype))
    if label.dtype.kind != "O":
        return np.zeros(len(label), dtype=np.bool_)
    return np.array([one is None or one == "" or one != one for one in label], dtype=np.bool_)  # NaN is not itself


def _coded(name: str, values: NDArray[Any]) -> tuple[IndexArray, Sequence[Key]]:
    """Codes in the order of first appearance, and what they stand for."""
    gone = _missing(values)
    if gone.any():
        raise PlanError(f"{name}[{int(np.argmax(gone))}] is empty; name it")
    if values.dtype.kind == "O":
        seen: dict[Any, int] = {}
        try:
            codes = np.array([seen.setdefault(one, len(seen)) for one in values.tolist()])
        except TypeError as error:
            raise PlanError(f"{name}: {error}; give numbers or text") from error
        return codes, list(seen)
    return _by_appearance(values)


def _by_appearance(values: NDArray[Any]) -> tuple[IndexArray, Sequence[Any]]:
    """Codes in the order of first appearance, and the value of each."""
    known, first, codes = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place[codes], known[order].tolist()


def _labels(
    label: NDArray[Any], said: BoolArray, classes: Sequence[Key] | None
) -> tuple[IndexArray, Sequence[Key], bool]:
    """The codes of what was said, the classes, and whether these are ranked."""
    codes, seen = _coded("label", label[said])
    if classes is None:
        known, ranked = _sorted(seen), all(isinstance(one, int | float) for one in seen)
    else:
        known, ranked = list(classes), True
    if len(set(known)) < len(known):
        raise PlanError(f"classes: one is there twice in {known}; name each once, from low to high")
    places = {one: place for place, one in enumerate(known)}
    for code, one in enumerate(seen):
        if one not in places:
            row = int(np.flatnonzero(said)[np.argmax(codes == code)])
            raise PlanError(f"label[{row}] is {one!r}, which is none of the classes {_listed(known)}")
    return np.array([places[one] for one in seen])[codes], known, ranked


def _listed(known: Sequence[Key]) -> str:
    shown = ", ".join(map(repr, known[:20]))
    return shown if len(known) <= 20 else f"{shown}, … ({len(known)})"


def _sorted(seen: Sequence[Any]) -> list[Any]:
    try:
        return sorted(seen)
    except TypeError:
        kinds = ", ".join(sorted({type(one).__name__ for one in seen}))
        raise PlanError(f"label: no order between {kinds}; write all labels alike, or name them in `classes`") from None


def known_classes(votes: Votes, gold: Mapping[Any, Any]) -> IndexArray:
    """The class of each gold item, -1 of any other, [N]. PlanError where an item or its class is none of these."""
    places = {one: place for place, one in enumerate(votes.items)} if gold else {}
    codes = {one: code for code, one in enumerate(votes.classes)}
    known = np.full(len(votes.items), -1)
    for one, truth in gold.items():
        if one not in places:
            raise PlanError(f"gold: there is no item {one!r}")
        if truth not in codes:
            raise PlanError(f"gold: {truth!r} of item {one!r} is none of the classes {list(votes.classes)!r}")
        known[places[one]] = codes[truth]
    return known
