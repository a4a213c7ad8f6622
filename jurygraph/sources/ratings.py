"""RATINGS, one rating or vote per row, and TEXTS, with the texts of rated items.

Files are CSV or JSONL, gzipped or not, Parquet or Excel; texts that were escaped in CSV cells are restored on reading.
"""

import json
import logging
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from jurygraph.errors import ConfigError, InputError
from jurygraph.messages import (
    DECIMAL_COMMA_PATTERN,
    MAX_INT_BITS,
    Problem,
    describe_decimal_comma,
    did_you_mean,
    join_names,
    quote,
    select_known_names,
    split_names,
    validate,
)
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Id, JsonFields, Number, StrictBool, StrPath
from jurygraph.schema.rating import (
    JudgedLabel,
    Label,
    LabelledItem,
    RatedItem,
    Rating,
    Vote,
)
from jurygraph.sources.csv_text import unescape_formulas
from jurygraph.sources.file_rows import NO_NAMES, FileRows, N, NameByField
from jurygraph.sources.files import (
    raise_field_error,
    refuse_repeated_sources,
)
from jurygraph.sources.label_words import (
    DECISION_BY_WORD,
    LABEL_FIELDS,
    NUMERAL_PATTERN,
    ClassesByQuestion,
    LabelChoice,
    describe_invalid_label,
    fold_classes,
    fold_word,
    parse_classes,
    place_word,
    read_decisions,
    select_classes,
)
from jurygraph.sources.people import (
    EVERYBODY,
    PeopleChoice,
    item_of,
    keep_rows,
    select_people,
)
from jurygraph.sources.table_rows import (
    RowWithPlace,
    TableRow,
    column_names_location,
    find_column,
    fold_heading,
    is_csv,
    missing_column_error,
    read_csv_layout,
    read_first_row,
    read_rows,
    table_suffix,
)

_LOGGER = logging.getLogger(__name__)

V = TypeVar("V", bound=Vote)
D = TypeVar("D", Rating, Vote)
T = TypeVar("T", bound=RatedItem)

_COLUMN_ALIASES = {
    "reviewer": "annotator",
    "score": "label",
    "annotator": "reviewer",
    "label": "score",
    "id": "item",
    "target": "label",
    "prompt": "question",
}
"""Alternative names of columns in a file."""

_PERSON_HEADINGS = set("annotator reviewer rater labeller labeler workerid".split())
"""What files call the column of who rated, by `fold_heading`; the last one is of Mechanical Turk."""

_RATINGS_COLUMN_NAMES = {*Rating.model_fields, *Vote.model_fields}
"""Every column that RATINGS may have, read or not."""

_TEXT_FIELD_NAMES = set(
    "item agent reviewer annotator dimension domain group id other question prompt split".split()
)
_MTURK_CHOICE_PATTERN = re.compile(r"(Answer\..+\.).+")
NO_LABEL_DESCRIPTION = "an empty cell, or n/a, NA, unsure, ? or -"
_WIDE_TABLE_HINT = (
    "if each person has a column, or a file, make a label of each cell by `jurygraph import wide FILE --rater-columns "
    "PERSON=COLUMN`"
)
_WIDE_TABLE_COLUMNS = ("item", "label", "score", "annotator", "reviewer")
"""What a file lacks in which each person has a column."""


def select_dimension(files: Sequence[FileRows[D]], name: str | None) -> Sequence[FileRows[D]]:
    """Return the files with the ratings of one dimension; all ratings if `name` is None.

    A rating without a dimension is of the one that its column of scores or labels is called by, if that is `name` or in
    any file; a warning counts the others where `name` leaves them out. Raises `InputError` for a name of none.
    """
    columns = {name, *(rating.dimension for file in files for _, rating in file.rows)}
    files = [_name_dimension(file, columns) for file in files]
    if name is None:
        return files
    dimensions = {rating.dimension for file in files for _, rating in file.rows}
    select_known_names("--dimension: no rating is of", [name], sorted(filter(None, dimensions)))
    for file in files:
        unnamed_count = sum(rating.dimension is None for _, rating in file.rows)
        if unnamed_count:
            message = (
                "%s: rows without a `dimension` beside others, left out by --dimension: %d; "
                "if they are of it, name it in each, or call their column of labels by it"
            )
            _LOGGER.warning(message, file.path, unnamed_count)
    return keep_rows(files, "dimension", [name])


def _name_dimension(file: FileRows[D], names: Collection[str | None]) -> FileRows[D]:
    """Return the file with the dimension of ratings without one: what their column is called by, if in `names`."""
    column = file.columns.get("score", file.columns.get("label"))
    return _fill_dimension(file, column) if column in names else file


