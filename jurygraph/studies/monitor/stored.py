"""The steps of a stored run, also of one that another process is still writing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import JsonValue

from jurygraph.agents.data_analyzer import Step
from jurygraph.errors import InputError
from jurygraph.runs.reading import Scored
from jurygraph.runs.run import Run
from jurygraph.runs.store import folder as place
from jurygraph.runs.store.ledger import Ledger

Group = list[Scored]
Wait = Callable[[], None]
"""Returns when it is time for another look."""


@dataclass
class Erased:
    """How many erased responses the groups had that passed so far."""

    count: int = 0

    def counted(self, stream: Iterable[Group]) -> Iterator[Group]:
        """The groups as they are."""
        for group in stream:
            self.count += sum(one.response is None for one in group)
            yield group


def opened(folder: Path, wait: Wait | None = None) -> Run:
    """The run in a folder. With `wait`, one that another process has not begun yet, or still plans, is waited for.

    Raises `InputError` where there is none, or where none can come: at a file, or in a folder of something else.
    """
    while wait is not None and _to_come(folder):
        wait()
    return Run.open(folder)


def _to_come(folder: Path) -> bool:
    """Whether no run is there, and one may be made."""
    if (folder / place.LEDGER).is_file():
        ledger = Ledger.open(folder / place.LEDGER)
        if ledger is not None:
            ledger.close()
        return ledger is None
    if not folder.exists():
        return True
    return folder.is_dir() and all(entry.name in place.OWN for entry in folder.iterdir())


def groups(folder: Path, wait: Wait | None = None) -> Iterator[Group]:
    """The groups of a run in the order of its tasks. With `wait`, what comes until the run is closed, too.

    The run is opened anew for every look and let go of before `wait` is called, so that its writer is not held up.
    """
    seen, closed = 0, False
    while not closed:
        with closing(opened(folder, wait)) as run:
            closed = run.closed or wait is None
            for record in run.source.ledger.records("group", seen, run.extent):
                yield run.group(record)
                seen = record.seq
        if not closed and wait is not None:
            wait()


def penalties(folder: Path, wait: Wait | None = None) -> frozenset[str]:
    """The components of a run that count against a response, as its config weighs them."""
    with closing(opened(folder, wait)) as run:
        return frozenset(name for name, weight in run.config.reward.items() if weight < 0)


def by_number(stream: Iterable[Group], every: int) -> Iterator[list[Group]]:
    """Steps of so many tasks each; what is left at the end is no step."""
    step: list[Group] = []
    for group in stream:
        step.append(group)
        if len(step) == every:
            yield step
            step = []


def by_label(stream: Iterable[Group], label: str) -> Iterator[list[Group]]:
    """Steps of the tasks whose responses bear the same value of a label, one after the other.

    An erased response bears none; a task that has no other belongs to the step around it. Raises `InputError` where a
    response lacks the label, a task has two, or one comes again after another.
    """
    step: list[Group] = []
    now: list[JsonValue] = []
    ended: set[str] = set()
    for group in stream:
        value = _label(group, label)
        if value and now and value != now:
            yield step
            ended.add(repr(now))
            step = []
        if repr(value) in ended:
            task = group[0].trace.task_id
            raise InputError(f"task {task!r}: label {label!r} is {value[0]!r} again, after others; order tasks by it")
        step.append(group)
        now = value or now
    if step:
        yield step


def _label(group: Group, label: str) -> list[JsonValue]:
    """The value of a task's label; none where its responses were all erased, and their labels with them."""
    found: list[JsonValue] = []
    for one in group:
        if one.response is None:
            continue
        if label not in one.trace.labels:
            known = ", ".join(map(repr, one.trace.labels)) or "none"
            raise InputError(f"response {one.trace.response_id!r}: has no label {label!r}; its labels: {known}")
        found.append(one.trace.labels[label])
    if any(value != found[0] for value in found):
        task = group[0].trace.task_id
        raise InputError(f"task {task!r}: its responses differ in label {label!r}; a task belongs to one step")
    return found[:1]


def steps(cut: Iterable[Sequence[Group]]) -> Iterator[Step]:
    """Steps as the analyzer takes them. Components are those of the first step; lengths are characters."""
    names: list[str] | None = None
    for tasks in cut:
        rows = [one for group in tasks for one in group]
        if names is None:
            names = sorted({name for one in rows for name in one.trace.reward.components})
        yield Step(
            rewards=[_number(one.trace.reward.value) for one in rows],
            components={name: [_number(one.trace.reward.components.get(name)) for one in rows] for name in names},
            lengths=[np.nan if one.response is None else float(len(one.response.text)) for one in rows],
            groups=[one.trace.task_id for one in rows],
        )


def _number(value: float | None) -> float:
    return np.nan if value is None else value
