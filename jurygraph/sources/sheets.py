"""Blinded sheets for reviewers, and what they fill in.

A sheet has a row for each item and dimension, under an id that says nothing; agents, labels and other reviewers are in
the key alone, which maps the ids of all sheets to what they stand for. A dimension may be skipped where the reviewer's
score for another one is too low (the staged screening of "Aggregate vs. Personalized Judges"): missing by design, it is
neither an abstention nor the lowest score.
"""

import csv
import io
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from math import inf
from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from jurygraph.arrays import Bools, Ints
from jurygraph.errors import InputError
from jurygraph.messages import quote
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Id, LongId, Number, StrictBool, StrPath
from jurygraph.schema.rating import (
    Label,
    RatedItem,
    VoteOnText,
    format_label,
)
from jurygraph.sources.csv_text import escape_formulas
from jurygraph.sources.file_rows import NO_NAMES, FileRows, NameByField
from jurygraph.sources.label_words import read_class, to_class_value
from jurygraph.sources.ratings import (
    is_no_label,
    read_validated_rows,
    unique_value_by_item,
)
from jurygraph.sources.table_rows import find_column, read_first_row

_ITEM_FIELDS = {"item", "agent", "prompt", "text", "domain", "group"}
"""What the key says of an item, so that ratings of it have it, too."""
_SCORE_BY_PREFERRED_SIDE = {"first": -1.0, "tie": 0.0, "second": 1.0}


class SheetItem(RatedItem):
    """An item to be rated: a `text`, or a `first` and a `second` one that are compared, and the `prompt` they answer.

    `author` is who wrote it, where the item alone does not say so; it only balances sheets.
    """

    prompt: str | None = None
    text: str | None = None
    first: str | None = None
    second: str | None = None
    domain: Id | None = None
    group: LongId | None = None
    author: str | None = None

    @model_validator(mode="after")
    def _require_text_or_pair(self) -> Self:
        is_pair = self.first is not None and self.second is not None
        if (self.text is not None) == is_pair or (self.first is None) != (self.second is None):
            raise ValueError(
                "`text` is needed, or else `first` and `second`; give an item one text, or two to compare, or name "
                "their columns (--column text=C)"
            )
        return self

    @property
    def is_pair(self) -> bool:
        return self.first is not None


class SheetQuestion(FrozenModel):
    """The dimension that a row asks for, and `cells`, what else it says about that, by column.

    Scores are `classes`, if there are any, and else numbers. It is to be skipped unless the reviewer's score for
    another dimension is `above` a threshold. `consensus` is the command that takes the labels, in a file that is to be
    added: by the classes of all questions, or with the consensus that left the items in doubt.
    """

    dimension: Id | None = None
    classes: tuple[Label, ...] = ()
    above: dict[Id, Number] = Field(default_factory=dict)
    cells: dict[str, str] = Field(default_factory=dict)
    consensus: str | None = None


class SheetKeyRow(RatedItem, SheetQuestion):
    """The item and reviewer of a row of a sheet. If `is_swapped`, a pair is shown with its second text first."""

    id: Id
    reviewer: Id
    prompt: str | None = None
    text: str | None = None
    domain: Id | None = None
    group: LongId | None = None
    is_pair: StrictBool = False
    is_swapped: StrictBool = False

    @property
    def choices(self) -> Sequence[str]:
        """Return the scores that may be written, if they are a few: the classes, or the sides of a pair."""
        return (*_SCORE_BY_PREFERRED_SIDE,) if self.is_pair else (*map(format_label, self.classes),)


class SheetVote(VoteOnText):
    """The label in a row, and whether the row was to be filled in; None where no score decides that.

    A row of the key that is in no sheet is not returned, and has no label.
    """

    reason: str | None = None
    row: SheetKeyRow = Field(exclude=True)
    location: str = Field(exclude=True)
    is_due: bool | None = Field(default=None, exclude=True)
    is_returned: bool = Field(default=True, exclude=True)