def _fill_dimension(file: FileRows[D], name: str | None) -> FileRows[D]:
    update = {"dimension": name}
    rows = (
        (position, rating if rating.dimension else rating.model_copy(update=update))
        for position, rating in file.rows
    )
    return replace(file, rows=tuple(rows))


def read_rating_files(
    paths: Sequence[Path],
    columns: NameByField,
    options: NameByField,
    people: PeopleChoice = EVERYBODY,
    dimension: str | None = None,
    classes: Sequence[str] | None = None,
    level: str | None = None,
) -> Sequence["RatingsFile"]:
    """Read the ratings of files by `read_ratings`, of the `people`, and of one dimension if one is named.

    With the `level` of an agreement, labels may be words of the `classes` (`parse_classes`), or any without order; and
    where no rating names its dimension, it is what the column of scores is called by, but for `score` and `label`.
    Where all of a file that name one name the same, the others are of it.
    Raises `InputError` for classes of a dimension that no rating is of, nor any column.
    """
    choice = None
    if level:
        choice = LabelChoice(
            lambda name: dimension in (None, name),
            fold_classes(parse_classes(classes)),
            open_classes={} if level == "nominal" else None,
        )
    files = []
    for path, file_columns in iter_file_columns(paths, columns):
        file = read_ratings(path, file_columns, options, choice)
        names = {rating.dimension for _, rating in file.rows if rating.dimension}
        if len(names) == 1:
            file = _fill_dimension(file, *names)
        elif level and not names:
            file = _name_dimension(file, {file.columns["score"]} - {*LABEL_FIELDS})
        files.append(file)
    if choice is not None:
        choice.refuse_unread_questions(files)
    kept_files = select_people(select_dimension(files, None), "reviewer", people)
    return select_dimension(kept_files, dimension)


RatingsFile = FileRows[Rating]
VotesFile = FileRows[Vote]


class LabelWithPlace(NamedTuple):
    """An item's label, and its place: "gold.csv, line 7". `columns` maps fields to the columns they are read from."""

    location: str
    columns: NameByField
    label: Label


class PlacedLabel(JudgedLabel):
    """A label that is the place, from 0, of a word among so many classes; of none it is what a `JudgedLabel` is."""

    class_count: int = 0


class _LabelRow(JudgedLabel):
    agent: Id | None = None
    target: StrictBool | Number | None  # type: ignore[assignment]  # None in a row that nobody has labelled


class _GoldRow(LabelledItem):
    dimension: Id | None = None


class _ItemText(RatedItem):
    text: str


class _ItemPrompt(RatedItem):
    prompt: str | None = None


class _ItemPair(RatedItem):
    first: str
    second: str


def read_ratings(
    path: StrPath,
    columns: NameByField = NO_NAMES,
    options: NameByField = NO_NAMES,
    choice: LabelChoice | None = None,
) -> RatingsFile:
    """Read the ratings of a RATINGS file.

    `columns` maps our names `item`, `reviewer`, `score`, … to the file's columns; the error about a missing one names
    that of the `options`, by field, with which a user says which column is meant. Several columns of scores are joined
    by commas, each as COLUMN, DIMENSION=COLUMN or PERSON:DIMENSION=COLUMN. A whole number may be a name; a score is a
    number, in CSV its text, or empty. Empty values are ignored. Raises `InputError` with file, line and field, and
    `ConfigError` if `columns` has a name that ratings do not have.
    """
    return _read_label_columns(path, Rating, columns, options, choice)


def read_votes(
    path: StrPath,
    columns: NameByField = NO_NAMES,
    options: NameByField = NO_NAMES,
    scales: ClassesByQuestion = MappingProxyType({}),
    model: type[Vote] = Vote,
) -> VotesFile:
    """Read the votes of a RATINGS file; `columns` (`item`, `annotator`, `label`, …) and `options` as `read_ratings`.

    A label is a number or a word; an empty one is an abstention, as is a word for none (`is_no_label`), unless it is
    one of the classes of its question in `scales`: `empty` counts these. Except in JSON, numerals are numbers. Raises
    as `read_ratings` does.
    """
    return _read_labels(_read_label_columns(path, model, columns, options), scales)


