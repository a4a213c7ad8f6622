"""The Data Analyzer applied to the steps of a trainer, or of a stored run, also of one that is still being written."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from math import isnan
from pathlib import Path

import numpy as np
from pydantic import JsonValue

from jurygraph.agents.data_analyzer import Alert, Analyzer, AnalyzerSettings, SeriesSummary, TrainingStep
from jurygraph.agents.data_analyzer.detectors import REFERENCES
from jurygraph.arrays import Floats
from jurygraph.errors import InputError
from jurygraph.runs.run import Run, ScoredResponse
from jurygraph.runs.store import folder as run_folder
from jurygraph.runs.store.ledger import Ledger
from jurygraph.studies.report import Plot, PlotSeries, Report, ReportTable

Group = list[ScoredResponse]
Wait = Callable[[], None]
"""A function that returns when the run should be read again."""


class Watch:
    """Feeds an analyzer and keeps its alerts. For trainers, which have no run:

        watch = Watch()
        for alert in watch.feed(Step(rewards, components, lengths, groups)):
            log(alert.sentence)

    With `keep`, every step's values are kept for the plot of the report, so that memory grows with the number of steps.
    """

    def __init__(self, settings: AnalyzerSettings | None = None, keep: bool = False) -> None:
        self.analyzer = Analyzer(settings)
        self.alerts: list[Alert] = []
        self._keep = keep
        self._values: list[Floats] = []

    def feed(self, step: TrainingStep) -> tuple[Alert, ...]:
        """Return the alerts of one more step. Raises `InputError` if it does not match the steps before."""
        alerts = self.analyzer.observe(step)
        self.alerts += alerts
        if self._keep:
            self._values.append(self.analyzer.values)
        return alerts

    @property
    def adverse(self) -> list[Alert]:
        """Return the alerts whose change is bad."""
        return [alert for alert in self.alerts if alert.adverse]

    def report(self) -> Report:
        """Return the report on the steps so far: all alerts in their order, and every series over the whole stream.

        `arl` is the average run length without change for which the limits were computed: `drift`, those of the CUSUMs
        by their reference value, and `jump`, that of a single step's normal score. Without a step there are none. Each
        of the `warnings` names a series for which `arl` does not hold, since it is autocorrelated.
        """
        analyzer = self.analyzer
        limits = analyzer.limits if analyzer.series else None
        series = analyzer.summary()
        figures = {
            "steps": analyzer.steps,
            "arl": analyzer.settings.arl,
            "drift": {} if limits is None else dict(zip(map(str, REFERENCES), limits.drift, strict=True)),
            "jump": None if limits is None else limits.jump,
            "warnings": analyzer.warnings,
            "alerts": self.alerts,
            "series": series,
        }
        expected = f"one false alarm is expected in {analyzer.settings.arl:g} steps"
        if analyzer.warnings:
            expected += ", and more of series that depend on earlier steps (see the warnings)"
        counts = f"{analyzer.steps} steps; {len(self.alerts)} alerts, {len(self.adverse)} adverse"
        return Report(figures, [series_table(series), f"{counts}; {expected}"], analyzer.warnings, self._plots())

    def _plots(self) -> list[Plot]:
        plots = []
        for index, name in enumerate(one.name for one in self.analyzer.series):
            values = [float(values[index]) for values in self._values]
            alerts = [alert for alert in self.alerts if alert.series == name or alert.kind == "hack"]
            marks = [(float(one.step), f"{'adverse' if one.adverse else 'change'}, {one.kind}") for one in alerts]
            series = PlotSeries(name, [None if isnan(one) else one for one in values], range(1, len(values) + 1))
            plots.append(Plot(name, "line", [series], x_label="step", marks=marks))
        return plots if self._values else []


def series_table(summary: Iterable[SeriesSummary]) -> ReportTable:
    """Return a row for each series."""
    rows = []
    for one in summary:
        trend = "-" if one.trend is None else f"{one.trend:+z.2g}"
        rho = "-" if one.autocorrelation is None else f"{one.autocorrelation:z.2f}"
        rows.append([one.series, one.steps, one.mean, one.sd, one.least, one.most, one.last, trend, rho])
    header = ("series", "steps", "mean", "sd", "min", "max", "last", "trend per step", "lag-1 ρ")
    return ReportTable(header, rows)


def _open_run(folder: Path, wait: Wait | None) -> Run:
    """Open the run in a folder. With `wait`, wait for one that has not begun yet or is still being planned.

    Raises `InputError` if there is none, or if none can appear: at a file, or in a folder of something else.
    """
    while wait is not None and _is_pending(folder):
        wait()
    return Run.open(folder)


def _is_pending(folder: Path) -> bool:
    """Return True if there is no run yet, and one may be created."""
    if (folder / run_folder.LEDGER).is_file():
        ledger = Ledger.open(folder / run_folder.LEDGER)
        if ledger is not None:
            ledger.close()
        return ledger is None
    if not folder.exists():
        return True
    return folder.is_dir() and all(entry.name in run_folder.RUN_FILES for entry in folder.iterdir())


def read_groups(folder: Path, wait: Wait | None = None) -> Generator[Group, None, None]:
    """Yield the groups of a run in the order of its tasks; with `wait`, also those added until the run is closed.

    The run is reopened for every pass and closed before `wait` is called, so that its writer is not blocked.
    """
    last_task = 0
    closed = False
    while not closed:
        with closing(_open_run(folder, wait)) as run:
            closed = run.is_closed or wait is None
            last = run.last_base_record
            for task in run.source.ledger.records("task", last_task):
                group = run.source.ledger.find("group", task.key)
                if group is None and not closed:
                    break  # later tasks may be scored already
                if group is not None and (last is None or group.seq <= last):
                    yield run.group(group)
                last_task = task.seq
        if not closed and wait is not None:
            wait()


def penalty_components(folder: Path, wait: Wait | None = None) -> frozenset[str]:
    """Return the components of a run with a negative weight in its config."""
    with closing(_open_run(folder, wait)) as run:
        return frozenset(name for name, weight in run.config.reward.items() if weight < 0)


def steps_by_number(stream: Iterable[Group], every: int) -> Iterator[list[Group]]:
    """Yield steps of `every` tasks each; an incomplete step at the end is dropped."""
    groups = iter(stream)
    while len(step := list(islice(groups, every))) == every:
        yield step


def steps_by_label(stream: Iterable[Group], label: str) -> Iterator[list[Group]]:
    """Yield steps of consecutive tasks whose responses have the same value of a label.

    Erased responses have no label; a task with only erased responses belongs to the step around it. Raises `InputError`
    if a response lacks the label, a task has two values, or a value occurs again after another.
    """
    step: list[Group] = []
    current: list[JsonValue] = []
    ended: set[str] = set()
    for group in stream:
        value = _label_values(group, label)
        if value and current and value != current:
            yield step
            ended.add(repr(current))
            step = []
        if repr(value) in ended:
            task = group[0].trace.task_id
            raise InputError(f"task {task!r}: label {label!r} is {value[0]!r} again, after others; order tasks by it")
        step.append(group)
        current = value or current
    if step:
        yield step


def _label_values(group: Group, label: str) -> list[JsonValue]:
    """Return the value of a task's label, as a list; empty if all its responses were erased with their labels."""
    traces = [trace for trace, response in group if response is not None]
    for trace in traces:
        if label not in trace.labels:
            names = ", ".join(map(repr, trace.labels)) or "none"
            raise InputError(f"response {trace.response_id!r}: has no label {label!r}; its labels: {names}")
    values = [trace.labels[label] for trace in traces]
    if any(value != values[0] for value in values):
        task = traces[0].task_id
        raise InputError(f"task {task!r}: its responses differ in label {label!r}; a task belongs to one step")
    return values[:1]


def analyzer_steps(cut: Iterable[Sequence[Group]]) -> Iterator[TrainingStep]:
    """Yield steps as the analyzer expects them. Components are those of the first step; lengths are in characters."""
    names: list[str] | None = None
    for tasks in cut:
        rows = [scored for group in tasks for scored in group]
        rewards = [trace.reward for trace, _ in rows]
        if names is None:
            names = sorted({name for reward in rewards for name in reward.components})
        yield TrainingStep(
            rewards=_to_floats(reward.value for reward in rewards),
            components={name: _to_floats(reward.components.get(name) for reward in rewards) for name in names},
            lengths=_to_floats(None if response is None else len(response.text) for _, response in rows),
            groups=[trace.task_id for trace, _ in rows],
        )


def _to_floats(values: Iterable[float | None]) -> Floats:
    return np.array(list(values), dtype=np.float64)
