"""Contrasts of a name: what a response says of one row of a table, said of another of which it is not true."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from jurygraph.agents.data_synthesizer.edits import Edit, replaced
from jurygraph.agents.data_synthesizer.wording import UNSURE
from jurygraph.agents.facts.names import missing, normalised, shown, valued
from jurygraph.agents.facts.opening import facts_of
from jurygraph.agents.facts.tables import Table
from jurygraph.schema import TaskView

MOST_ROWS = 1_000
"""Rows of one table that are looked at."""
MOST_NAMES = 20
"""Names of one table in a text that are looked at."""
_SHORTEST = 3
_NOT_STATED = re.compile(r"\b(?:than|instead|rather|above|below|under|over|least|most|too)\b", re.IGNORECASE)
"""Where a line compares or excludes, a name in it may not be what the rest is said of."""
Row = Mapping[str, Any]


def other_names(text: str, view: TaskView) -> Iterator[Edit]:
    """Each name from a table of the task, where its line tells something that the table has of it, for another name of
    which the table has something else there.

    Read are tables in the task and in files, 1,000 rows of each; a tool is asked for rows and lists none.
    """
    if view.facts is None:
        return
    for table in facts_of(view).tables.values():
        yield from _in_table(text, table, table.listed(MOST_ROWS))


def _in_table(text: str, table: Table, rows: Sequence[Row]) -> Iterator[Edit]:
    column = table.stated.key[0]
    named = [row for row in rows if len(str(row.get(column) or "")) >= _SHORTEST]
    absent = [row for row in named if str(row[column]) not in text]
    for row in islice((row for row in named if str(row[column]) in text), MOST_NAMES):
        found = _stands(str(row[column]), text)
        line = "" if found is None else _line_of(text, found.start(), found.end())
        if found is None or _NOT_STATED.search(line) or UNSURE.search(line):
            continue
        for said in _told(row, line, set(table.stated.key)):
            other = _contradicting(row, said, absent, rows, column)
            if other is not None:
                says = f"{said} of {other[column]!r} is {shown(valued(other[said]))}, not {row[said]}"
                yield replaced("entity", *found.span(), str(other[column]), says)
                break


def _line_of(text: str, start: int, end: int) -> str:
    close = text.find("\n", end)
    return text[text.rfind("\n", 0, start) + 1 : len(text) if close < 0 else close]


def _told(row: Row, line: str, key: set[str]) -> Iterator[str]:
    """The columns of a row, the key's apart, whose value stands in the line."""
    for column in sorted(row.keys() - key):
        value = shown(valued(row[column]))
        if not missing(row[column]) and len(value) >= 2 and _stands(value, line):
            yield column


def _contradicting(row: Row, said: str, absent: Sequence[Row], rows: Sequence[Row], column: str) -> Row | None:
    """The first row of a name that the response does not have and of which no row says the same there, or a part."""
    told = shown(valued(row[said]))
    alike = {
        normalised(one.get(column))
        for one in rows
        if missing(one.get(said)) or _overlap(told, shown(valued(one[said])))
    }
    return next((one for one in absent if normalised(one[column]) not in alike), None)


def _overlap(one: str, other: str) -> bool:
    return _stands(one, other) is not None or _stands(other, one) is not None


def _stands(what: str, text: str) -> "re.Match[str] | None":
    return re.search(rf"(?<!\w){re.escape(what)}(?!\w)", text) if what in text else None