def _read_labels(file: FileRows[V], scales: ClassesByQuestion) -> FileRows[V]:
    """Return the rows without the labels that are words for none, and with numbers for numerals (`read_votes`).

    Raises `InputError` for an infinite number, which no scale has.
    """
    has_quotes = table_suffix(Path(file.path)).startswith(".json")
    empty_label_count = 0
    rows = []
    for position, vote in file.rows:
        label = vote.label
        if is_no_label(label) and not _is_class(
            label, vote.dimension or file.columns["label"], scales
        ):
            label = None
            empty_label_count += 1
        elif not has_quotes and label is not None and NUMERAL_PATTERN.fullmatch(str(label)):
            label = float(label)
            if not math.isfinite(label):
                problem = Problem(
                    (file.columns["label"],),
                    f"is {quote(str(vote.label))}",
                    "write a finite number",
                )
                raise_field_error(f"{file.path}, {position}", problem)
        rows.append((position, vote.model_copy(update={"label": label})))
    return replace(file, rows=tuple(rows), empty=empty_label_count)


def _is_class(label: Label | None, question: str, scales: ClassesByQuestion) -> bool:
    classes = select_classes(scales, question)
    return str(label).casefold() in map(str.casefold, classes)


def is_no_label(label: Label | None) -> bool:
    """Return whether a label is a word for none, such as n/a or ?."""
    return isinstance(label, str) and DECISION_BY_WORD.get(fold_word(label), False) is None


def read_gold(
    path: StrPath, columns: NameByField = NO_NAMES
) -> dict[str, Mapping[str, LabelWithPlace]]:
    """Read the gold labels of items, by question and key. Rows without a label are left out.

    Columns are `item`, `label`, `agent`, and `dimension`, the question; else it is what the column of labels is called
    by. Raises as `read_ratings` does, also if an item has two labels.
    """
    file = read_validated_rows(path, _GoldRow, columns)
    rows_by_question = defaultdict(list)
    for position, row in file.rows:
        rows_by_question[row.dimension or file.columns["label"]].append((position, row))
    gold: dict[str, Mapping[str, LabelWithPlace]] = {}
    for question, rows in rows_by_question.items():
        labels = unique_value_by_item(replace(file, rows=tuple(rows)), "label")
        gold[question] = {
            key: LabelWithPlace(f"{path}, {position}", file.columns, label)
            for key, (label, position) in labels.items()
        }
    return gold


def read_judged_labels(
    paths: Sequence[Path],
    columns: NameByField = NO_NAMES,
    options: NameByField = NO_NAMES,
    responses: Mapping[str, str | None] = NO_NAMES,
    choice: LabelChoice | None = None,
    people: PeopleChoice = EVERYBODY,
) -> FileRows[JudgedLabel]:
    """Read people's labels of judged responses; `true`, `false` and numbers are targets in CSV, too.

    `columns` maps `id`, `target`, … to the files' columns; `options` as for `read_ratings`. Several of `target` are
    joined by commas, each as COLUMN, QUESTION=COLUMN or PERSON:QUESTION=COLUMN. `responses` are ids by what a label may
    name: an item that is no such name is, with "_" and its `agent`, that agent's response. A `dimension`, where the
    file has no `question`, is the question, as of ratings that are imported. Rows without a label are left out, and
    counted as `empty`. Several files are read as one, of the `people`.

    Raises as `read_ratings` does, also if a reviewer labels a response, or a question about it, twice, or nobody any,
    and for classes of a question that no label is of.
    """
    files = [
        _read_label_file(path, file_columns, options, responses, choice)
        for path, file_columns in iter_file_columns(paths, columns)
    ]
    if choice is not None:
        choice.refuse_unread_questions(files)
    file = join_files(select_people(files, "reviewer", people))
    first_place_by_subject: dict[tuple[str | None, ...], str] = {}
    for place, label in file.rows:
        subject = (label.id, label.other, label.question, label.reviewer)
        first_place = first_place_by_subject.setdefault(subject, place)
        if first_place != place:
            problem = f"{quote(label.id)} has a label in {first_place} already"
            hint = (
                "keep one of each person and question; columns `reviewer` (or --reviewer-column), `question` and "
                "`agent` tell them apart"
            )
            if options:  # of a command that has the option, too
                hint += ", and --keep-last keeps the last"
            for unread_column, suggestion in file.unread_columns.items():
                if suggestion is not None:
                    hint += f"; column {quote(unread_column)} is not read: {suggestion}"
            column = file.columns.get("id", "id")
            raise_field_error(f"{file.path}, {place}", Problem((column,), problem, hint))
    return file


