"""Exports of annotation tools and surveys as votes, and tables with a column for each rater.

A format yields the answers that it finds; here they become votes, one way for all: what was rated and which question
counts may be named by a user, and an answer of several values is no label.
"""

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import Field

from jurygraph.errors import InputError
from jurygraph.interchange.rows import WHOLE_NUMBER_AS_TEXT, RowKey, StrippedKey
from jurygraph.messages import (
    DECIMAL_COMMA_PATTERN,
    Problem,
    describe_decimal_comma,
    join_names,
    quote,
    select_known_names,
    shell_quote,
    validate,
)
from jurygraph.schema.frozen_model import FrozenModel, JsonMapping, LongId
from jurygraph.schema.rating import Vote
from jurygraph.sources.file_rows import NO_NAMES, NameByField
from jurygraph.sources.files import validate_at_location
from jurygraph.sources.label_words import NUMERAL_PATTERN
from jurygraph.sources.ratings import read_decimal_commas, split_column_subject
from jurygraph.sources.table_rows import (
    RowWithPlace,
    TableRow,
    column_names_location,
    leave_out_copies,
    missing_column_error,
    read_first_row,
    read_rows,
)

_LOGGER = logging.getLogger(__name__)

M = TypeVar("M", bound=FrozenModel)

OTHER_FIELDS = ("agent", "domain", "group", "text", "prompt")
"""What a row says of the rated item: who wrote it, its domain, what it shares with other items, and its texts."""


class ExportColumns(NamedTuple):
    """The fields of an export that a user names: of what was rated, the question, who answered, and each rater.

    `raters` are columns, or PERSON=COLUMN, PERSON:DIMENSION=COLUMN, as are `reasons`, of a person's labels; `others`
    are the columns of `OTHER_FIELDS` in a table with a column for each rater.
    """

    item: str | None = None
    label: str | None = None
    annotator: str | None = None
    raters: Sequence[str] = ()
    others: NameByField = NO_NAMES
    reasons: Sequence[str] = ()


class _ExportedVote(Vote):
    """A vote whose names may be whole numbers."""

    item: RowKey
    annotator: StrippedKey
    agent: StrippedKey | None = None
    domain: RowKey | None = None
    group: Annotated[LongId, WHOLE_NUMBER_AS_TEXT] | None = None
    text: str | None = None
    prompt: str | None = None
    reason: str | None = None
    location: str = Field("", exclude=True)


class ExportedAnswer(NamedTuple):
    """A person's answer, at a location and in a field of it; `fields` may name what was rated, by default in `key`.

    `question` is None where an item has one alone. `others` has `OTHER_FIELDS` of what was rated.
    """

    location: str
    field: str
    fields: JsonMapping
    key: str
    annotator: Any
    value: Any
    question: str | None = None
    others: NameByField = NO_NAMES

    def to_vote(self, item_column: str | None) -> Vote:
        """Return the answer as a vote. Raises `InputError` with the location and field."""
        where = f"{self.location}, field {self.field}"
        item = get_export_field(self.location, self.fields, item_column or self.key, "--id-column")
        label = _unwrap_label(where, self.value)
        content = {**self.others, "item": item, "annotator": self.annotator, "label": label}
        content["location"] = where
        if self.question != item:  # an item may be the question itself, in a survey
            content["dimension"] = self.question
        vote = validate(_ExportedVote, content)
        if isinstance(vote, Problem):
            if vote.field == "item":
                where = f"{self.location}, field {item_column or self.key}"
            raise InputError(f"{where}: `{vote.field}` {vote}")
        return vote


AnswerReader = Callable[[Path, ExportColumns], Iterator[ExportedAnswer]]


def read_export(read: AnswerReader, path: Path, columns: ExportColumns) -> Iterator[Vote]:
    """Yield the answers in a file as votes, those without a label too.

    Raises `InputError` with file, place and field, also where no answer is to the question that the user names.
    """
    answers = list(read(path, columns))
    if not answers:
        raise InputError(f"{path}: is empty, or nobody answered; save it again with answers")
    questions = dict.fromkeys(str(answer.question) for answer in answers)
    if columns.label is not None and columns.label not in questions:
        raise InputError(
            f"{path}: has no answers to {quote(columns.label)}; --target-column may name {join_names(questions)}"
        )
    for answer in answers:
        if columns.label in (None, answer.question):
            yield answer.to_vote(columns.item)


def read_located_rows(path: Path) -> Iterator[tuple[str, TableRow]]:
    """Yield the rows of a table or a JSON list, each with file and place."""
    return ((f"{path}, {position}", row) for position, row in read_rows(path))


def read_located_entries(path: Path, model: type[M]) -> Iterator[tuple[str, M]]:
    """Yield the rows as models, each with file and place. Raises `InputError` with these and the field."""
    for location, row in read_located_rows(path):
        yield location, validate_at_location(location, model, row)


def get_export_field(location: str, row: JsonMapping, name: str, option: str) -> Any:
    """Return the value of a field that an option names. Raises `InputError` where the row has none."""
    if name not in row:
        path, _, position = location.rpartition(", ")
        location = column_names_location(Path(path), position)
        raise missing_column_error(location, (name,), row, option)
    return row[name]


