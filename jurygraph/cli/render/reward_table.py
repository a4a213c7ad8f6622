"""The table of rewards of `jurygraph show`: its columns, and the selection and order of its rows."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from math import fsum
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar

from jurygraph.cli.options import split_names
from jurygraph.cli.render.summary import print_left_out
from jurygraph.cli.render.text import (
    format_component,
    format_table,
    print_message,
    print_result_lines,
)
from jurygraph.display import format_number, is_filled_in
from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean
from jurygraph.runs.outline import TraceOutline, read_components, read_groups
from jurygraph.runs.run import Run
from jurygraph.runs.tables import question_scores, to_text
from jurygraph.schema import Trace

T = TypeVar("T")


class _Column(NamedTuple):
    """A column of the table: its value, of a component as judged and as counted; texts are on the left."""

    value: Callable[[TraceOutline], Any]
    is_text: bool = False

    def cell(self, outline: TraceOutline) -> str:
        value = self.value(outline)
        if isinstance(value, tuple):
            return format_component(value[1], is_filled_in(*value))
        if not self.is_text or value is None:
            return format_number(value)
        return '"-"' if value == "-" else to_text(value)  # a dash is no value

    def sort_key(self, outline: TraceOutline) -> tuple[bool, Any] | None:
        """Return the key of a response, numbers before texts; None without a value."""
        value = self.value(outline)
        key = value[1] if isinstance(value, tuple) else value
        is_number = isinstance(key, int | float)
        return None if key is None else (not is_number, key if is_number else to_text(key))


_FIXED: Mapping[str, _Column] = {
    "response": _Column(attrgetter("response_id"), True),
    "agent": _Column(attrgetter("agent"), True),
    "status": _Column(lambda one: f"{one.status}, gated" if one.gates else one.status, True),
    "reward": _Column(attrgetter("value")),
    "coverage": _Column(attrgetter("coverage")),
}
_CHOSEN = ("gates", "query")
"""Columns of text that are shown only if they are named."""


class Selection(NamedTuple):
    """The responses to show: those with a status and of an agent, in the order of a column, the first `limit`.

    The status `gated` means any reward that a response gate or a reward gate changed. `sort` is the name of a column,
    after a minus for the reverse order; rows without a value come last.
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
        is_descending = self.sort.startswith("-") and self.sort not in _name_components(run)
        column = _find_column(run, "--sort", self.sort[is_descending:])
        rows = [(column.sort_key(outline), content(outline)) for outline in self._filter(run)]
        present = sorted(
            (row for row in rows if row[0] is not None), key=itemgetter(0), reverse=is_descending
        )
        return [item for _, item in (*present, *(row for row in rows if row[0] is None))][
            : self.limit
        ]

    def _filter(self, run: Run) -> Iterator[TraceOutline]:
        agents: dict[str, None] = {}
        for outline in (outline for group in read_groups(run) for outline in group.traces):
            agents |= {outline.agent: None} if outline.agent else {}
            states = (None, outline.status, "gated") if outline.gates else (None, outline.status)
            if self.agent in (None, outline.agent) and self.status in states:
                yield outline
        if self.agent is not None and self.agent not in agents:
            hint = did_you_mean(self.agent, agents) or f"known: {', '.join(agents) or 'none'}"
            raise InputError(f"{run.folder}: has no response of agent {self.agent!r}; {hint}")


def _name_components(run: Run) -> dict[str, str]:
    """Return the components by column; `component.NAME` is the column of one with the name of another column."""
    return {
        f"component.{name}" if name in (*_FIXED, *_CHOSEN) else name: name
        for name in read_components(run)
    }


def _find_column(run: Run, option: str, name: str) -> _Column:
    if name in _FIXED:
        return _FIXED[name]
    if name == "gates":
        return _Column(lambda outline: ", ".join(outline.gates) or None, True)
    if name == "query":
        query_of = lru_cache(maxsize=16)(
            lambda seq: run.short_query(run.source.ledger.record_at(seq).key)
        )
        return _Column(lambda outline: query_of(place_of(outline)[0]), True)
    components = _name_components(run)
    if name in components:
        component = components[name]
        return _Column(lambda outline: outline.component(component))
    read = trace_reader(run)
    questions = run.questions()
    question = full_question(name.removeprefix("question."), questions)
    if question in questions:
        return _Column(lambda outline: question_scores(read(place_of(outline))).get(question))
    labels = {f"label.{label}": label for trace in run.traces() for label in trace.labels}
    if name in labels:
        return _Column(lambda outline: read(place_of(outline)).labels.get(labels[name]), True)
    known = [*_FIXED, *_CHOSEN, *components, *labels]
    hint = (
        did_you_mean(name, [*known, *questions]) or f"known: {', '.join(known)}, and each question"
    )
    raise InputError(f"{option}: there is no column {name!r}; {hint}")


def full_question(name: str, known: Iterable[str]) -> str:
    """Return the known question of this name, or the only one that ends in it, as `criteria@kind` in `kind`."""
    matches = [question for question in known if re.split("[@./]", question)[-1] == name]
    return matches[0] if len(matches) == 1 and name not in known else name


def place_of(outline: TraceOutline) -> tuple[int, str]:
    """Return the place of a trace: the number of its group's record, and its response."""
    return outline.record.seq - outline.body["group"], outline.response_id


def trace_reader(run: Run) -> Callable[[tuple[int, str]], Trace]:
    """Return a function that reads the trace at a place; the last groups are kept, since others of it often follow."""
    group_at = lru_cache(maxsize=16)(lambda seq: run.group(run.source.ledger.record_at(seq)))
    return lambda place: next(
        trace for trace, _ in group_at(place[0]) if trace.response_id == place[1]
    )


def print_reward_table(run: Run, selection: Selection, chosen: str | None) -> None:
    """Print a row for each selected response; `chosen` are names of columns, by default the components."""
    from jurygraph.runs.reports.summary import JudgedParts  # lazily: it loads LangGraph

    names = (
        [*_FIXED, *_name_components(run)] if chosen is None else ["response", *split_names(chosen)]
    )
    by_name = {name: _find_column(run, "--columns", name) for name in names}
    columns = dict(
        sorted(by_name.items(), key=lambda item: not item[1].is_text)
    )  # texts first, aligned to the left
    rows: list[Sequence[str]] = []
    values: list[float | None] = []
    parts = JudgedParts()
    for row, reward, component_names in selection.select(
        run,
        lambda outline: (
            [column.cell(outline) for column in columns.values()],
            outline.reward,
            outline.names,
        ),
    ):
        rows.append(row)
        values.append(reward["value"])
        parts.add(reward, component_names)
    left = sum(column.is_text for column in columns.values())
    print_result_lines(format_table(list(columns), rows, left))
    if any(cell.startswith("*") for row in rows for cell in row[left:]):
        print_result_lines(["* filled in by the failure rule; --response shows what was judged"])
    scored = [value for value in values if value is not None]
    left_out = (
        f", {len(values) - len(scored)} left out because they failed"
        if len(scored) < len(values)
        else ""
    )
    if scored:
        mean = format_number(fsum(scored) / len(scored))
        print_message(
            f"mean reward of {len(scored)} response{'s' * (len(scored) > 1)}: {mean}{left_out}"
        )
    elif rows:
        print_message(f"no mean reward: all {len(rows)} failed")
    else:
        print_message("no response matches")
    if None in values:
        print_left_out(parts.failed)