def join_files(files: Sequence[FileRows[N]]) -> FileRows[N]:
    """Return the rows of files as those of one: places have the file, and columns are those that are alike in all."""
    if len(files) == 1:
        return files[0]
    rows = [(f"{place} of {file.path}", row) for file in files for place, row in file.rows]
    columns = set.intersection(*(set(file.columns.items()) for file in files))
    paths = ", ".join(file.path for file in files)
    empty_count = sum(file.empty for file in files)
    return FileRows(paths, tuple(rows), dict(columns), empty=empty_count)


def _read_label_file(
    path: Path,
    columns: NameByField,
    options: NameByField,
    responses: Mapping[str, str | None],
    choice: LabelChoice | None,
) -> FileRows[JudgedLabel]:
    column_names = read_first_row(path)
    if "dimension" in column_names and "question" not in (*column_names, *columns):
        columns = {**columns, "question": "dimension"}
    file = _read_label_columns(path, _LabelRow, columns, options, choice)
    labelled_rows = []
    empty_count = 0
    for position, row in file.rows:
        if row.target is None:
            empty_count += choice is None or not row.question or choice.is_chosen(row.question)
        else:
            name = row.id
            if row.agent is not None and name not in responses:
                name = f"{name}_{row.agent}"
            fields = {**row.model_dump(exclude={"agent"}), "id": responses.get(name) or name}
            if choice is not None:
                classes = choice.find_classes(row.question, file.columns["target"])
                fields["class_count"] = len(classes)
            labelled_rows.append((position, PlacedLabel(**fields)))
    if not labelled_rows:
        column = quote(file.columns["target"])
        raise InputError(f"{path}: no row has a label in column {column}; write one at least")
    rows = tuple(labelled_rows)
    return FileRows(file.path, rows, file.columns, file.unread_columns, empty_count)


def _read_label_columns(
    path: StrPath,
    model: type[N],
    columns: NameByField,
    options: NameByField,
    choice: LabelChoice | None = None,
) -> FileRows[N]:
    """Read the rows of a file as `read_validated_rows` does, for each of its columns of labels, if several are named.

    Those that a column is of, a question and perhaps a person, are fields of its rows. Raises `InputError` for two
    columns of one question and person.
    """
    columns = _column_by_field(model, columns)
    (label,) = {"score", "label", "target"} & model.model_fields.keys()
    (question,) = {"dimension", "question"} & model.model_fields.keys()
    (person,) = {"reviewer", "annotator"} & model.model_fields.keys()
    targets = columns.get(label, "")
    if not set(targets) & set(",=") or targets in read_first_row(path):
        return read_validated_rows(path, model, columns, options, choice=choice)
    files: dict[str, FileRows[N]] = {}
    for text in split_names(targets.removesuffix(",")):
        column, first, second = split_column_subject(text)
        subject = {question: second or first or column}
        if second:
            subject[person] = first
        names = join_names(subject.values())
        if names in files:
            raise InputError(
                f"{options.get(label, label)}: has two columns of {names}; name one, or each person's as "
                "PERSON:QUESTION=COLUMN"
            )
        label_columns = {**columns, label: column}
        file = read_validated_rows(path, model, label_columns, options, subject, choice)
        files[names] = file
    return replace(
        file,
        rows=tuple(chain.from_iterable(file.rows for file in files.values())),
        columns={**file.columns, label: targets, question: targets},
    )


def split_column_subject(text: str) -> tuple[str, str, str]:
    """Return the column in COLUMN, NAME=COLUMN or PERSON:NAME=COLUMN, and both names, each empty if it is not there."""
    subject, _, column = text.rpartition("=")
    first, _, second = subject.partition(":")
    return column.strip(), first, second


def read_texts(path: StrPath, columns: NameByField = NO_NAMES) -> dict[str, str]:
    """Read the texts of the items in a TEXTS file, by key; a text may be blank.

    Columns are `item`, `text`, and `agent`; `columns` may map others of RATINGS, which are not read. Raises as
    `read_ratings` does, also if an item has two texts.
    """
    return _read_item_values(path, _ItemText, "text", columns)


def read_prompts(path: StrPath, columns: NameByField) -> dict[str, str]:
    """Read the prompts of items, by key, as `read_texts` does; one that is missing, null or blank is none."""
    return _read_item_values(path, _ItemPrompt, "prompt", columns)


def _read_item_values(
    path: StrPath, model: type[RatedItem], field_name: str, columns: NameByField
) -> dict[str, str]:
    """Return the texts of a field, by key; other `columns` of RATINGS are passed over."""
    other_names = _RATINGS_COLUMN_NAMES - model.model_fields.keys()
    text_columns = {name: column for name, column in columns.items() if name not in other_names}
    file = read_validated_rows(path, model, text_columns)
    return {key: text for key, (text, _) in unique_value_by_item(file, field_name).items()}


