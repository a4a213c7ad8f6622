"""Whose labels count, under which names, and which of several that a person gave an item."""

import logging
import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import mktime_tz, parsedate_tz
from pathlib import Path
from typing import Any, Generic, NamedTuple

from jurygraph.errors import InputError
from jurygraph.messages import (
    Problem,
    did_you_mean,
    fold_id,
    fold_name,
    list_first,
    notes_on_similar_names,
    quote,
    select_known_names,
    split_names,
)
from jurygraph.schema.frozen_model import FrozenModel
from jurygraph.schema.rating import format_label
from jurygraph.sources.file_rows import FileRows, N
from jurygraph.sources.files import raise_field_error
from jurygraph.sources.label_words import LABEL_FIELDS
from jurygraph.sources.table_rows import (
    TableRow,
    leave_out_copies,
    missing_column_error,
    read_first_row,
    read_rows,
    warn_of_copies,
)

_LOGGER = logging.getLogger(__name__)

_SUBJECT_FIELDS = ("key", "id", "other", "question", "dimension", "reviewer", "annotator")
"""What a person labels once, in ratings, votes and labels of responses."""
_MAX_CHANGES_LISTED = 10
_HALF_DAY_PATTERN = re.compile(r"(?<![a-z])[ap]m\b", re.IGNORECASE)


def leave_out_raters(
    files: Sequence[FileRows[N]], field: str, names: str | None
) -> list[FileRows[N]]:
    """Return the files without the rows of people whom a field names; `names` are joined by commas.

    Raises `InputError` for a name of nobody, and if nobody is left.
    """
    raters = {getattr(row, field) for file in files for _, row in file.rows}
    people = sorted(filter(None, raters))
    people_named = [name for name in people if name == names]  # which may have a comma
    left_out = select_known_names(
        "--without: nobody is", people_named or split_names(names), people
    )
    if left_out and raters <= set(left_out):
        raise InputError(f"--without: is {names}, and nobody is left; leave out fewer")
    return keep_rows(files, field, raters - set(left_out))


@dataclass(frozen=True, kw_only=True)
class PeopleChoice:
    """Whose labels of files count, and under which names.

    Attributes:
        without: names of people who are left out, joined by commas.
        same_names: whether names that differ in case, spaces or Unicode form alone are one, as most rows spell it.
        same_person: other names of people, each as OTHER=NAME.
        keep_last: whether of several labels of an item by a person the last counts.
        last_by: the column by which it is the last; None: the order of the rows.
        spellings: names as a run has them, which others are to become; no option.
    """

    without: str | None = None
    same_names: bool = False
    same_person: Sequence[str] | None = None
    keep_last: bool = False
    last_by: str | None = None
    spellings: Collection[str] = ()

    @property
    def value_by_option(self) -> dict[str, Any]:
        return {f"--{name.replace('_', '-')}": value for name, value in vars(self).items()}


EVERYBODY = PeopleChoice()


def item_of(row: FrozenModel) -> str:
    """Return the item of a rating, or the id of the row of a table that is rated."""
    return str(getattr(row, "item", None) or getattr(row, "id", ""))


def select_people(
    files: Sequence[FileRows[N]], field: str, people: PeopleChoice, counts_repeats: bool = False
) -> list[FileRows[N]]:
    """Return the rows of files that count; the `field` of a row has the name of its person, one for each.

    Rows that repeat another one in every column count only if that is wanted. Raises `InputError` as `merge_names`,
    `keep_last_labels` and `leave_out_raters` do. A warning names items whose ids are nearly alike.
    """
    items = [item_of(row) for file in files for _, row in file.rows]
    for note in notes_on_similar_names(items, "", fold_id, "case, blanks, signs or zeros in front"):
        _LOGGER.warning(note)
    files = merge_names(files, field, people)
    if people.keep_last or people.last_by is not None:
        files = keep_last_labels(files, people.last_by)
    elif not counts_repeats:
        files = list(map(drop_repeated_labels, files))
    return leave_out_raters(files, field, people.without)


def merge_names(
    files: Sequence[FileRows[N]], field: str, people: PeopleChoice
) -> Sequence[FileRows[N]]:
    """Return the files with one name for each person: that of `--same-person`, or as a run or most rows spell it.

    Raises `InputError` for a name in `--same-person` that no row has, or a new one that is nearly a person's.
    """
    if not (people.same_names or people.same_person):
        return files
    names = (getattr(row, field) for file in files for _, row in file.rows)
    counts = Counter(filter(None, names))
    name_by_other = {}
    for pair in people.same_person or ():
        other, _, name = pair.partition("=")
        if not name:
            raise InputError(f"--same-person {pair}: expected OTHER=NAME, such as petra_h=Petra")
        name_by_other[other] = name
    select_known_names("--same-person: nobody is", list(name_by_other), sorted(counts))
    for other, name in name_by_other.items():
        if name not in counts and name not in people.spellings:
            # less alike are people of one family: Bea Keller is not Ana Keller, nor is rater_01 rater_02
            hint = did_you_mean(name, counts.keys() - {other}, min_similarity=0.85)
            if hint and not name[-1].isdigit():
                raise InputError(f"--same-person {other}={name}: nobody is {name!r}; {hint}")
            _LOGGER.warning("--same-person: %s is a new name, of %s", name, other)
    spelling = {fold_name(name): name for name in people.spellings if people.same_names}
    new_names = {}
    for other, _ in counts.most_common():
        name = name_by_other.get(other, other)
        key = fold_name(name) if people.same_names else name
        new_names[other] = spelling.setdefault(key, name)
    merged_files = []
    for file in files:
        rows = (
            (position, row.model_copy(update={field: new_names.get(getattr(row, field))}))
            for position, row in file.rows
        )
        merged_files.append(replace(file, rows=tuple(rows)))
    return merged_files


