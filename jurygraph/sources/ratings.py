"""RATINGS, a rating or a vote a row, and TEXTS, which say what was rated: CSV, JSONL or Parquet, gzipped or not."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

from pydantic import ValidationError

from jurygraph.errors import ConfigError, InputError
from jurygraph.schema import Noun
from jurygraph.schema.rating import Label, Labelled, Rated, Rating, Vote
from jurygraph.sources.complaint import LARGEST_BITS, Complaint, complaint, nearest, quoted, shortened
from jurygraph.sources.csv_text import restore
from jurygraph.sources.table_rows import Row, is_csv, read_placed_rows

N = TypeVar("N", bound=Noun)

_ALSO = {"reviewer": "annotator", "score": "label", "annotator": "reviewer", "label": "score"}
"""What a file may call a column instead of what we call it."""

_NAMES = {"item", "agent", "reviewer", "annotator", "dimension", "domain", "group"}
NUMERAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)


Shapes = dict[tuple[str, ...], Mapping[str, str]]
"""The columns that a row has, and which of them each field is read from."""


class PlacedRating(NamedTuple):
    """A rating, and where it stands in its file: "line 7", or "row 7" where there are no lines."""

    place: str
    rating: Rating


@dataclass(frozen=True)
class Ratings:
    """The ratings of a file, in its order; `name` is the file's.

    `unread` are columns that say nothing to us, each with the name that may have been meant.
    """

    name: str
    rows: tuple[PlacedRating, ...]
    unread: Mapping[str, str | None] = field(default_factory=dict)


class PlacedVote(NamedTuple):
    """A vote, and where it stands in its file."""

    place: str
    vote: Vote


@dataclass(frozen=True)
class VotesFile:
    """The votes of a file, in its order. `columns` says what each field is read from; `unread` as of `Ratings`."""

    path: str
    rows: tuple[PlacedVote, ...]
    columns: Mapping[str, str]
    unread: Mapping[str, str | None] = field(default_factory=dict)


class PlacedLabel(NamedTuple):
    """An item's label, and where it stands: "gold.csv, line 7". `columns` says what each field is read from."""

    where: str
    columns: Mapping[str, str]
    label: Label


class _ItemText(Rated):
    """What an item says."""

    text: str


def read_ratings(path: str | Path, columns: Mapping[str, str] = {}) -> Ratings:
    """The ratings of a RATINGS file. `columns` says what the file calls what we call `item`, `reviewer`, `score`, ….

    A whole number may be a name; a score is a number, in CSV the text of one. What is empty says nothing. Raises
    `InputError` with file, line and field, and `ConfigError` where `columns` names what ratings do not have.
    """
    shapes: Shapes = {}
    rows = tuple(PlacedRating(place, rating) for place, rating in _read(Path(path), Rating, columns, shapes))
    return Ratings(Path(path).name, rows, _unread(Rating, shapes))


def read_votes(path: str | Path, columns: Mapping[str, str] = {}) -> VotesFile:
    """The votes of a RATINGS file; `columns` as for `read_ratings`, of `item`, `annotator`, `label`, ….

    A label is a number or a word; an empty one is an abstention. In CSV labels are numbers where each that is not empty
    writes one, else words. Raises as `read_ratings` does.
    """
    shapes: Shapes = {}
    rows = [PlacedVote(place, vote) for place, vote in _read(Path(path), Vote, columns, shapes)]
    named = _fields(shapes)
    if is_csv(Path(path)) and all(vote.label is None or NUMERAL.fullmatch(str(vote.label)) for _, vote in rows):
        rows = [PlacedVote(place, _numbered(f"{path}, {place}", named["label"], vote)) for place, vote in rows]
    return VotesFile(str(path), tuple(rows), named, _unread(Vote, shapes))


def _fields(shapes: Shapes) -> Mapping[str, str]:
    """The column that each field is read from."""
    return dict(entry for fields in shapes.values() for entry in fields.items())


def _numbered(where: str, column: str, vote: Vote) -> Vote:
    """The vote with the number that its label writes."""
    if vote.label is None:
        return vote
    label = float(vote.label)
    if not math.isfinite(label):
        wrong = f"is the text {quoted(str(vote.label))}"
        _refuse(where, Complaint((column,), wrong, "write a number that a 64-bit float can hold"))
    return vote.model_copy(update={"label": label})


def read_gold(path: str | Path, columns: Mapping[str, str] = {}) -> Mapping[str, PlacedLabel]:
    """What is known of items: their labels, by their keys. Rows without a label are left out. Columns are `item`,
    `label`, and `agent`.

    Raises as `read_ratings` does, also where an item has two labels.
    """
    known: dict[str, PlacedLabel] = {}
    shapes: Shapes = {}
    rows = list(_read(Path(path), Labelled, columns, shapes))
    named = _fields(shapes)
    for place, one in rows:
        if one.label is None:
            continue
        first = known.setdefault(one.key, PlacedLabel(f"{path}, {place}", named, one.label))
        if one.label != first.label:
            wrong = f"is not the label that item {quoted(one.key)} has in {first.where}"
            _refuse(f"{path}, {place}", Complaint((named["label"],), wrong, "give each item one label"))
    return known