def read_pairs(path: StrPath) -> dict[str, tuple[str, str]]:
    """Read the first and the second text of the pairs in a TEXTS file, by key; either may be blank.

    Columns are `item`, `first`, `second`, and `agent`. Raises as `read_texts` does.
    """
    file = read_validated_rows(path, _ItemPair)
    seconds = unique_value_by_item(file, "second")
    first_by_item = unique_value_by_item(file, "first")
    return {key: (first, seconds[key][0]) for key, (first, _) in first_by_item.items()}


def unique_value_by_item(file: FileRows[T], name: str) -> dict[str, tuple[Any, str]]:
    """Return the value of each item that has one, and its place. Raises `InputError` for an item with two."""
    found: dict[str, tuple[Any, str]] = {}
    for position, row in file.rows:
        value = getattr(row, name)
        if value is None:
            continue
        first_value, earlier_position = found.setdefault(row.key, (value, position))
        if value != first_value:
            column = file.columns[name]
            problem = f"is not the {name} that item {quote(row.key)} has in {earlier_position}"
            hint = f"give each item one {name}"
            raise_field_error(f"{file.path}, {position}", Problem((column,), problem, hint))
    return found


def read_validated_rows(
    path: StrPath,
    model: type[N],
    columns: NameByField = NO_NAMES,
    options: NameByField = NO_NAMES,
    subject: NameByField = NO_NAMES,
    choice: LabelChoice | None = None,
) -> FileRows[N]:
    """Read every row of a file as a model; `columns` and `options` as for `read_ratings`, by alternative names, too.

    The fields of the `subject` are those of every row, whatever the file has. In CSV, cells of the fields that the
    model names in `json_columns` are read as JSON. Raises as `read_ratings` does.
    """
    path = Path(path)
    columns = _column_by_field(model, columns)
    is_csv_file = is_csv(path)
    has_quotes = table_suffix(path).startswith(".json")
    rows_with_position: Sequence[RowWithPlace] = list(read_rows(path))
    if not rows_with_position:
        required_text = " and ".join(f"`{name}`" for name in _required_fields(model))
        raise InputError(f"{path}: has no rows; write one a line, each with {required_text}")
    present_columns = list(
        dict.fromkeys(chain.from_iterable(values for _, values in rows_with_position))
    )
    # of JSON, the file as a whole
    header = column_names_location(path, "row 1")
    fields = [name for name in model.model_fields if name not in subject]
    try:
        column_by_field = _match_columns(header, model, fields, columns, present_columns, options)
    except InputError:
        _refuse_title(header, rows_with_position[:5], {*columns.values(), *_required_fields(model)})
        raise
    number_columns = list(filter(None, map(column_by_field.get, LABEL_FIELDS)))
    question_column = column_by_field.get("question", column_by_field.get("dimension", "dimension"))
    read_decimal_commas(path, rows_with_position, number_columns, question_column)
    rows = []
    short_row_positions = []
    if number_columns:  # else the same rows are read for their texts
        rows_with_position = _omit_mturk_nonanswers(path, rows_with_position, number_columns)
    if "score" in column_by_field:
        read_decisions(rows_with_position, column_by_field, subject, choice)
    for position, values in rows_with_position:
        location = f"{path}, {position}"
        row = _row_to_model(
            location, model, values, column_by_field, is_csv_file, has_quotes, subject, choice
        )
        rows.append((position, row))
        if is_csv_file and None in map(values.get, column_by_field.values()):
            short_row_positions.append(position)
    if short_row_positions:
        message = "%s: ends before a cell that is read, as an empty one: %s%s"
        cut = _describe_cut(path, row) if short_row_positions[-1] == position else ""
        _LOGGER.warning(message, path, join_names(short_row_positions), cut)
    missing = [name for name in fields if name not in column_by_field]
    unread_columns: dict[str, str | None] = {}
    for column in sorted(set(present_columns) - set(column_by_field.values())):
        unread_columns[column] = None
        if column not in _RATINGS_COLUMN_NAMES:  # columns that nobody wants are many
            unread_columns[column] = did_you_mean(column.casefold(), missing, min_similarity=0.6)
    # A column of labels names their question, which files may spell in several ways: that of the user counts, and
    # `Score`, found by default, is the same one as `score` of another file.
    default_label_columns = {
        name: column.casefold()
        for name, column in column_by_field.items()
        if name not in columns and column.casefold() in LABEL_FIELDS
    }
    column_by_field |= default_label_columns | columns
    return FileRows(str(path), tuple(rows), column_by_field, unread_columns)