class _FilledRow(FrozenModel):
    """A row of a sheet that a reviewer returns."""

    item: Id
    label: Label | None
    reason: str | None = None


@dataclass(frozen=True)
class ReviewerAssignment:
    """The sheets of reviewers, and who rates what.

    Attributes:
        key: what each row of a sheet stands for.
        sheets: the rows of each reviewer's sheet, by column.
        assigned: who rates which of the items that not everybody gets, [items, reviewers].
        repeated: how many of these ratings are by somebody who rated the item before.
    """

    key: Sequence[SheetKeyRow]
    sheets: Mapping[str, Sequence[Mapping[str, str]]]
    assigned: Bools
    repeated: int


def read_items_for_sheets(
    path: StrPath, columns: NameByField = NO_NAMES, options: NameByField = NO_NAMES
) -> FileRows[SheetItem]:
    """Read items of a CSV, JSONL or Parquet file; `columns` and `options` as for `read_ratings`.

    Rows of an item, as those of several ratings, are one, with what any of them has. Raises `InputError` with file,
    line and field, also for an item with two texts.
    """
    file = read_validated_rows(path, SheetItem, columns, options)
    rows = {item.key: (position, item) for position, item in file.rows}
    for name in file.columns:
        for key, (value, _) in unique_value_by_item(file, name).items():
            position, item = rows[key]  # whose own cell may be empty
            rows[key] = position, item.model_copy(update={name: value})
    return replace(file, rows=tuple(rows.values()))


def read_gold_for_sheets(
    path: StrPath,
    items: Sequence[SheetItem],
    columns: NameByField = NO_NAMES,
    options: NameByField = NO_NAMES,
) -> Sequence[SheetItem]:
    """Return the items of a gold file; of one without texts, those of `items` that it names.

    Raises `InputError` as `read_items_for_sheets` does, and for an id that none of the items has.
    """
    header = read_first_row(path)
    if any(find_column(columns.get(name, name), header) for name in ("text", "first", "second")):
        return [item for _, item in read_items_for_sheets(path, columns, options).rows]
    item_by_key = {item.key: item for item in items}
    id_columns = {name: columns[name] for name in columns.keys() & RatedItem.model_fields}
    file = read_validated_rows(path, RatedItem, id_columns, options)
    found = {}
    for position, row in file.rows:
        item = item_by_key.get(row.key)
        if item is None:
            raise InputError(
                f"{path}, {position}: {quote(row.key)} is none of the items; name it as they do, with its `agent` if "
                "they have one, or give gold items a column `text`"
            )
        found[item.key] = item  # a row for each of several questions names it again
    return list(found.values())


