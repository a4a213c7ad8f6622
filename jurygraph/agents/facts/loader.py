"""Read a task's facts once for all evaluators, with its tables opened."""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from jurygraph.agents.facts.spec import ClaimPattern, ClaimsSpec, FactsSpec, TableSpec
from jurygraph.agents.facts.tables import FactTable, RowTable, ToolTable
from jurygraph.errors import InputError, PlanError, name_part
from jurygraph.messages import describe_validation_error, did_you_mean, quote
from jurygraph.schema import TaskView, digest_of

Cached = TypeVar("Cached", "Facts", RowTable)

_MAX_CACHED = 256
_LOCK = threading.Lock()


class Facts(NamedTuple):
    """The tables and kinds of claims of a task, by name.

    `marks` are the parts of the facts outside the task (digests of files); they belong in the params of every question
    that depends on the facts.
    """

    tables: Mapping[str, FactTable]
    claims: Mapping[str, ClaimsSpec]
    marks: Mapping[str, Any]

    @property
    def is_fresh(self) -> bool:
        return all(table.is_fresh for table in self.tables.values())


def require_known(where: str, names: Iterable[str], known: Collection[str] | None, kind: str = "column") -> None:
    """Raise PlanError for the first name that is not known; if nothing is known of them (None), any may exist."""
    for name in names:
        if known is not None and name not in known:
            hint = did_you_mean(name, sorted(known)) or f"there are {', '.join(sorted(known)) or 'none'}"
            raise PlanError(f"{where}: there is no {kind} {quote(name)}; {hint}")


def load_facts(view: TaskView) -> Facts:
    """Return the facts of a view's task, with its files as they are now. Raises PlanError naming the field."""
    if view.facts is None:
        raise PlanError(
            f"task {view.id!r}: has no facts, but an evaluator needs them; give the task `facts` with "
            "`tables` and `claims`, or leave those evaluators out"
        )

    def open_facts() -> Facts:
        with name_part("facts"):
            return _open_cached(_FACTS_CACHE, digest_of(view.facts), lambda: _open_facts(view))

    with _LOCK:
        return _open_cached(_FACTS_CACHE, view.digest, open_facts)


_FACTS_CACHE: dict[str, Facts] = {}
"""By the digests of views and of facts, since every response and every member of an audience needs the same ones."""

_FILE_CACHE: dict[tuple[str, str, str], RowTable] = {}
"""By name, digest and path: a file is indexed once, as long as it is unchanged."""


def _open_cached(cache: dict[Any, Cached], key: Any, open_entry: Callable[[], Cached]) -> Cached:
    """Return the entry of a key, opened anew if it is not fresh; the oldest is dropped beyond the limit."""
    entry = cache.get(key)
    if entry is None or not entry.is_fresh:
        cache.pop(key, None)
        cache[key] = entry = open_entry()
        if len(cache) > _MAX_CACHED:
            del cache[next(iter(cache))]
    return entry


def _open_facts(view: TaskView) -> Facts:
    try:
        facts = FactsSpec.model_validate(view.facts)
    except ValidationError as error:
        problem = describe_validation_error(error, FactsSpec, view.facts)
        field = f"facts.{problem.field}" if problem.path else "facts"
        raise PlanError(f"task {view.id!r}: {field}: {problem}") from error
    try:
        tables = {name: _open_table(name, table) for name, table in sorted(facts.tables.items())}
    except PlanError as error:
        raise PlanError(f"task {view.id!r}: {error}") from error
    for name, kind in facts.claims.items():
        where = f"task {view.id!r}: facts.claims.{name}"
        for place, form in enumerate(kind.forms):
            require_known(f"{where}.forms[{place}].table", [form.table], tables, "table")
            if kind.merged is not None and kind.merged in (tables[form.table].columns or ()):
                clash = f"is {quote(kind.merged)}, which is a column of {form.table}"
                raise PlanError(f"{where}.merged: {clash}; give the number another name")
            _check_form(f"{where}.forms[{place}]", kind, form, tables[form.table])
    files = {name: table.digest for name, table in tables.items() if table.digest is not None}
    return Facts(tables, dict(sorted(facts.claims.items())), {"files": files} if files else {})


def _open_table(name: str, spec: TableSpec) -> FactTable:
    table: FactTable
    if spec.tool is not None:
        table = ToolTable(name, spec)
    elif spec.file is not None:
        key = name, spec.digest, str(Path(spec.file).absolute())
        try:
            table = _open_cached(_FILE_CACHE, key, lambda: RowTable(name, spec))
        except InputError as error:
            raise PlanError(f"facts.tables.{name}.file: {error}") from error
    else:
        table = RowTable(name, spec)
    for field, columns in (("key", spec.key), ("lists", spec.lists), ("order", [spec.order] if spec.order else [])):
        require_known(f"facts.tables.{name}.{field}", columns, table.columns)
    return table


def _check_form(where: str, kind: ClaimsSpec, form: ClaimPattern, table: FactTable) -> None:
    name, *_ = table.spec.key
    groups = {name} if form.compiled is None else {form.columns.get(group, group) for group in form.groups}
    claimed_columns = {*groups, *kind.beside, *form.states}
    for column in table.spec.key:
        if column not in claimed_columns:
            problem = f"has no value for {quote(column)}, which is part of the key of {table.name}"
            raise PlanError(f"{where}: {problem}; name a group of the pattern so, or set it in `beside` or `states`")
    require_known(f"{where}.pattern", sorted(groups), table.columns)
    require_known(f"{where}.within", form.within, claimed_columns, "claimed column")
