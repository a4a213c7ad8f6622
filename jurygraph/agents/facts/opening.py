"""What a task states of its facts, read once for everybody who asks, with its tables open."""

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from jurygraph.agents.facts.stated import ClaimsStated, FactsStated, Form, TableStated
from jurygraph.agents.facts.tables import FileTable, InlineTable, Table, ToolTable
from jurygraph.errors import InputError, PlanError
from jurygraph.schema import TaskView, digest_of
from jurygraph.sources.complaint import complaint, nearest, quoted

Known = TypeVar("Known", "Facts", FileTable)

_MOST_KNOWN = 256
_READING = threading.Lock()


class Facts(NamedTuple):
    """The tables and kinds of claims of a task, by name.

    `marks` are to stand in the params of every question that rests on them: what of the facts is not in the task.
    """

    tables: Mapping[str, Table]
    claims: Mapping[str, ClaimsStated]
    marks: Mapping[str, Any]

    @property
    def fresh(self) -> bool:
        """Whether the files of its tables are as they were when they were read."""
        return all(table.fresh for table in self.tables.values())


def facts_of(view: TaskView) -> Facts:
    """What a view's task states of its facts, its files as they are now. Raises PlanError naming the field."""
    with _READING:
        known = _KNOWN.get(view.digest)
        return known if known is not None and known.fresh else _keep(_KNOWN, view.digest, _read(view))


_KNOWN: dict[str, Facts] = {}
"""By the digests of views, and of facts: every response, and every member of an audience, asks for the same."""

_FILES: dict[tuple[str, str, str], FileTable] = {}
"""By name, digest and path: indexed once, as long as the file stays as it is."""


def _keep(kept: dict[Any, Known], key: Any, one: Known) -> Known:
    """Keep it, and not too many of its kind: the oldest goes first."""
    kept.pop(key, None)
    kept[key] = one
    if len(kept) > _MOST_KNOWN:
        del kept[next(iter(kept))]
    return one


def _read(view: TaskView) -> Facts:
    if view.facts is None:
        raise PlanError(
            f"task {view.id!r}: states no facts, and somebody is asked to look some up; give the task `facts` with "
            "`tables` and `claims`, or leave those evaluators out"
        )
    digest = digest_of(view.facts)
    known = _KNOWN.get(digest)
    return known if known is not None and known.fresh else _keep(_KNOWN, digest, _opened(view))


def _opened(view: TaskView) -> Facts:
    try:
        stated = FactsStated.model_validate(view.facts)
    except ValidationError as error:
        wrong = complaint(error, FactsStated, view.facts)
        raise PlanError(f"task {view.id!r}: facts{f'.{wrong.field}' if wrong.path else ''}: {wrong}") from error
    try:
        tables = {name: _table(name, table) for name, table in sorted(stated.tables.items())}
    except PlanError as error:
        raise PlanError(f"task {view.id!r}: {error}") from error
    for name, kind in stated.claims.items():
        _check_merged(f"task {view.id!r}: facts.claims.{name}.merged", kind, tables)
        for place, form in enumerate(kind.forms):
            _check_form(f"task {view.id!r}: facts.claims.{name}.forms[{place}]", kind, form, tables[form.table])
    files = {name: table.digest for name, table in tables.items() if table.digest is not None}
    return Facts(tables, dict(sorted(stated.claims.items())), {"files": files} if files else {})


def _table(name: str, stated: TableStated) -> Table:
    table: Table
    if stated.tool is not None:
        table = ToolTable(name, stated)
    elif stated.file is not None:
        table = _file_table(name, stated, stated.file)
    else:
        table = InlineTable(name, stated)
    _check_columns(f"facts.tables.{name}.key", stated.key, table)
    _check_columns(f"facts.tables.{name}.lists", stated.lists, table)
    _check_columns(f"facts.tables.{name}.order", [stated.order] if stated.order else [], table)
    return table


def _check_columns(where: str, columns: Iterable[str], table: Table) -> None:
    for column in columns:
        if table.columns is not None and column not in table.columns:
            raise PlanError(f"{where}: {no_column(column, table)}")


def no_column(column: str, table: Table) -> str:
    """That a table has no such column, and which may have been meant."""
    known = sorted(table.columns or ())
    return f"there is no column {quoted(column)}; {nearest(column, known) or 'there are ' + ', '.join(known)}"


def _file_table(name: str, stated: TableStated, file: str) -> FileTable:
    key = name, stated.digest, str(Path(file).absolute())
    known = _FILES.get(key)
    try:
        return known if known is not None and known.fresh else _keep(_FILES, key, FileTable(name, stated))
    except InputError as error:
        raise PlanError(f"facts.tables.{name}.file: {error}") from error


def _check_merged(where: str, kind: ClaimsStated, tables: Mapping[str, Table]) -> None:
    """The number of what was merged takes no column's place."""
    for form in kind.forms:
        if kind.merged is not None and kind.merged in (tables[form.table].columns or ()):
            wrong = f"is {quoted(kind.merged)}, which is a column of {form.table}"
            raise PlanError(f"{where}: {wrong}; give the number another name")


def _check_form(where: str, kind: ClaimsStated, form: Form, table: Table) -> None:
    """Every column of the key is claimed, stands beside, or is stated; so that a row can be looked up."""
    name, *_ = table.stated.key
    groups = {name} if form.compiled is None else {form.columns.get(group, group) for group in form.groups}
    said = {*groups, *kind.beside, *form.states}
    for column in table.stated.key:
        if column not in said:
            wrong = f"says nothing of {quoted(column)}, which is part of the key of {table.name}"
            raise PlanError(f"{where}: {wrong}; name a group of the pattern so, or give it in `beside` or `states`")
    _check_columns(f"{where}.pattern", sorted(groups), table)
    for column in form.within:
        if column not in said:
            wrong = f"nothing is claimed of {quoted(column)}; {nearest(column, said) or 'leave it out'}"
            raise PlanError(f"{where}.within: {wrong}")
