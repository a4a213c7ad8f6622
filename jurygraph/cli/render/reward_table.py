"""The table of rewards of `jurygraph show`: its columns, and the selection and order of its rows."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from math import fsum
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar

from jurygraph.cli.render.summary import discarded_lines, possible_reward_line, print_left_out
from jurygraph.cli.render.text import fit_table, format_component, print_message, print_result_lines, terminal_width
from jurygraph.display import format_number, is_filled_in
from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean
from jurygraph.runs.outline import TraceOutline, read_components, read_groups
from jurygraph.runs.reports.summary import JudgedParts
from jurygraph.runs.run import Run
from jurygraph.runs.store.packing import count_discarded
from jurygraph.runs.tables import question_scores, to_text
from jurygraph.schema import Trace
from jurygraph.sources.user_modules import modules_named_in

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
_CHOSEN = ("gates", "query")
"""Columns of text that are shown only if they are named."""


class _Column(NamedTuple):
    """A column of the table: its value, of a component with whether it is filled in; texts are on the left."""

    value: Callable[[TraceOutline], Any]
    is_text: bool = False

    def cell(self, one: TraceOutline) -> str:
        """Return the cell of a response."""
        value = self.value(one)
        if isinstance(value, tuple):
            return format_component(*value)
        if not self.is_text or value is None:
            return format_number(value)
        return '"-"' if value == "-" else to_text(value)  # a dash is no value

    def sort_key(self, one: TraceOutline) -> tuple[bool, Any] | None:
        """Return the key of a response, numbers before texts; None without a value."""
        value = self.value(one)
        key = value[0] if isinstance(value, tuple) else value
        is_number = isinstance(key, int | float)
        return None if key is None else (not is_number, key if is_number else to_text(key))


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
        ((_, column),) = _find_columns(run, "--sort", [self.sort[is_descending:]]).items()
        rows = [(column.sort_key(one), content(one)) for one in self._filter(run)]
        present = sorted((row for row in rows if row[0] is not None), key=itemgetter(0), reverse=is_descending)
        return [item for _, item in (*present, *(row for row in rows if row[0] is None))][: self.limit]

    def _filter(self, run: Run) -> Iterator[TraceOutline]:
        agents: dict[str, None] = {}
        for one in (one for group in read_groups(run) for one in group.traces):
            agents |= {one.agent: None} if one.agent else {}
            states = (None, one.status, "gated") if one.gates else (None, one.status)
            if self.agent in (None, one.agent) and self.status in states:
                yield one
        if self.agent is not None and self.agent not in agents:
            hint = did_you_mean(self.agent, agents) or f"known: {', '.join(agents) or 'none'}"
            raise InputError(f"{run.folder}: has no response of agent {self.agent!r}; {hint}")


def _name_components(run: Run) -> dict[str, str]:
    """Return the components by column; `component.NAME` is the column of one with the name of another column."""
    return {f"component.{name}" if name in (*_FIXED, *_CHOSEN) else name: name for name in read_components(run)}


def _find_columns(run: Run, option: str, names: Iterable[str]) -> dict[str, _Column]:
    """Return the columns with these names. Raises `InputError` for an unknown one."""
    components = _name_components(run)
    return {name: _find_column(run, option, name, components) for name in names}


def _find_column(run: Run, option: str, name: str, components: Mapping[str, str]) -> _Column:
    read = trace_reader(run)
    if name in _FIXED:
        return _Column(_FIXED[name], name in _TEXTS)
    if name == "gates":
        return _Column(lambda one: ", ".join(one.gates) or None, True)
    if name == "query":
        query_of = lru_cache(maxsize=16)(lambda seq: run.short_query(run.source.ledger.record_at(seq).key))
        return _Column(lambda one: query_of(place_of(one)[0]), True)
    if name in components:
        return _Column(partial(_component_value, run, read, components[name]))
    questions = run.questions()
    question = full_question(name.removeprefix("question."), questions)
    if question in questions:
        return _Column(lambda one: question_scores(read(place_of(one))).get(question))
    labels = {f"label.{label}": label for trace in run.traces() for label in trace.labels}
    if name in labels:
        return _Column(lambda one: read(place_of(one)).labels.get(labels[name]), True)
    known = [*_FIXED, *_CHOSEN, *components, *labels]
    hint = did_you_mean(name, [*known, *questions]) or f"known: {', '.join(known)}, and each question"
    raise InputError(f"{option}: there is no column {name!r}; {hint}")


def _component_value(
    run: Run, read: Callable[[tuple[int, str]], Trace], name: str, one: TraceOutline
) -> tuple[float | None, bool]:
    """Return the value of a component that counts, and whether the failure rule filled it in.

    The trace is read only where the value is the same without the missing verdicts.
    """
    from jurygraph.explanation.terms import ExplainedTrace  # lazily: it loads NumPy

    judged, counted = one.component(name)
    if counted is None or is_filled_in(judged, counted):
        return counted, counted is not None
    if not (one.coverage < 1.0 or count_discarded(one.reward) or one.is_incomplete):
        return counted, False
    trace = read(place_of(one))
    terms = ExplainedTrace(trace, run.decision_of(trace.task_id)).terms
    return counted, next(term.is_filled_in for term in terms if term.term.name == name)


def full_question(name: str, known: Iterable[str]) -> str:
    """Return the known question of this name, or the only one that ends in it, as `criteria@kind` in `kind`."""
    found = [question for question in known if re.split("[@./]", question)[-1] == name]
    return found[0] if len(found) == 1 and name not in known else name


def place_of(one: TraceOutline) -> tuple[int, str]:
    """Return the place of a trace: the number of its group's record, and its response."""
    return one.record.seq - one.body["group"], one.response_id


