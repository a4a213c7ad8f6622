"""RATINGS, one rating or vote per row; TEXTS, with the texts of rated items; and confusions, learned from ratings.

Files are CSV, JSONL or Parquet, gzipped or not. Texts are escaped in CSV cells so that no spreadsheet runs them as a
formula, and restored on reading. A file of confusions has the digest of its content, so that changes are detected.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from jurygraph.errors import ConfigError, InputError
from jurygraph.messages import (
    MAX_INT_BITS,
    Problem,
    describe_validation_error,
    describe_value,
    did_you_mean,
    quote,
    shorten,
)
from jurygraph.schema import FrozenModel
from jurygraph.schema.rating import Confusions, Label, LabelledItem, RatedItem, Rating, Vote
from jurygraph.sources.files import read_whole
from jurygraph.sources.table_rows import Row, is_csv, read_placed_rows

N = TypeVar("N", bound=FrozenModel)

_ALIASES = {"reviewer": "annotator", "score": "label", "annotator": "reviewer", "label": "score"}
"""Alternative names of columns in a file."""

_TEXT_FIELDS = {"item", "agent", "reviewer", "annotator", "dimension", "domain", "group"}
NUMERAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)


ColumnLayouts = dict[tuple[str, ...], Mapping[str, str]]
"""Maps the columns of a row to the column that each field is read from."""


class PlacedRating(NamedTuple):
    """A rating, and its place in its file: "line 7", or "row 7" if there are no lines."""

    place: str
    rating: Rating


@dataclass(frozen=True)
class Ratings:
    """The ratings of a file, in order; `name` is the file's.

    `unread` are the columns that are not used, each with a hint to the name that may have been meant.
    """

    name: str
    rows: tuple[PlacedRating, ...]
    unread: Mapping[str, str | None] = field(default_factory=dict)


class PlacedVote(NamedTuple):
    """A vote, and its place in its file."""

    place: str
    vote: Vote


@dataclass(frozen=True)
class VotesFile:
    """The votes of a file, in order.

    `columns` maps fields to the columns they are read from; `unread` as in `Ratings`.
    """

    path: str
    rows: tuple[PlacedVote, ...]
    columns: Mapping[str, str]
    unread: Mapping[str, str | None] = field(default_factory=dict)


class PlacedLabel(NamedTuple):
    """An item's label, and its place: "gold.csv, line 7". `columns` maps fields to the columns they are read from."""

    location: str
    columns: Mapping[str, str]
    label: Label


class _ItemText(RatedItem):
    """The text of an item."""

    text: str


def read_ratings(path: str | Path, columns: Mapping[str, str] = {}) -> Ratings:
    """Read the ratings of a RATINGS file.

    `columns` maps our names `item`, `reviewer`, `score`, … to the file's columns. A whole number may be a name; a score
    is a number, in CSV its text. Empty values are ignored. Raises `InputError` with file, line and field, and
    `ConfigError` if `columns` has a name that ratings do not have.
    """
    shapes: ColumnLayouts = {}
    rows = tuple(PlacedRating(place, rating) for place, rating in _read_models(Path(path), Rating, columns, shapes))
    return Ratings(Path(path).name, rows, _unread_columns(Rating, shapes))


def read_votes(path: str | Path, columns: Mapping[str, str] = {}) -> VotesFile:
    """Read the votes of a RATINGS file; `columns` as for `read_ratings`, of `item`, `annotator`, `label`, ….

    A label is a number or a word; an empty one is an abstention. In CSV, labels are numbers if all that are not empty
    are numerals, else words. Raises as `read_ratings` does.
    """
    shapes: ColumnLayouts = {}
    rows = [PlacedVote(place, vote) for place, vote in _read_models(Path(path), Vote, columns, shapes)]
    columns_used = _columns_by_field(shapes)
    if is_csv(Path(path)) and all(vote.label is None or NUMERAL.fullmatch(str(vote.label)) for _, vote in rows):
        rows = [
            PlacedVote(place, _with_numeric_label(f"{path}, {place}", columns_used["label"], vote))
            for place, vote in rows
        ]
    return VotesFile(str(path), tuple(rows), columns_used, _unread_columns(Vote, shapes))


def _columns_by_field(shapes: ColumnLayouts) -> Mapping[str, str]:
    """Return the column that each field is read from."""
    return dict(entry for fields in shapes.values() for entry in fields.items())


def _with_numeric_label(location: str, column: str, vote: Vote) -> Vote:
    """Return the vote with its label as a number."""
    if vote.label is None:
        return vote
    label = float(vote.label)
    if not math.isfinite(label):
        problem = f"is the text {quote(str(vote.label))}"
        _refuse(location, Problem((column,), problem, "write a number that a 64-bit float can hold"))
    return vote.model_copy(update={"label": label})


