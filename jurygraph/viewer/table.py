"""The table of responses: what the URL asks for, as a query of the index. Pages follow each other by keys, not offsets.

An offset would count through all rows before it, and would repeat or skip rows while a run grows.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self
from unicodedata import normalize
from urllib.parse import urlencode

from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean
from jurygraph.viewer.index import RunIndex

PAGE_ROWS = 50
_FIXED = ("response", "task", "agent", "status", "reward", "coverage")
_SOURCES = {
    "response": "responses.name",
    "task": "tasks.name",
    "agent": "agents.name",
    "status": "responses.status",
    "reward": "responses.reward",
    "coverage": "responses.coverage",
    "failed": "responses.failed",
    "unsupported": "responses.unsupported",
    "calls": "responses.calls",
    "cost": "responses.cost",
    "gates": "nullif(responses.gates, '')",
    "at": "responses.at",
}
"""By fixed column: the expression of its value."""
_JOINS = """
    FROM responses JOIN names AS tasks ON tasks.number = responses.task
    LEFT JOIN names AS agents ON agents.number = responses.agent
"""
_TEXTS_WITH = "SELECT rowid FROM texts WHERE texts MATCH ?"
_QUERIES_WITH = "SELECT rowid FROM queries WHERE queries MATCH ?"


@dataclass(frozen=True, kw_only=True)
class TableQuery:
    """The selection, order and columns of the table, as they stand in the URL; an empty text selects everything.

    Attributes:
        search: words of the query, the response or a reason; all of them must occur.
        status: ok, degraded or failed; `gated` for any that a gate changed.
        failure: cause and kind of a failed verdict.
        judge: a model that gave one of the verdicts.
        sort: the name of a column, after a minus for the reverse order; values that are missing come last.
        columns: names of more columns, by commas.
        after: the key of the last row of the page before.
    """

    search: str = ""
    status: str = ""
    agent: str = ""
    task: str = ""
    failure: str = ""
    judge: str = ""
    sort: str = ""
    columns: str = ""
    after: str = ""

    @classmethod
    def from_url(cls, parameters: Mapping[str, str]) -> Self:
        """Return the query of a URL, whose other parameters are ignored."""
        names = [field.name for field in fields(cls)]
        return cls(**{name: parameters[name] for name in names if name in parameters})

    def to_url(self, **changes: str) -> str:
        """Return the query with some changes as the part of a URL after the question mark; a change begins anew."""
        changed = replace(self, **{"after": "", **changes})
        values = {field.name: getattr(changed, field.name) for field in fields(self)}
        return urlencode({name: value for name, value in values.items() if value})

    @property
    def sort_column(self) -> str:
        return self.sort.removeprefix("-")

    @property
    def is_descending(self) -> bool:
        return self.sort.startswith("-")


class ResponseRow(NamedTuple):
    """A row: the response, and its values by column."""

    response: str
    values: Sequence[Any]


@dataclass(frozen=True, kw_only=True)
class TablePage:
    """A page of the table. `following` is the key of the next page, empty on the last; `total` counts all rows."""

    query: TableQuery
    columns: Sequence[str]
    rows: Sequence[ResponseRow]
    total: int
    following: str


class Facet(NamedTuple):
    """A value that rows may be selected by, with the number of responses that have it."""

    value: str
    responses: int


def read_page(index: RunIndex, query: TableQuery, rows: int = PAGE_ROWS) -> TablePage:
    """Return a page of the table. Raises `InputError` for an unknown column."""
    columns = list_columns(index, query)
    conditions, values = _conditions(index, query)
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    ((total,),) = index.fetch(f"SELECT count(*) {_JOINS} {where}", *values)
    order, key = _order(index, query)
    if query.after:
        condition, position = _position(query, key)
        where = f"{where} AND {condition}" if where else f"WHERE {condition}"
        values += position
    selected = ", ".join(expression_of(index, column) for column in columns)
    found = index.fetch(
        f"SELECT responses.number, {key}, responses.name, {selected} {_JOINS} {where} {order} LIMIT ?",
        *values,
        rows + 1,
    )
    following = ""
    if len(found) > rows:
        number, value, *_ = found[rows - 1]
        following = json.dumps([value, number])
    table_rows = [ResponseRow(response=name, values=row) for _, _, name, *row in found[:rows]]
    return TablePage(
        query=query, columns=columns, rows=table_rows, total=total, following=following
    )


def list_columns(index: RunIndex, query: TableQuery) -> list[str]:
    """Return the columns of a page: the fixed ones, the components, and those that are chosen."""
    chosen = [name for name in query.columns.split(",") if name]
    return list(dict.fromkeys([*_FIXED, *index.names("component"), *chosen]))


def expression_of(index: RunIndex, column: str) -> str:
    """Return the SQL expression of a column's value. Raises `InputError` for an unknown column."""
    if column in _SOURCES:
        return _SOURCES[column]
    number = index.names("component").get(column)
    if number is not None:
        return f"(SELECT counted FROM components WHERE component = {number} AND response = responses.number)"
    number = index.names("question").get(column)
    if number is not None:
        return f"(SELECT avg(score) FROM verdicts WHERE question = {number} AND response = responses.number)"
    columns = [*_SOURCES, *index.names("component"), *index.names("question")]
    hint = did_you_mean(column, columns) or f"known: {', '.join(columns)}"
    raise InputError(f"there is no column {column!r}; {hint}")