def read_texts(path: str | Path, columns: Mapping[str, str] = {}) -> dict[str, str]:
    """What the items of a TEXTS file say, by their keys; a text may be blank. Columns are `item`, `text`, and `agent`.

    Raises as `read_ratings` does, also where an item has two texts.
    """
    texts: dict[str, tuple[str, str]] = {}
    for place, one in _read(Path(path), _ItemText, columns, {}):
        text, first = texts.setdefault(one.key, (one.text, place))
        if text != one.text:
            wrong = f"is not the text that item {quoted(one.key)} has in {first}"
            column = columns.get("text", "text")
            _refuse(f"{path}, {place}", Complaint((column,), wrong, "give each item one text"))
    return {key: text for key, (text, _) in texts.items()}


def _read(path: Path, noun: type[N], columns: Mapping[str, str], shapes: Shapes) -> Iterator[tuple[str, N]]:
    """Every row as a noun, with its place; `shapes` is filled with those that rows have."""
    wanted, csv = _wanted(noun, columns), is_csv(path)
    for place, values in read_placed_rows(path):
        shape = tuple(values)
        if shape not in shapes:  # most files have one
            shapes[shape] = _found(f"{path}, {'line 1' if csv else place}", noun, wanted, shape)
        yield place, _noun(f"{path}, {place}", noun, values, shapes[shape], csv)
    if not shapes:
        needed = " and ".join(f"`{name}`" for name in _needed(noun))
        raise InputError(f"{path}: has no rows; write one a line, each with {needed}")
    for column in columns.values():
        if not any(column in shape for shape in shapes):
            raise _no_column(str(path), (column,), {name: None for shape in shapes for name in shape})


def _unread(noun: type[Noun], shapes: Shapes) -> Mapping[str, str | None]:
    """Columns that no field is read from, in the order of their names, with the hint which field may be meant."""
    read = {name for fields in shapes.values() for name in fields}
    used = {column for fields in shapes.values() for column in fields.values()}
    absent = [name for name in noun.model_fields if name not in read]
    left = sorted({column for shape in shapes for column in shape} - used)
    return {one: None if one in noun.model_fields else nearest(one.casefold(), absent) for one in left}


def _needed(noun: type[Noun]) -> list[str]:
    return [name for name, field in noun.model_fields.items() if field.is_required()]


def _wanted(noun: type[Noun], columns: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """For each field the columns in which it may stand."""
    for name in columns:
        if name not in noun.model_fields:
            known = f"known here: {', '.join(noun.model_fields)}"
            hint = nearest(name, noun.model_fields) or known
            raise ConfigError(f"columns: {quoted(name)} is nothing that such a file says; {hint}")
    own = {name: tuple(filter(None, (_ALSO.get(name), name))) for name in noun.model_fields}
    return own | {name: (column,) for name, column in columns.items()}


def _found(
    where: str, noun: type[Noun], wanted: Mapping[str, Sequence[str]], shape: Sequence[str]
) -> Mapping[str, str]:
    """The column of each field that rows of this shape have."""
    found = {}
    for name, columns in wanted.items():
        there = [column for column in columns if column in shape]
        if len(there) > 1:
            both = " and ".join(map(repr, there))
            raise InputError(f"{where}: has the columns {both}, which say the same; keep one, or say which is meant")
        if there:
            found[name] = there[0]
        elif name in _needed(noun):
            raise _no_column(where, columns, shape)
    return found


def _no_column(where: str, columns: Iterable[str], there: Iterable[str]) -> InputError:
    hints = (nearest(column, there) for column in columns)
    hint = next(filter(None, hints), f"name one that is there: {shortened(', '.join(there), 200)}")
    return InputError(f"{where}: has no column {' or '.join(map(quoted, columns))}; {hint}")


def _noun(where: str, noun: type[N], values: Row, columns: Mapping[str, str], csv: bool) -> N:
    """A row as a noun."""
    given = {name: _plainly(name, values[column]) for name, column in columns.items()}
    if csv:  # as an export of rewards writes them
        given |= {name: restore(one) for name, one in given.items() if name in _NAMES and isinstance(one, str)}
    if csv and "score" in given:
        given["score"] = _number(where, columns["score"], given["score"])
    said = {name: value for name, value in given.items() if value != "" or noun.model_fields[name].is_required()}
    try:
        return noun.model_validate(said)
    except ValidationError as error:
        wrong = complaint(error, noun, said)
        _refuse(where, Complaint((columns[str(wrong.path[0])], *wrong.path[1:]), wrong.problem, wrong.remedy))


def _plainly(name: str, value: Any) -> Any:
    """A value as a noun has it: names are text, and none is blank; a label that is blank is none."""
    if name == "label" and isinstance(value, str):
        return value.strip() or None
    if name not in _NAMES:
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= LARGEST_BITS:
        return str(value)
    return "" if isinstance(value, str) and not value.strip() else value


def _number(where: str, column: str, written: str) -> float:
    """The number that a value of a CSV file writes."""
    if NUMERAL.fullmatch(written.strip()) is None:
        wrong = f"is the text {quoted(written)}" if written.strip() else "is empty"
        _refuse(where, Complaint((column,), wrong, "write a number, such as 3 or 3.5"))
    return float(written)


def _refuse(where: str, wrong: Complaint) -> NoReturn:
    raise InputError(f"{where}, field {wrong.field}: {wrong}")