def read_gold(path: str | Path, columns: Mapping[str, str] = {}) -> Mapping[str, PlacedLabel]:
    """Read the gold labels of items, by key. Rows without a label are left out.

    Columns are `item`, `label`, and `agent`. Raises as `read_ratings` does, also if an item has two labels.
    """
    labels: dict[str, PlacedLabel] = {}
    shapes: ColumnLayouts = {}
    rows = list(_read_models(Path(path), LabelledItem, columns, shapes))
    columns_used = _columns_by_field(shapes)
    for place, row in rows:
        if row.label is None:
            continue
        first = labels.setdefault(row.key, PlacedLabel(f"{path}, {place}", columns_used, row.label))
        if row.label != first.label:
            problem = f"is not the label that item {quote(row.key)} has in {first.location}"
            _refuse(f"{path}, {place}", Problem((columns_used["label"],), problem, "give each item one label"))
    return labels


def read_texts(path: str | Path, columns: Mapping[str, str] = {}) -> dict[str, str]:
    """Read the texts of the items in a TEXTS file, by key; a text may be blank.

    Columns are `item`, `text`, and `agent`. Raises as `read_ratings` does, also if an item has two texts.
    """
    texts: dict[str, tuple[str, str]] = {}
    for place, row in _read_models(Path(path), _ItemText, columns, {}):
        text, first = texts.setdefault(row.key, (row.text, place))
        if text != row.text:
            problem = f"is not the text that item {quote(row.key)} has in {first}"
            column = columns.get("text", "text")
            _refuse(f"{path}, {place}", Problem((column,), problem, "give each item one text"))
    return {key: text for key, (text, _) in texts.items()}


def _read_models(
    path: Path, model: type[N], columns: Mapping[str, str], shapes: ColumnLayouts
) -> Iterator[tuple[str, N]]:
    """Yield every row as a model, with its place; fills `shapes` with the shapes of the rows."""
    wanted, csv = _candidate_columns(model, columns), is_csv(path)
    for place, values in read_placed_rows(path):
        shape = tuple(values)
        if shape not in shapes:  # most files have a single shape
            shapes[shape] = _match_columns(f"{path}, {'line 1' if csv else place}", model, wanted, shape)
        yield place, _to_model(f"{path}, {place}", model, values, shapes[shape], csv)
    if not shapes:
        needed = " and ".join(f"`{name}`" for name in _required_fields(model))
        raise InputError(f"{path}: has no rows; write one a line, each with {needed}")
    for column in columns.values():
        if not any(column in shape for shape in shapes):
            raise _missing_column_error(str(path), (column,), {name: None for shape in shapes for name in shape})


def _unread_columns(model: type[FrozenModel], shapes: ColumnLayouts) -> Mapping[str, str | None]:
    """Return the columns that no field is read from, sorted by name, with a hint to the field that may be meant."""
    read_fields = {name for fields in shapes.values() for name in fields}
    used = {column for fields in shapes.values() for column in fields.values()}
    missing_fields = [name for name in model.model_fields if name not in read_fields]
    unused = sorted({column for shape in shapes for column in shape} - used)
    return {
        column: None if column in model.model_fields else did_you_mean(column.casefold(), missing_fields)
        for column in unused
    }


def _required_fields(model: type[FrozenModel]) -> list[str]:
    return [name for name, field in model.model_fields.items() if field.is_required()]