def list_facets(index: RunIndex) -> dict[str, list[Facet]]:
    """Return the statuses, agents and failures of a run by the field of the query, the most frequent first."""
    statuses = index.fetch("SELECT status, count(*) FROM responses GROUP BY status")
    statuses += index.fetch(
        "SELECT 'gated', count(*) FROM responses WHERE gates <> '' HAVING count(*)"
    )
    agents = index.fetch(
        "SELECT names.name, count(*) FROM responses JOIN names ON names.number = agent GROUP BY agent"
    )
    failures = index.fetch(
        "SELECT names.name, count(DISTINCT response) FROM verdicts JOIN names ON names.number = failure"
        " GROUP BY failure"
    )
    found = {"status": statuses, "agent": agents, "failure": failures}
    return {
        field: sorted(
            (Facet(*row) for row in rows), key=lambda facet: (-facet.responses, facet.value)
        )
        for field, rows in found.items()
    }


def _conditions(index: RunIndex, query: TableQuery) -> tuple[list[str], list[Any]]:
    """Return the conditions of a query and their values."""
    conditions = []
    values: list[Any] = []
    sought = query.search.strip()
    if sought:
        alternatives = ["responses.name = ?", "tasks.name = ?"]
        values += [sought, sought]
        # As the index cuts texts into words: it has no positions, so that nothing between them may be asked for.
        words = re.findall(r"[^\W_]+", normalize("NFC", sought))
        if words:
            matched = " ".join(f'"{word}"' for word in words)
            alternatives.append(f"responses.number IN ({_TEXTS_WITH})")
            alternatives.append(f"responses.task IN ({_QUERIES_WITH})")
            values += [matched, matched]
        conditions.append(f"({' OR '.join(alternatives)})")
    if query.status == "gated":
        conditions.append("responses.gates <> ''")
    elif query.status:
        conditions.append("responses.status = ?")
        values.append(query.status)
    for field, source in (("agent", "agents.name"), ("task", "tasks.name")):
        if getattr(query, field):
            conditions.append(f"{source} = ?")
            values.append(getattr(query, field))
    for field in ("failure", "judge"):
        if getattr(query, field):
            number = index.names(field).get(getattr(query, field), -1)
            conditions.append(
                f"responses.number IN (SELECT response FROM verdicts WHERE {field} = ?)"
            )
            values.append(number)
    return conditions, values


def _order(index: RunIndex, query: TableQuery) -> tuple[str, str]:
    """Return the ORDER BY of a query, and the expression of its key; without a column in the order of the run."""
    key = expression_of(index, query.sort_column) if query.sort else "NULL"
    direction = "DESC" if query.is_descending else "ASC"
    return f"ORDER BY {key} IS NULL, {key} {direction}, responses.number", key


def _position(query: TableQuery, key: str) -> tuple[str, list[Any]]:
    """Return the condition for rows after the key of a page, and its values. Raises `InputError` for a wrong key."""
    try:
        value, number = json.loads(query.after)
    except (ValueError, TypeError):
        raise InputError(f"after: {query.after!r} is no key of a page; begin without it") from None
    if value is None:
        return f"({key} IS NULL AND responses.number > ?)", [number]
    sign = "<" if query.is_descending else ">"
    condition = f"({key} {sign} ? OR ({key} = ? AND responses.number > ?) OR {key} IS NULL)"
    return condition, [value, value, number]
