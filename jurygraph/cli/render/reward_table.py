"""The table of rewards of `jurygraph show`: its columns, and the selection and order of its rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar

from jurygraph.cli.render.text import (
    format_component,
    format_number,
    print_message,
    print_result_lines,
    spooled_table,
    terminal_width,
)
from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean
from jurygraph.runs.outline import TraceOutline, read_components, read_groups
from jurygraph.runs.run import Run

T = TypeVar("T")
_TEXTS: Mapping[str, Callable[[TraceOutline], Any]] = {
    "response": attrgetter("response_id"),
    "agent": attrgetter("agent"),
    "status": lambda one: _describe_status(one),
}
_FIXED: Mapping[str, Callable[[TraceOutline], Any]] = {
    **_TEXTS,
    "reward": attrgetter("value"),
    "coverage": attrgetter("coverage"),
}


class Selection(NamedTuple):
    """The responses to show: those with a status and of an agent, in the order of a column, the first `limit`.

    The status `gated` means any reward of a response stopped by a response gate. `sort` is the name of a column, after
    a minus for the reverse order; rows without a value come last.
    """

    status: str | None = None
    agent: str | None = None
    sort: str | None = None
    limit: int | None = None

    def select(self, run: Run, content: Callable[[TraceOutline], T]) -> Iterable[T]:
        """Return the content of each selected response; without `sort`, one group at a time is in memory.

        Raises `InputError` for an unknown column or agent.
        """
        if self.sort is None:
            return islice(map(content, self._filter(run)), self.limit)
        components = _name_components(run)
        is_descending = self.sort not in components and self.sort.startswith("-")
        (name,) = _check_columns("--sort", self.sort[is_descending:], components)
        value = _FIXED.get(name) or (lambda one: one.component(components[name])[1])
        rows = [(value(one), content(one)) for one in self._filter(run)]
        present = sorted((row for row in rows if row[0] is not None), key=itemgetter(0), reverse=is_descending)
        return [item for _, item in (*present, *(row for row in rows if row[0] is None))][: self.limit]

    def _filter(self, run: Run) -> Iterator[TraceOutline]:
        agents: dict[str, None] = {}
        for one in (one for group in read_groups(run) for one in group.traces):
            agents |= {one.agent: None} if one.agent else {}
            states = (None, one.status, "gated") if one.is_stopped else (None, one.status)
            if self.agent in (None, one.agent) and self.status in states:
                yield one
        if self.agent is not None and self.agent not in agents:
            hint = did_you_mean(self.agent, agents) or f"known: {', '.join(agents) or 'none'}"
            raise InputError(f"{run.folder}: has no response of agent {self.agent!r}; {hint}")


def _name_components(run: Run) -> dict[str, str]:
    """Return the components by column; `component.NAME` is the column of one with the name of another column."""
    return {f"component.{name}" if name in _FIXED else name: name for name in read_components(run)}


def _check_columns(option: str, names: str, components: Iterable[str]) -> list[str]:
    """Split names of columns at commas. Raises `InputError` for an unknown one."""
    known = [*_FIXED, *components]
    columns = [name.strip() for name in names.split(",")]
    for name in columns:
        if name not in known:
            hint = did_you_mean(name, known) or f"known: {', '.join(known)}"
            raise InputError(f"{option}: there is no column {name!r}; {hint}")
    return columns


def print_reward_table(run: Run, selection: Selection, chosen: str | None, with_all: bool) -> None:
    """Print a row for each selected response. Rows are spooled to a temporary file until column widths are known.

    `chosen` are names of columns, separated by commas; by default all, with components of weight 0 only `with_all`.
    """
    components, counts = _name_components(run), read_components(run)
    hidden = [column for column, name in components.items() if chosen is None and not (with_all or counts[name])]
    names = [*_FIXED, *(column for column in components if column not in hidden)]
    if chosen is not None:  # the response first, then the other texts, which are aligned to the left
        requested = dict.fromkeys(["response", *_check_columns("--columns", chosen, components)])
        names = sorted(requested, key=lambda name: name not in _TEXTS)

    def format_row(one: TraceOutline) -> list[str]:
        return [
            format_component(*one.component(components[name])) if name in components else _format(_FIXED[name](one))
            for name in names
        ]

    left, is_filled_in = sum(name in _TEXTS for name in names), False
    with spooled_table(names, left) as table:
        for row in selection.select(run, format_row):
            table.add(row)
            is_filled_in |= any(cell.startswith("*") for cell in row[left:])
        shown = table.fit(terminal_width())
        print_result_lines(table.lines())
    if is_filled_in:
        print_result_lines(["* filled in by the failure rule; --response shows what was judged"])
    if names[shown:]:
        print_message(f"too wide for the terminal: {', '.join(names[shown:])}; choose columns with --columns")
    if hidden:
        print_message(f"not shown, because of weight 0: {', '.join(hidden)}; --all shows them")


def _describe_status(one: TraceOutline) -> str:
    return f"{one.status}, gated" if one.is_stopped else one.status


def _format(value: str | float | None) -> str:
    return value if isinstance(value, str) else format_number(value)