def _unwrap_label(where: str, value: Any) -> Any:
    """Return the one number or word in an answer, out of a list; None for none, or several, or an object."""
    if isinstance(value, list):
        value = value[0] if len(value) == 1 else None
    if isinstance(value, list | Mapping):
        return None
    if isinstance(value, bool):
        return float(value)
    if not isinstance(value, str):
        return value
    text = " ".join(value.split())
    if DECIMAL_COMMA_PATTERN.fullmatch(text):
        raise InputError(f"{where}: {describe_decimal_comma((), text)}")
    return float(text) if NUMERAL_PATTERN.fullmatch(text) else text or None


_RaterSubject = tuple[str, str | None]
"""A person, and the dimension that a column of theirs is of, if it names one."""


def read_wide_table_answers(path: Path, columns: ExportColumns) -> Iterator[ExportedAnswer]:
    """Yield the answers of a table with a row for each item, `item` or `id`, and a column for each rater.

    Rows without an item and without a rating, such as notes below the table, are left out, and counted.
    """
    if not columns.raters:
        raise InputError(
            "--rater-columns: is missing; name the columns of the raters, such as ann,bo, or with their people, "
            f"Ann=ann stars,Bo=bo stars; there are: {', '.join(read_first_row(path))}"
        )
    person_by_column = dict(map(_parse_rater, columns.raters))
    subject_columns = {*person_by_column, columns.item or "item", "item", "id"}
    rows = _leave_out_notes(
        path, leave_out_copies(path, read_rows(path)), person_by_column, subject_columns
    )
    people = list(dict.fromkeys(person for person, _ in person_by_column.values()))
    reason_columns = _read_reason_columns(columns.reasons, person_by_column.values(), people)
    read_names = {
        *subject_columns,
        *reason_columns.values(),
        *OTHER_FIELDS,
        *columns.others.values(),
    }
    for _, row in rows[:1]:
        unread_names = sorted(row.keys() - read_names)
        if unread_names:
            message = "%s: not read: %s; %s--column agent=C names one of agent, domain, group, text, prompt"
            reason_hint = _suggest_reason_columns(unread_names, people)
            _LOGGER.warning(message, path, join_names(unread_names), reason_hint)
    read_decimal_commas(path, rows, person_by_column)
    for position, row in rows:
        location = f"{path}, {position}"
        key = "id" if "id" in row and "item" not in row else "item"
        others = {name: row[name] for name in OTHER_FIELDS if name in row}
        for name, column in columns.others.items():
            others[name] = get_export_field(location, row, column, "--column")
        others = {name: value for name, value in others.items() if value not in (None, "")}
        for column, (person, dimension) in person_by_column.items():
            value = get_export_field(location, row, column, "--rater-columns")
            answer_fields = others
            reason_column = reason_columns.get((person, dimension))
            reason_column = reason_column or reason_columns.get((person, None))
            if reason_column is not None:
                reason = get_export_field(location, row, reason_column, "--reason-columns")
                if reason is not None and str(reason).strip():
                    answer_fields = {**others, "reason": str(reason)}
            yield ExportedAnswer(
                location, column, row, key, person, value, dimension, answer_fields
            )


def _leave_out_notes(
    path: Path,
    rows: Sequence[RowWithPlace],
    rater_columns: Collection[str],
    subject_columns: Collection[str],
) -> list[RowWithPlace]:
    """Return the rows that have an item or a rating; all, if no column is a rater's: none would have a rating."""
    kept = []
    for position, row in rows:
        has_content = any(row.get(name) not in (None, "") for name in subject_columns)
        if has_content or row.keys().isdisjoint(rater_columns):
            kept.append((position, row))
    if len(kept) < len(rows):
        note_count = len(rows) - len(kept)
        _LOGGER.warning("%s: rows left out without an item and ratings: %d", path, note_count)
    return kept


def _read_reason_columns(
    texts: Iterable[str], subjects: Collection[_RaterSubject], people: Sequence[str]
) -> dict[_RaterSubject, str]:
    """Return the column of reasons of a person, or of one dimension of theirs. Raises `InputError` for nobody's."""
    reason_columns: dict[_RaterSubject, str] = {}
    for column, (person, dimension) in map(_parse_rater, texts):
        select_known_names(
            "--reason-columns PERSON=COLUMN: nobody in --rater-columns is", [person], people
        )
        if dimension is not None and (person, dimension) not in subjects:
            raise InputError(
                f"--reason-columns {person}:{dimension}={column}: --rater-columns has no {dimension!r} of {person}"
            )
        if (person, dimension) in reason_columns:
            raise InputError(f"--reason-columns: {person} has two columns; name one")
        reason_columns[person, dimension] = column
    return reason_columns


def _parse_rater(text: str) -> tuple[str, _RaterSubject]:
    """Return a column, with its person and the dimension: COLUMN, PERSON=COLUMN or PERSON:DIMENSION=COLUMN."""
    column, person, dimension = split_column_subject(text)
    return column, (person or column, dimension or None)


def _suggest_reason_columns(names: Iterable[str], people: Iterable[str]) -> str:
    """Return the option that reads the columns that are called like a rater and a word, such as "ann comment"."""
    columns_by_person: dict[str, list[str]] = defaultdict(list)
    for person, name in product(people, names):
        is_of_person = re.match(rf"{re.escape(person)}[\W_]", name, re.IGNORECASE)
        if is_of_person:
            columns_by_person[person].append(name)
    pairs = []
    for person, columns in columns_by_person.items():
        if len(columns) == 1:  # of several, none can be chosen
            pairs.append(f"{person}={columns[0]}")
    if not pairs:
        return ""
    return f"if these are reasons, --reason-columns {shell_quote(','.join(pairs))}; "