def trace_reader(run: Run) -> Callable[[tuple[int, str]], Trace]:
    """Return a function that reads the trace at a place; the last groups are kept, since others of it often follow."""
    group_at = lru_cache(maxsize=16)(lambda seq: run.group(run.source.ledger.record_at(seq)))
    return lambda place: next(trace for trace, _ in group_at(place[0]) if trace.response_id == place[1])


def print_reward_table(run: Run, selection: Selection, chosen: str | None, with_all: bool) -> None:
    """Print a row for each selected response.

    `chosen` are names of columns, separated by commas; by default all, with components of weight 0 only `with_all`.
    """
    components = _name_components(run)
    counts = read_components(run)
    hidden = [column for column, name in components.items() if chosen is None and not (with_all or counts[name])]
    names = [*_FIXED, *(column for column in components if column not in hidden)]
    if chosen is not None:
        names = ["response", *map(str.strip, chosen.split(","))]
    requested = _find_columns(run, "--columns", names)
    columns = dict(sorted(requested.items(), key=lambda item: not item[1].is_text))  # texts first, aligned to the left
    names = list(columns)
    left = sum(column.is_text for column in columns.values())
    filled_in = set[int]()
    discarded = Counter[str]()

    def format_row(one: TraceOutline) -> list[str]:
        return [column.cell(one) for column in columns.values()]

    rows = []
    values: list[float | None] = []
    parts = JudgedParts()
    for row, reward, component_names in selection.select(run, lambda one: (format_row(one), one.reward, one.names)):
        rows.append(row)
        values.append(reward["value"])
        parts.add(reward, component_names)
        discarded.update(count_discarded(reward))
        filled_in |= {place for place in range(left, len(row)) if row[place].startswith("*")}
    lines, shown = fit_table(names, rows, left, terminal_width())
    print_result_lines(lines)
    if any(place < shown for place in filled_in):
        print_result_lines(["* filled in by the failure rule; --response shows what was judged"])
    print_result_lines(discarded_lines(discarded))
    for line in _mean_lines(run, values):
        print_message(line)
    if None in values:
        print_left_out(parts.failed)
    if names[shown:]:
        print_message(f"too wide for the terminal: {', '.join(names[shown:])}; choose columns with --columns")
    if hidden:
        print_message(f"not shown, because of weight 0: {', '.join(hidden)}; --all shows them")


def _mean_lines(run: Run, values: Sequence[float | None]) -> Iterator[str]:
    """Yield the mean of the rewards, how many it leaves out, and the rewards that were possible."""
    scored = [value for value in values if value is not None]
    left_out = f", {len(values) - len(scored)} left out because they failed" if len(scored) < len(values) else ""
    if scored:
        mean = format_number(fsum(scored) / len(scored))
        yield f"mean reward of {len(scored)} response{'s' * (len(scored) > 1)}: {mean}{left_out}"
    has_own_combiner = any(key.startswith("components.") for key, _ in modules_named_in(run.config))
    if not has_own_combiner:  # modules of users are not imported to show a table
        line = possible_reward_line(run, run.load_combiners())
        if line is not None:
            yield line


def _describe_status(one: TraceOutline) -> str:
    return f"{one.status}, gated" if one.gates else one.status
