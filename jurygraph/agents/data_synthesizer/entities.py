"""Contrasts of a name: the name of one table row is replaced by another for which the statement is false."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from jurygraph.agents.data_synthesizer.edits import Edit, replace_passage
from jurygraph.agents.data_synthesizer.sentence_forms import UNCERTAIN_WORDS
from jurygraph.agents.facts.loader import load_facts
from jurygraph.agents.facts.names import is_missing, normalise, number_or_value, to_text
from jurygraph.agents.facts.tables import Table
from jurygraph.schema import TaskView

MOST_ROWS = 1_000
"""The largest number of rows read per table."""
MOST_NAMES = 20
"""The largest number of names per table that are searched in a text."""
_MIN_NAME_LENGTH = 3
_COMPARES = re.compile(r"\b(?:than|instead|rather|above|below|under|over|least|most|too)\b", re.IGNORECASE)
"""Comparing and excluding words: a name in such a line may not be what the rest of the line describes."""
Row = Mapping[str, Any]


def other_name_edits(text: str, view: TaskView) -> Iterator[Edit]:
    """Yield edits that swap a name from a task's table for a name with another value in that table.

    The line of the name must contain a table value of it, which becomes false. Tables in the task and in files are
    read, 1,000 rows of each; tools list no rows.
    """
    if view.facts is None:
        return
    for table in load_facts(view).tables.values():
        yield from _edits_from_table(text, table, table.first_rows(MOST_ROWS))


def _edits_from_table(text: str, table: Table, rows: Sequence[Row]) -> Iterator[Edit]:
    column = table.spec.key[0]
    named = [row for row in rows if len(str(row.get(column) or "")) >= _MIN_NAME_LENGTH]
    absent = [row for row in named if str(row[column]) not in text]
    for row in islice((row for row in named if str(row[column]) in text), MOST_NAMES):
        match = _find_whole(str(row[column]), text)
        line = "" if match is None else _line_of(text, match.start(), match.end())
        if match is None or _COMPARES.search(line) or UNCERTAIN_WORDS.search(line):
            continue
        for field in _columns_in_line(row, line, set(table.spec.key)):
            other_row = _first_contradicting(row, field, absent, rows, column)
            if other_row is not None:
                value = to_text(number_or_value(other_row[field]))
                says = f"{field} of {other_row[column]!r} is {value}, not {row[field]}"
                yield replace_passage("entity", *match.span(), str(other_row[column]), says)
                break


def _line_of(text: str, start: int, end: int) -> str:
    close = text.find("\n", end)
    return text[text.rfind("\n", 0, start) + 1 : len(text) if close < 0 else close]


def _columns_in_line(row: Row, line: str, key: set[str]) -> Iterator[str]:
    """Yield the columns of a row, except the key's, whose value occurs in the line."""
    for column in sorted(row.keys() - key):
        value = to_text(number_or_value(row[column]))
        if not is_missing(row[column]) and len(value) >= 2 and _find_whole(value, line):
            yield column


def _first_contradicting(row: Row, field: str, absent: Sequence[Row], rows: Sequence[Row], column: str) -> Row | None:
    """Return the first row whose name is not in the response and none of whose rows has an overlapping value."""
    value = to_text(number_or_value(row[field]))
    similar_names = {
        normalise(candidate.get(column))
        for candidate in rows
        if is_missing(candidate.get(field)) or _overlaps(value, to_text(number_or_value(candidate[field])))
    }
    return next((candidate for candidate in absent if normalise(candidate[column]) not in similar_names), None)


def _overlaps(first: str, second: str) -> bool:
    return _find_whole(first, second) is not None or _find_whole(second, first) is not None


def _find_whole(needle: str, text: str) -> "re.Match[str] | None":
    return re.search(rf"(?<!\w){re.escape(needle)}(?!\w)", text) if needle in text else None