def _describe_cut(path: Path, row: FrozenModel) -> str:
    """Return which label may be lost, where the last line of a file is short and has no end; else nothing."""
    if path.suffix == ".gz" or path.read_bytes().endswith((b"\n", b"\r")):
        return ""
    return f"; the file ends within this line: was it cut off, and the label of {item_of(row)!r} with it?"


def _refuse_title(location: str, rows: Sequence[RowWithPlace], headings: set[str]) -> None:
    for position, values in rows:
        # below a title, one column is read
        if values and headings.issuperset(map(str, values.values())):
            raise InputError(
                f"{location}: the headings seem to be in {position}; delete the rows above"
            )


def _omit_mturk_nonanswers(
    path: Path, rows: Sequence[RowWithPlace], columns: Iterable[str]
) -> Sequence[RowWithPlace]:
    """Return the rows without the assignments that a requester of Mechanical Turk rejected.

    A radio button has a column for each value, `Answer.NAME.VALUE`: where all of them are false, one of the `columns`
    becomes empty.
    """
    if "HITId" not in rows[0][1]:
        return rows
    kept_rows = [row for row in rows if row[1].get("AssignmentStatus") != "Rejected"]
    if len(kept_rows) < len(rows):
        message = "%s: rows left out whose AssignmentStatus is Rejected: %d"
        _LOGGER.warning(message, path, len(rows) - len(kept_rows))
    for choice in filter(None, map(_MTURK_CHOICE_PATTERN.fullmatch, columns)):
        for _, row in kept_rows:
            values = [value for name, value in row.items() if name.startswith(choice[1])]
            if len(values) > 1 and set(values) == {"false"}:
                row[choice[0]] = ""
    return kept_rows


def read_decimal_commas(
    path: Path,
    rows: Sequence[RowWithPlace],
    columns: Iterable[str],
    question_column: str = "dimension",
) -> None:
    """Write points for the decimal commas in columns of numbers, as the rows of a file may have them, but for JSON.

    Where a column names questions, each is apart: one may have words. Raises `InputError` for commas that may mean
    something else, because commas separate the cells of CSV, or because other numbers have points.
    """
    if table_suffix(path).startswith(".json"):  # where numbers have no quotes
        return
    comma_count = 0
    rows_by_question = defaultdict(list)
    for row in rows:
        rows_by_question[str(row[1].get(question_column))].append(row)
    for column, question_rows in product(columns, rows_by_question.values()):
        cells = ((position, values.get(column)) for position, values in question_rows)
        # a cell of Excel may be a number
        texts = {position: cell.strip() for position, cell in cells if isinstance(cell, str)}
        numbers = [text for text in texts.values() if not is_no_label(text)]
        commas = list(filter(DECIMAL_COMMA_PATTERN.fullmatch, numbers))
        with_points = (text.replace(",", ".") for text in numbers)
        if not commas or not all(map(NUMERAL_PATTERN.fullmatch, with_points)):
            continue  # no number has a comma, or the cells are words
        has_separators = is_csv(path) and read_csv_layout(path).separator != ";"
        if has_separators or "." in "".join(numbers):
            problem = describe_decimal_comma((column,), commas[0])
            remedy = f"{problem.remedy}; so in {len(commas)} of {len(question_rows)} cells"
            position = next(position for position, text in texts.items() if text == commas[0])
            raise_field_error(f"{path}, {position}", replace(problem, remedy=remedy))
        comma_count += len(commas)
        for position, values in question_rows:
            if texts.get(position):  # an empty cell remains empty
                values[column] = texts[position].replace(",", ".")
    if comma_count:
        _LOGGER.warning(
            "%s: the commas of %d numbers are read as decimal points", path, comma_count
        )


