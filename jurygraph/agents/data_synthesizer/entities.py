"""Contrasts of a name: what a response says of one row of a table, said of another of which it is not true."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jurygraph.agents.data_synthesizer.edits import Edit, replaced
from jurygraph.agents.facts.names import missing, normalised, shown, valued
from jurygraph.agents.facts.opening import facts_of
from jurygraph.agents.facts.tables import Table
from jurygraph.schema import TaskView

MOST_ROWS = 1_000
"""Rows of one table that are looked at."""
_SHORTEST = 3
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
    names = {str(row.get(column)) for row in rows if len(str(row.get(column) or "")) >= _SHORTEST}
    for row in rows:
        name = str(row.get(column) or "")
        found = _stands(name, text) if name in names else None
        if found is None:
            continue
        line = text[text.rfind("\n", 0, found.start()) + 1 : (text + "\n").find("\n", found.end())]
        for said in _told(row, line, set(table.stated.key)):
            other = _contradicting(row, said, rows, column, text)
            if other is not None:
                says = f"{said} of {other[column]!r} is {shown(valued(other.get(said))) or 'not told'}, not {row[said]}"
                yield replaced("entity", *found.span(), str(other[column]), says)
                break


def _told(row: Row, line: str, key: set[str]) -> Iterator[str]:
    """The columns of a row, the key's apart, whose value stands in the line."""
    for column in sorted(row.keys() - key):
        value = shown(valued(row[column]))
        if not missing(row[column]) and len(value) >= 2 and _stands(value, line):
            yield column


def _contradicting(row: Row, said: str, rows: Sequence[Row], column: str, text: str) -> Row | None:
    """The first row of another name that says something else there, and that the response does not name."""
    mine = normalised(row[column])
    namesakes: dict[str, set[str]] = {}
    for one in rows:
        namesakes.setdefault(normalised(one.get(column)), set()).add(shown(valued(one.get(said))))
    told = shown(valued(row[said]))
    for one in rows:
        name = normalised(one.get(column))
        if name and name != mine and told not in namesakes[name] and _stands(str(one[column]), text) is None:
            return one
    return None


def _stands(what: str, text: str) -> "re.Match[str] | None":
    return re.search(rf"(?<!\w){re.escape(what)}(?!\w)", text)