def keep_rows(
    files: Sequence[FileRows[N]], field: str, values: Collection[object]
) -> list[FileRows[N]]:
    return [
        replace(file, rows=tuple(row for row in file.rows if getattr(row[1], field) in values))
        for file in files
    ]


def drop_repeated_labels(file: FileRows[N]) -> FileRows[N]:
    """Return the file without rows that repeat another one in every column; a warning counts them.

    A column that nobody reads counts, too: it may name the agent, or the question, of what was labelled.
    """
    path = Path(file.path)
    positions = {position for position, _ in leave_out_copies(path, read_rows(path))}
    return replace(file, rows=tuple(row for row in file.rows if row[0] in positions))


def keep_last_labels(
    files: Sequence[FileRows[N]], time_column: str | None = None
) -> list[FileRows[N]]:
    """Return the files with one row for each item, or question about it, and person: the last one that has a label.

    Files and rows are in the order of time, unless a column has the times, which may be equal. A warning says what was
    changed, and which files the kept labels are of; a row without a label, after one that has, changes nothing. Rows
    that were pasted twice are counted apart. To be called in the place of `drop_repeated_labels`, which takes an answer
    that was changed, and changed back, for a copy of the first. Raises `InputError` for a time that cannot be read.
    """
    last_row_by_subject: dict[tuple[str | None, ...], _RowInFile[N]] = {}
    blank_count = 0
    repeats = []
    copies = set()
    for placed_row in _list_rows_in_time(files, time_column):
        subject = tuple(getattr(placed_row.row, name, None) for name in _SUBJECT_FIELDS)
        earlier = last_row_by_subject.get(subject)
        if earlier is None or placed_row.label is not None:
            last_row_by_subject[subject] = placed_row
        if earlier is None or earlier.label is None:
            continue
        if (earlier.file, earlier.cells) == (placed_row.file, placed_row.cells):
            copies.add((placed_row.file.path, placed_row.position))
        else:
            blank_count += placed_row.label is None
            repeats.append((", ".join(filter(None, subject)), earlier, placed_row))
    for path, count in Counter(path for path, _ in copies).items():
        warn_of_copies(path, count)
    kept_rows = {id(last_row.row) for last_row in last_row_by_subject.values()}
    kept_files = [
        # equal rows are several
        replace(file, rows=tuple(row for row in file.rows if id(row[1]) in kept_rows))
        for file in files
    ]
    changes = [
        f"{name}: {earlier.description} → {later.description}"
        for name, earlier, later in repeats
        if later.label not in (None, earlier.label)
    ]
    if repeats:
        message = (
            "labels left out, since the person labelled the item again: %d; the last is by %s; later rows without a "
            "label, after which the one before is kept: %d; labels with another value: %d%s"
        )
        _LOGGER.warning(
            message,
            len(repeats) - blank_count,
            time_column or "row and file, or by --last-by COLUMN",
            blank_count,
            len(changes),
            "\n  ".join(["", *list_first(changes, _MAX_CHANGES_LISTED)]),
        )
    return kept_files


class _RowInFile(NamedTuple, Generic[N]):
    file: FileRows[N]
    position: str
    row: N
    cells: TableRow

    @property
    def label(self) -> str | None:
        labels = [getattr(self.row, name, None) for name in LABEL_FIELDS]
        return next((format_label(label) for label in labels if label is not None), None)

    @property
    def description(self) -> str:
        return f"{self.label} ({self.position} of {self.file.name})"


def _list_rows_in_time(files: Sequence[FileRows[N]], column: str | None) -> list[_RowInFile[N]]:
    """Return the rows of all files, in the order of the times in a column, if one is named.

    Rows without a label come first. Files without the column, such as sheets that came back, come last.
    """
    placed_rows = []
    dated_paths = set()
    for file in files:
        cells_by_position = dict(read_rows(Path(file.path)))
        for position, row in file.rows:
            placed_rows.append(_RowInFile(file, position, row, cells_by_position[position]))
        if any(cells.get(column or "") for cells in cells_by_position.values()):
            dated_paths.add(file.path)
    if column is None:
        return placed_rows
    if not dated_paths:
        path = files[0].path
        raise missing_column_error(path, [column], read_first_row(path), "--last-by")

    def read_time(row: _RowInFile[N]) -> float:
        if row.file.path not in dated_paths:
            return math.inf
        if row.label is None:
            return 0.0
        return _parse_time(f"{row.file.path}, {row.position}", column, str(row.cells.get(column)))

    return sorted(placed_rows, key=read_time)


def _parse_time(location: str, column: str, text: str) -> float:
    """Return a time in seconds, as Mechanical Turk and mails write it, or ISO 8601."""
    # parsedate_tz ignores PM: 2:05 PM would be before 9:00 AM
    parsed = None if _HALF_DAY_PATTERN.search(text) else parsedate_tz(text)
    if parsed is not None:
        return mktime_tz(parsed)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        problem = Problem((column,), f"is {quote(text)}", "write 2026-11-30 14:05")
        raise_field_error(location, problem)
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