def _candidate_columns(model: type[FrozenModel], columns: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return for each field the columns that it may be read from."""
    for name in columns:
        if name not in model.model_fields:
            known = f"known here: {', '.join(model.model_fields)}"
            hint = did_you_mean(name, model.model_fields) or known
            raise ConfigError(f"columns: {quote(name)} is nothing that such a file says; {hint}")
    candidates = {name: tuple(filter(None, (_ALIASES.get(name), name))) for name in model.model_fields}
    return candidates | {name: (column,) for name, column in columns.items()}


def _match_columns(
    location: str, model: type[FrozenModel], wanted: Mapping[str, Sequence[str]], shape: Sequence[str]
) -> Mapping[str, str]:
    """Return the column of each field that rows of this shape have."""
    column_of = {}
    for name, columns in wanted.items():
        present = [column for column in columns if column in shape]
        if len(present) > 1:
            names = " and ".join(map(repr, present))
            raise InputError(
                f"{location}: has the columns {names}, which say the same; keep one, or say which is meant"
            )
        if present:
            column_of[name] = present[0]
        elif name in _required_fields(model):
            raise _missing_column_error(location, columns, shape)
    return column_of


def _missing_column_error(location: str, columns: Iterable[str], present: Iterable[str]) -> InputError:
    hints = (did_you_mean(column, present) for column in columns)
    hint = next(filter(None, hints), f"name one that is there: {shorten(', '.join(present), 200)}")
    return InputError(f"{location}: has no column {' or '.join(map(quote, columns))}; {hint}")


def _to_model(location: str, model: type[N], values: Row, columns: Mapping[str, str], csv: bool) -> N:
    """Return a row as a model."""
    fields = {name: _normalize(name, values[column]) for name, column in columns.items()}
    if csv:  # undo the escaping of exported rewards
        fields |= {
            name: unescape_formulas(value)
            for name, value in fields.items()
            if name in _TEXT_FIELDS and isinstance(value, str)
        }
    if csv and "score" in fields:
        fields["score"] = _parse_number(location, columns["score"], fields["score"])
    nonempty = {name: value for name, value in fields.items() if value != "" or model.model_fields[name].is_required()}
    try:
        return model.model_validate(nonempty)
    except ValidationError as error:
        problem = describe_validation_error(error, model, nonempty)
        _refuse(location, Problem((columns[str(problem.path[0])], *problem.path[1:]), problem.problem, problem.remedy))


def _normalize(name: str, value: Any) -> Any:
    """Normalize a value: names are text, and a blank name is empty; a blank label is None."""
    if name == "label" and isinstance(value, str):
        return value.strip() or None
    if name not in _TEXT_FIELDS:
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= MAX_INT_BITS:
        return str(value)
    return "" if isinstance(value, str) and not value.strip() else value


def _parse_number(location: str, column: str, text: str) -> float:
    """Parse the number in a value of a CSV file."""
    if NUMERAL.fullmatch(text.strip()) is None:
        problem = f"is the text {quote(text)}" if text.strip() else "is empty"
        _refuse(location, Problem((column,), problem, "write a number, such as 3 or 3.5"))
    return float(text)


def _refuse(location: str, problem: Problem) -> NoReturn:
    raise InputError(f"{location}, field {problem.field}: {problem}")


_BREAKS = r"\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029;"
"""Characters that a reader may take for the end of a cell: line breaks, tabs and semicolons."""

QUOTED_CHARACTERS = "\r\n\t\v\f\x1c\x1d\x1e\x85\u2028\u2029;"
"""The same as characters: a cell that contains one has to be quoted."""

_SIGNS = "=+\\-@＝＋－＠"
_FORMULA = re.compile(rf"^[ \0]*'*(?=[{_BREAKS}])|(?:^|[{_BREAKS}])[ \0]*'*(?=[{_SIGNS}])")
_NEUTRALISED = re.compile(rf"((?:^|[{_BREAKS}])[ \0]*'*)'(?=[{_SIGNS}])|(^[ \0]*'*)'(?=[{_BREAKS}])")


def escape_formulas(text: str) -> str:
    """Insert an apostrophe before characters with which a spreadsheet may begin a formula.

    These are `=`, `+`, `-` and `@` at the start of the text or after a break in it, and a break at the start.
    """
    return _FORMULA.sub(r"\g<0>'", text)


def unescape_formulas(text: str) -> str:
    """Return the text before it was neutralised."""
    return _NEUTRALISED.sub(lambda match: match[1] if match[2] is None else match[2], text)


_MAX_BYTES = 64 << 20
_TOO_LARGE = "has over 64 MB, which no confusions have; name the file that `jurygraph consensus --artifact` wrote"
_REWRITE_HINT = "have `jurygraph consensus --artifact` write it again"


def confusions_to_json(confusions: Confusions) -> bytes:
    """Return the content of the file: the model's fields, and its digest."""
    return json.dumps({**confusions.model_dump(mode="json"), "digest": confusions.digest}).encode() + b"\n"


def read_confusions(path: str | Path) -> Confusions:
    """Read a file of `written`. Raises `InputError` with file and field if it is another file, or was changed."""
    content = _read_object(Path(path))
    digest = content.pop("digest", None)
    if digest is None:
        raise InputError(f"{path}, field digest: is missing; {_REWRITE_HINT}")
    try:
        confusions = Confusions.model_validate(content)
    except ValidationError as error:
        problem = describe_validation_error(error, Confusions, content)
        raise InputError(f"{path}, field {problem.field}: {problem}") from None
    if digest != confusions.digest:
        raise InputError(f"{path}, field digest: is not that of the rest, which was changed; {_REWRITE_HINT}")
    return confusions


def _read_object(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = from_json(read_whole(str(path), file, _MAX_BYTES, _TOO_LARGE), allow_inf_nan=False)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); name a file that can be read") from None
    except ValueError as error:
        raise InputError(f"{path}: is not valid JSON ({error}); {_REWRITE_HINT}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: is {describe_value(content)}; confusions are a JSON object; {_REWRITE_HINT}")
    return content