def make_sheets(
    items: Sequence[SheetItem],
    gold: Sequence[SheetItem],
    reviewers: Sequence[str],
    per_item: int,
    questions: Sequence[SheetQuestion] = (SheetQuestion(),),
    seed: int = 0,
    raters: Mapping[str, Collection[str]] = {},
    questions_by_item: Mapping[str, Sequence[SheetQuestion]] = {},
) -> ReviewerAssignment:
    """Return sheets in which each item has `per_item` reviewers, and everybody gets all of `gold`.

    Loads are balanced over all items, agents and their domains. Each reviewer sees the items in an order of their own,
    and of half of the pairs the second text first. The same arguments give the same sheets, in any order of items.
    Each of the `questions` about an item comes after the one that it depends on. `raters` are the reviewers who rated
    an item before, by its key: others come first. `questions_by_item` has the questions of items that do not have
    all.
    """
    rng = np.random.default_rng(seed)
    gold_keys = {item.key for item in gold}
    items_without_gold = sorted(
        (item for item in items if item.key not in gold_keys), key=lambda item: item.key
    )
    strata = [(item.author or item.agent or "", item.domain or "") for item in items_without_gold]
    names = sorted(reviewers)
    rated_before = np.zeros((len(items_without_gold), len(names)), dtype=np.bool_)
    for row, item in enumerate(items_without_gold):
        rated_before[row] = [name in raters.get(item.key, ()) for name in names]
    if rated_before.any():
        assigned = _assign_fresh_reviewers(rated_before, per_item, rng)
    else:
        assigned = assign_reviewers(strata, len(names), per_item, rng)
    sorted_gold = sorted(gold, key=lambda item: item.key)
    questions_by_key = {**questions_by_item, **dict.fromkeys(gold_keys, questions)}
    row_count = len(sorted_gold) * len(names) * len(questions)
    for item, reviewer_count in zip(items_without_gold, assigned.sum(axis=1), strict=True):
        row_count += int(reviewer_count) * len(questions_by_key.get(item.key, questions))
    has_prompts = any(item.prompt for item in [*items, *gold])
    ids = iter(rng.choice(16**7, row_count, replace=False).tolist())
    key = []
    sheets: dict[str, list[dict[str, str]]] = {}
    for column, reviewer in enumerate(names):
        sheet_items = [*sorted_gold, *compress(items_without_gold, assigned[:, column])]
        is_pair_swapped = rng.permutation(len(sheet_items)) % 2 == 1
        sheets[reviewer] = []
        for index in rng.permutation(len(sheet_items)).tolist():
            item = sheet_items[index]
            is_swapped = item.is_pair and bool(is_pair_swapped[index])
            for question in questions_by_key.get(item.key, questions):
                # The letter keeps spreadsheets from reading an id such as 12e45 as a number.
                identity = f"i{next(ids):07x}"
                fields = item.model_dump(include=_ITEM_FIELDS)
                fields |= {"is_pair": item.is_pair, "is_swapped": is_swapped, **dict(question)}
                key.append(SheetKeyRow(id=identity, reviewer=reviewer, **fields))
                sheets[reviewer].append(
                    _sheet_row(identity, question, item, is_swapped, has_prompts)
                )
    return ReviewerAssignment(key, sheets, assigned, int((assigned & rated_before).sum()))


def _sheet_row(
    identity: str, question: SheetQuestion, item: SheetItem, is_swapped: bool, has_prompts: bool
) -> dict[str, str]:
    texts = {"prompt": item.prompt or ""} if has_prompts else {}
    if item.is_pair:
        pair_texts = (item.second, item.first) if is_swapped else (item.first, item.second)
        texts |= {"first": pair_texts[0] or "", "second": pair_texts[1] or ""}
    else:
        texts["text"] = item.text or ""
    row = {"item": identity}
    if question.dimension is not None:
        row["dimension"] = question.dimension
    return {**row, **texts, **question.cells, "score": "", "reason": ""}