def iter_file_columns(
    paths: Sequence[Path], columns: NameByField, optional_field: str | None = None
) -> Iterator[tuple[Path, NameByField]]:
    """Yield each of several files with the columns named for it, of which one may be in the others alone.

    A file that has the usual name instead, as those that `import` writes, is read by that, in any spelling; it may lack
    that of the `optional_field`, and some of several columns of labels. Who rated may have another name that is usual,
    and alone.
    """
    refuse_repeated_sources(paths)
    headers = {path: read_first_row(path) for path in paths if columns}
    all_columns = set(map(fold_heading, chain.from_iterable(headers.values())))
    for path in paths:
        file_columns = dict(columns)
        for name, column in columns.items():
            header = headers[path]
            missing_columns = all_columns.difference(map(fold_heading, header))
            texts = [column]
            if fold_heading(column) not in all_columns:
                texts = split_names(column.removesuffix(","))
            present_texts = [
                text
                for text in texts
                if fold_heading(split_column_subject(text)[0]) not in missing_columns
            ]
            if 0 < len(present_texts) < len(texts):
                # The comma at the end tells one of several columns from a column that is named alone.
                file_columns[name] = ",".join([*present_texts, ""])
            if present_texts:
                continue
            usual_names = {name, _COLUMN_ALIASES.get(name)}
            if usual_names.isdisjoint(map(fold_heading, header)) and name in _PERSON_HEADINGS:
                usual_names |= _PERSON_HEADINGS
            usual_columns = [text for text in header if fold_heading(text) in usual_names]
            if not usual_names.isdisjoint(header):
                del file_columns[name]
            elif len(usual_columns) == 1:
                file_columns[name] = usual_columns[0]
                _LOGGER.warning("%s: %s is read as %s", path, usual_columns[0], column)
            elif name == optional_field:
                del file_columns[name]
        yield path, file_columns


def _column_by_field(model: type[FrozenModel], columns: NameByField) -> dict[str, str]:
    """Return the columns by the names of fields. Raises ConfigError for a name that is no field's, nor its alias."""
    fields = model.model_fields
    column_by_field = {}
    for name, column in columns.items():
        alias = _COLUMN_ALIASES.get(name, "")
        uses_alias = alias in fields and alias not in columns
        column_by_field[alias if uses_alias else name] = column
    for name in column_by_field:
        if name not in fields:
            hint = did_you_mean(name, fields) or f"known here: {', '.join(fields)}"
            raise ConfigError(f"columns: {quote(name)} is not a column of such a file; {hint}")
    return column_by_field


def _required_fields(model: type[FrozenModel]) -> list[str]:
    return [name for name, field in model.model_fields.items() if field.is_required()]


def _match_columns(
    location: str,
    model: type[FrozenModel],
    fields: Sequence[str],
    columns: NameByField,
    present_columns: Sequence[str],
    options: NameByField,
) -> dict[str, str]:
    """Return the column of each of the fields of which a file with the columns `present_columns` has one."""
    candidates_by_field = {name: _candidate_columns(name, model, columns) for name in fields}
    wanted = {*columns, *_required_fields(model)}.intersection(fields)
    # Other spellings count only where the file would be refused: the digests of files read before stay as they are.
    is_refused = any(set(present_columns).isdisjoint(candidates_by_field[name]) for name in wanted)
    column_by_field = {}
    errors = []
    for name, candidates in candidates_by_field.items():
        matches = [column for column in candidates if column in present_columns]
        # whose label it is is wanted, even where a file may lack it
        if not matches and (is_refused or name == "reviewer"):
            spellings = [find_column(column, present_columns) for column in candidates]
            matches = list(filter(None, spellings))
            for column in matches:
                read_as = columns.get(name, name)
                _LOGGER.warning("%s: %s is read as %s", location, column, read_as)
        if len(matches) > 1:
            names = " and ".join(map(repr, matches))
            raise InputError(
                f"{location}: "
                f"has the columns {names}, which say the same; keep one, or say which is meant"
            )
        if matches:
            column_by_field[name] = matches[0]
        elif name in wanted:
            error = _rating_column_error(location, candidates, present_columns, options.get(name))
            errors.append(error)
    if errors and not columns:  # without named columns, it may be a file of something else
        raise errors[0]
    if errors:
        problems = [str(error).removeprefix(f"{location}: ") for error in errors]
        raise InputError(f"{location}: {'; also '.join(problems)}")
    return column_by_field


def _candidate_columns(name: str, model: type[FrozenModel], columns: NameByField) -> list[str]:
    # A row of a model with both fields says two things by the two names.
    alias = _COLUMN_ALIASES.get(name)
    other = None if alias in model.model_fields else alias
    return [columns[name]] if name in columns else [*filter(None, (other, name))]


def _rating_column_error(
    location: str, columns: Sequence[str], present_columns: Sequence[str], option: str | None
) -> InputError:
    """Return the error that a column is missing, perhaps as each person has one."""
    if "responses" in present_columns:
        return InputError(f"{location}: has `responses`, as TASKS; name the file of their RATINGS")
    error = missing_column_error(location, columns, present_columns, option)
    if option is None or columns[-1] not in _WIDE_TABLE_COLUMNS:
        return error
    return InputError(f"{error}; or {_WIDE_TABLE_HINT}")


