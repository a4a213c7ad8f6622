"""Read a task's facts once for all evaluators, with its tables opened."""

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from jurygraph.agents.facts.spec import ClaimsSpec, FactsSpec, Form, TableSpec
from jurygraph.agents.facts.tables import FileTable, InlineTable, Table, ToolTable
from jurygraph.errors import InputError, PlanError
from jurygraph.messages import describe_validation_error, did_you_mean, quote
from jurygraph.schema import TaskView, digest_of

Cached = TypeVar("Cached", "Facts", FileTable)

_MAX_CACHED = 256
_LOCK = threading.Lock()


class Facts(NamedTuple):
    """The tables and kinds of claims of a task, by name.

    `marks` are the parts of the facts outside the task (digests of files); they belong in the params of every question
    that depends on the facts.
    """

    tables: Mapping[str, Table]
    claims: Mapping[str, ClaimsSpec]
    marks: Mapping[str, Any]

    @property
    def fresh(self) -> bool:
        """Return true if the files of the tables are unchanged since they were read."""
        return all(table.is_fresh for table in self.tables.values())


def load_facts(view: TaskView) -> Facts:
    """Return the facts of a view's task, with its files as they are now. Raises PlanError naming the field."""
    with _LOCK:
        known = _FACTS_CACHE.get(view.digest)
        return known if known is not None and known.fresh else _remember(_FACTS_CACHE, view.digest, _read_facts(view))


_FACTS_CACHE: dict[str, Facts] = {}
"""By the digests of views and of facts, since every response and every member of an audience needs the same ones."""

_FILE_CACHE: dict[tuple[str, str, str], FileTable] = {}
"""By name, digest and path: a file is indexed once, as long as it is unchanged."""


def _remember(cache: dict[Any, Cached], key: Any, entry: Cached) -> Cached:
    """Cache an entry, dropping the oldest beyond the limit."""
    cache.pop(key, None)
    cache[key] = entry
    if len(cache) > _MAX_CACHED:
        del cache[next(iter(cache))]
    return entry


def _read_facts(view: TaskView) -> Facts:
    if view.facts is None:
        raise PlanError(
            f"task {view.id!r}: has no facts, but an evaluator needs them; give the task `facts` with "
            "`tables` and `claims`, or leave those evaluators out"
        )
    digest = digest_of(view.facts)
    known = _FACTS_CACHE.get(digest)
    return known if known is not None and known.fresh else _remember(_FACTS_CACHE, digest, _open_facts(view))


def _open_facts(view: TaskView) -> Facts:
    try:
        facts = FactsSpec.model_validate(view.facts)
    except ValidationError as error:
        error_text = describe_validation_error(error, FactsSpec, view.facts)
        raise PlanError(
            f"task {view.id!r}: facts{f'.{error_text.field}' if error_text.path else ''}: {error_text}"
        ) from error
    try:
        tables = {name: _open_table(name, table) for name, table in sorted(facts.tables.items())}
    except PlanError as error:
        raise PlanError(f"task {view.id!r}: {error}") from error
    for name, kind in facts.claims.items():
        _check_merged(f"task {view.id!r}: facts.claims.{name}.merged", kind, tables)
        for place, form in enumerate(kind.forms):
            _check_form(f"task {view.id!r}: facts.claims.{name}.forms[{place}]", kind, form, tables[form.table])
    files = {name: table.digest for name, table in tables.items() if table.digest is not None}
    return Facts(tables, dict(sorted(facts.claims.items())), {"files": files} if files else {})


def _open_table(name: str, spec: TableSpec) -> Table:
    table: Table
    if spec.tool is not None:
        table = ToolTable(name, spec)
    elif spec.file is not None:
        table = _open_file_table(name, spec, spec.file)
    else:
        table = InlineTable(name, spec)
    _check_columns(f"facts.tables.{name}.key", spec.key, table)
    _check_columns(f"facts.tables.{name}.lists", spec.lists, table)
    _check_columns(f"facts.tables.{name}.order", [spec.order] if spec.order else [], table)
    return table


def _check_columns(where: str, columns: Iterable[str], table: Table) -> None:
    for column in columns:
        if table.columns is not None and column not in table.columns:
            raise PlanError(f"{where}: {unknown_column_message(column, table)}")


def unknown_column_message(column: str, table: Table) -> str:
    """Return the message for an unknown column, with the most similar one or all columns."""
    known = sorted(table.columns or ())
    return f"there is no column {quote(column)}; {did_you_mean(column, known) or 'there are ' + ', '.join(known)}"


def _open_file_table(name: str, spec: TableSpec, file: str) -> FileTable:
    key = name, spec.digest, str(Path(file).absolute())
    known = _FILE_CACHE.get(key)
    try:
        return known if known is not None and known.is_fresh else _remember(_FILE_CACHE, key, FileTable(name, spec))
    except InputError as error:
        raise PlanError(f"facts.tables.{name}.file: {error}") from error


def _check_merged(where: str, kind: ClaimsSpec, tables: Mapping[str, Table]) -> None:
    """Raise PlanError if the name for the number of merged claims is also a column."""
    for form in kind.forms:
        if kind.merged is not None and kind.merged in (tables[form.table].columns or ()):
            problem = f"is {quote(kind.merged)}, which is a column of {form.table}"
            raise PlanError(f"{where}: {problem}; give the number another name")


def _check_form(where: str, kind: ClaimsSpec, form: Form, table: Table) -> None:
    """Raise PlanError unless every key column is a group, a record value or fixed, so that rows can be looked up."""
    name, *_ = table.spec.key
    groups = {name} if form.compiled is None else {form.columns.get(group, group) for group in form.groups}
    claimed_columns = {*groups, *kind.beside, *form.states}
    for column in table.spec.key:
        if column not in claimed_columns:
            problem = f"has no value for {quote(column)}, which is part of the key of {table.name}"
            raise PlanError(f"{where}: {problem}; name a group of the pattern so, or set it in `beside` or `states`")
    _check_columns(f"{where}.pattern", sorted(groups), table)
    for column in form.within:
        if column not in claimed_columns:
            problem = (
                f"nothing is claimed of {quote(column)}; {did_you_mean(column, claimed_columns) or 'leave it out'}"
            )
            raise PlanError(f"{where}.within: {problem}")