def sheet_rows_to_csv(rows: Sequence[Mapping[str, str]]) -> Iterator[bytes]:
    """Yield the lines of a CSV file in which no spreadsheet runs a text as a formula."""
    for cells in (list(rows[0]), *(row.values() for row in rows)):
        line = io.StringIO()
        csv.writer(line, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(
            map(escape_formulas, cells)
        )
        yield line.getvalue().encode()


def read_sheet_votes(paths: Sequence[StrPath]) -> Iterator[SheetVote]:
    """Yield the votes of sheets in the order of the key, which is the first of the paths.

    A score is a number; of pairs it is below 0 if the first text is better and above 0 if the second is, or one of the
    words first, second and tie. A row without one, or with a word for none (`is_no_label`), is an abstention, or was
    skipped as it should be.

    Raises `InputError` for a missing sheet, a row that is not in the key, two rows of one id, any other score, or one
    of a row that was to be skipped.
    """
    key, *sheets = paths
    if not sheets:
        raise InputError(
            f"{key}: is the key alone; name it first and then the sheets that were returned"
        )
    if Path(key).suffix in (".csv", ".xlsx"):
        keys = (path for path in sheets if Path(path).suffix == ".jsonl")
        found = next(keys, "the key.jsonl that `jurygraph assign` wrote beside the sheets")
        raise InputError(f"{key}: is a sheet; the key comes first: {found}")
    # The key has each question after the one that it depends on; a sheet may have been sorted.
    votes = {
        row.id: _make_vote(row, f"{key}, row {row.id}", None, is_returned=False)
        for _, row in read_validated_rows(key, SheetKeyRow).rows
    }
    for path in sheets:
        file = read_validated_rows(path, _FilledRow)
        for position, sheet_row in file.rows:
            where = f"{path}, {position}"
            vote = votes.get(sheet_row.item)
            if vote is None:
                raise InputError(
                    f"{where}, field {file.columns['item']}: "
                    f"{quote(sheet_row.item)} is not in {key}; name the key of these sheets"
                )
            if vote.is_returned:
                raise InputError(
                    f"{where}: row {quote(sheet_row.item)} is also in {vote.location}; keep one of them"
                )
            location = f"{where}, field {file.columns['label']}"
            score = _parse_score(location, vote.row, sheet_row.label)
            votes[sheet_row.item] = _make_vote(vote.row, location, score, reason=sheet_row.reason)
    return _votes_with_due_flag(votes.values())


def _make_vote(row: SheetKeyRow, location: str, label: Label | None, **fields: Any) -> SheetVote:
    shared_fields = row.model_dump(include={*_ITEM_FIELDS, "dimension"})
    return SheetVote(
        annotator=row.reviewer, label=label, row=row, location=location, **shared_fields, **fields
    )


def _votes_with_due_flag(votes: Iterable[SheetVote]) -> Iterator[SheetVote]:
    """Yield the votes with `is_due`. Raises `InputError` for a score where it is not true."""
    scores: dict[tuple[str | None, ...], Any] = {}
    for vote in votes:
        is_due = None
        for name, threshold in vote.row.above.items():
            screening_score = scores.get((vote.annotator, vote.key, name))
            if screening_score is not None:
                is_due = screening_score > threshold
            if vote.label is not None and not is_due:
                raise InputError(
                    f"{vote.location}: has a score, and that of {quote(name)} is not above {threshold:g}; "
                    "empty it, or correct the other one"
                )
        # What was skipped passes no threshold, so that whatever depends on it is skipped, too.
        score = -inf if is_due is False else vote.label
        scores[vote.annotator, vote.key, vote.dimension] = score
        yield vote.model_copy(update={"is_due": is_due})


def _parse_score(where: str, row: SheetKeyRow, label: Label | None) -> Label | None:
    if label is None:
        return None
    score: Any = to_class_value(label)
    if row.is_pair:
        score = _SCORE_BY_PREFERRED_SIDE.get(str(label).casefold(), score)
    if isinstance(score, str):
        score = read_class(score, row.classes)
    if is_no_label(label) and score not in row.classes:
        return None
    if score not in row.classes if row.classes else score is None:
        hint = "first, second, tie or a number" if row.is_pair else "a number"
        if row.classes:
            hint = f"one of {', '.join(map(format_label, row.classes))}"
        raise InputError(f"{where}: is {quote(str(label))}; write {hint}, or leave it empty")
    return 0.0 - float(score) if row.is_swapped else score


def shared_item_counts(assigned: Bools, gold: int) -> Iterable[int]:
    """Return the number of items that two reviewers both get, for each pair of reviewers."""
    shared_counts_by_pair = assigned.T.astype(np.int64) @ assigned.astype(np.int64)
    pairs = np.triu_indices(len(shared_counts_by_pair), 1)
    return [int(count) + gold for count in shared_counts_by_pair[pairs]]


_SWAPS_PER_ITEM = 30
"""Swaps of every item; the overlaps of reviewers no longer change in distribution after about ten."""


def assign_reviewers(
    strata: Sequence[Hashable], reviewers: int, per_item: int, rng: np.random.Generator
) -> Bools:
    """Return who rates which item, [items, reviewers]: each item has `per_item` reviewers.

    Numbers of items of two reviewers differ by at most one: of all, of each stratum, and, as strata are sorted, of all
    strata with the same beginning, such as those of an agent among (agent, domain). Within that, every assignment is
    as likely as any other.

    `strata` has the stratum of each item; all can be compared. 1 <= `per_item` <= `reviewers`.
    """
    unique_strata = sorted(set(strata))  # type: ignore[type-var]
    ranks = {stratum: rank for rank, stratum in enumerate(unique_strata)}
    codes = np.array([ranks[stratum] for stratum in strata], dtype=np.intp)
    order = np.lexsort((rng.random(len(codes)), codes))
    # Dealt round the table, any run of items is balanced: all of them, and each stratum.
    reviewer_indices = np.arange(len(codes) * per_item).reshape(-1, per_item) % reviewers
    seats = rng.permutation(reviewers)[reviewer_indices]
    assigned = np.zeros((len(codes), reviewers), dtype=np.bool_)
    assigned[order[:, None], seats] = True
    for _ in range(_SWAPS_PER_ITEM):
        _swap_reviewers(assigned, codes, rng)
    return assigned


def _assign_fresh_reviewers(rated_before: Bools, per_item: int, rng: np.random.Generator) -> Bools:
    """Return who rates which item, [items, reviewers], given who rated it before: others first, then who has least.

    The items that most reviewers rated before come first, while everybody is still free.
    """
    assigned = np.zeros_like(rated_before)
    loads = np.zeros(rated_before.shape[1], dtype=np.int64)
    for item in np.lexsort((rng.random(len(rated_before)), -rated_before.sum(axis=1))):
        preferred_reviewers = np.lexsort((rng.random(len(loads)), loads, rated_before[item]))[
            :per_item
        ]
        assigned[item, preferred_reviewers] = True
        loads[preferred_reviewers] += 1
    while _move_one_rating(assigned, rated_before):
        pass
    return assigned


def _move_one_rating(assigned: Bools, rated_before: Bools) -> bool:
    """Let who has two ratings fewer than another take one of theirs, in place, unless that one rated it before.

    Returns whether there was one to move.
    """
    loads = assigned.sum(axis=0)
    for heavy in np.argsort(-loads, kind="stable"):
        for light in np.argsort(loads, kind="stable"):
            if loads[heavy] - loads[light] < 2:
                break  # nor has anybody after them
            is_movable = assigned[:, heavy] & ~assigned[:, light]
            is_movable &= rated_before[:, heavy] | ~rated_before[:, light]
            if is_movable.any():
                item = is_movable.argmax()
                assigned[item, [heavy, light]] = [False, True]
                return True
    return False


def _swap_reviewers(assigned: Bools, codes: Ints, rng: np.random.Generator) -> None:
    """Let random pairs of items of a stratum exchange reviewers at random; every number of items stays as it is.

    Otherwise neighbours at the table would always rate the same items. (The curveball algorithm, Strona et al. 2014,
    whose limit is the uniform distribution.)
    """
    order = np.lexsort((rng.random(len(codes)), codes))
    first = order[:-1:2]
    second = order[1::2]
    is_pair = codes[first] == codes[second]
    first = first[is_pair]
    second = second[is_pair]
    differs = assigned[first] ^ assigned[second]
    number = (assigned[first] & differs).sum(axis=1)
    keys = np.where(differs, rng.random(differs.shape), np.inf)
    ranks = keys.argsort(axis=1).argsort(axis=1)
    is_for_first_reviewer = ranks < number[:, None]
    common = assigned[first] & ~differs
    assigned[first] = common | is_for_first_reviewer
    assigned[second] = common | (differs & ~is_for_first_reviewer)