def _row_to_model(
    location: str,
    model: type[N],
    values: TableRow,
    columns: NameByField,
    is_csv_file: bool,
    has_quotes: bool,
    subject: NameByField,
    choice: LabelChoice | None,
) -> N:
    fields: JsonFields = {**subject}
    for name, column in columns.items():
        is_required = model.model_fields[name].is_required()
        # A row of JSON may lack what others have: a field then has its default, or is empty, as a cell of CSV is.
        if column in values or is_required:
            # In CSV, a cell that is missing at the end of a line is empty.
            value = values.get(column)
            value = _normalize_cell(name, "" if is_csv_file and value is None else value)
            # a cell of Excel may have a number as text, which looks the same
            is_text_cell = is_csv_file or (name in LABEL_FIELDS and not has_quotes)
            if is_text_cell and isinstance(value, str):
                value = _parse_rating_cell(name, value, getattr(model, "json_columns", ()))
            if value != "" or is_required:
                fields[name] = value
    place_word(choice, fields, values, columns)
    entry = validate(model, fields)
    if isinstance(entry, Problem):
        field_name, *inner = entry.path
        value = fields.get(str(field_name))
        is_label = field_name == "target" or (choice and field_name == "score")
        column = columns.get(str(field_name), str(field_name))  # a file may lack the column
        is_word = isinstance(value, bool) and not has_quotes  # such as yes
        entry = replace(entry, problem=f"is {quote(str(values[column]))}") if is_word else entry
        if is_label and isinstance(value, str):
            entry = describe_invalid_label(entry, value, fields, column, choice)
        elif value == "" or (entry.problem == "is null" and not has_quotes):
            is_cut_off = is_csv_file and values.get(column) is None
            entry = _describe_empty_value(entry, is_cut_off)
        if not has_quotes and entry.remedy is not None:
            remedy = entry.remedy.replace(", without quotes", "").replace(", in quotes", "")
            entry = replace(entry, remedy=remedy)
        if field_name in LABEL_FIELDS:
            location += _describe_rated_item(fields)
        raise_field_error(location, replace(entry, path=(column, *inner)))
    return entry


def _describe_rated_item(fields: JsonFields) -> str:
    """Return what a row is about, and who labelled it, in brackets."""
    names = ("item", "id", "agent", "annotator", "reviewer")
    return f" ({', '.join(str(fields[name]) for name in names if name in fields)})"


def _describe_empty_value(problem: Problem, is_cut_off: bool) -> Problem:
    """Return the problem of an empty cell; one that its line of CSV does not even have `is_cut_off`."""
    if is_cut_off:
        return replace(problem, remedy="its line ends before it: is the file cut off there?")
    problem = replace(problem, problem="is empty")
    remedy = f"{problem.remedy}, or name another column"
    if problem.path[0] == "annotator":
        remedy += f"; or {_WIDE_TABLE_HINT}"
    return replace(problem, remedy=remedy)


def _parse_rating_cell(name: str, text: str, json_columns: Collection[str]) -> Any:
    """Return the number or the JSON in a cell of a CSV file, or its text without the escaping of exported tables."""
    value: Any = text
    if name in ("score", "target"):
        value = parse_target_cell(text)
    elif name in json_columns:
        with suppress(ValueError):  # a text that is no JSON remains, so that its field refuses it
            value = json.loads(text)
    return unescape_formulas(value) if isinstance(value, str) else value


def _normalize_cell(name: str, value: Any) -> Any:
    """Normalize a value: names are text, and a blank name is empty; a blank label is None.

    Blanks within votes are single ones: nobody sees that they are two. Digests cover the names of reviewers.
    """
    if name == "label" and isinstance(value, bool):
        return str(value).lower()
    if name in ("label", "annotator") and isinstance(value, str):
        text = " ".join(value.split())
        return None if name == "label" and not text else text
    if name == "target" and isinstance(value, str):
        return DECISION_BY_WORD.get(fold_word(value), value)
    if name == "score" and is_no_label(value):
        return None
    if name in ("agent", "reviewer") and isinstance(value, str):
        return value.strip()
    if name not in _TEXT_FIELD_NAMES:
        return value
    if type(value) is int and value.bit_length() <= MAX_INT_BITS:
        return str(value)
    return "" if isinstance(value, str) and not value.strip() else value


def parse_target_cell(text: str) -> float | bool | str | None:
    """Return the value of a cell; a text that is no number and no decision remains, so that its field refuses it."""
    word = fold_word(text)
    if word in DECISION_BY_WORD:
        return DECISION_BY_WORD[word]
    return float(word) if NUMERAL_PATTERN.fullmatch(word) else text
