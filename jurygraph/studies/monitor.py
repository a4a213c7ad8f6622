"""The Data Analyzer, with its report, on steps of a trainer or of a stored run, also of one still being written."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import JsonValue

from jurygraph.agents.data_analyzer import (
    CALIBRATED_SERIES_NAMES,
    CALIBRATION_STEPS,
    CUSUM_REFERENCES,
    MIN_SCORES_BEFORE_TESTS,
    Alert,
    Analyzer,
    TrainingStep,
)
from jurygraph.arrays import Floats
from jurygraph.errors import InputError
from jurygraph.runs.run import Run, ScoredResponse
from jurygraph.schema import Trace
from jurygraph.studies.report import (
    Plot,
    PlotSeries,
    PlotShading,
    Report,
    ReportTable,
    describe_series,
)

ScoredGroup = list[ScoredResponse]
_SERIES_SUMMARY_NAMES = ("mean", "sd", "min", "max", "last")
_MAX_CHANGES_IN_TITLE = 3
"""Changes of a series in the title of its panel; all are in the report."""
_MIN_PAIRS_FOR_AUTOCORRELATION = 50
_MAX_HARMLESS_AUTOCORRELATION = 0.1
"""The autocorrelation above which a series is named, by the lower bound of 3 standard errors, from 50 pairs of steps
on."""


def report(analyzer: Analyzer) -> Report:
    """Return the report on the steps so far: all alerts in their order, and every series over the whole stream.

    `arl` is the average run length without change for which the limits were computed, and `limits` are those of the
    CUSUMs by their reference value; without a step there are none. A series has its count, mean, sd, extremes and last
    value.
    """
    rows = []
    for index, series in enumerate(analyzer.series):
        column = np.array([values[index] for values in analyzer.values])
        rows.append(_summarize_series(series.name, column))
    limits: dict[str, float] = {}
    if rows:
        limits = dict(zip(map(str, CUSUM_REFERENCES), analyzer.tests.limits.tolist(), strict=True))
    figures = {
        "steps": analyzer.step_count,
        "arl": analyzer.arl,
        "limits": limits,
        "alerts": analyzer.alerts,
        "series": rows,
    }
    adverse_count = sum(alert.adverse for alert in analyzer.alerts)
    counts = f"{analyzer.step_count} steps; {len(analyzer.alerts)} alerts, {adverse_count} adverse"
    expected = f"one false alarm is expected in {analyzer.arl:g} steps"
    table = ReportTable(
        ("series", "steps", *_SERIES_SUMMARY_NAMES), [list(row.values()) for row in rows]
    )
    sections: list[str | ReportTable] = [table, f"{counts}; {expected}"]
    return Report(figures, sections, list(_warnings(analyzer)), _plots(analyzer))


def _summarize_series(name: str, column: Floats) -> dict[str, Any]:
    values = column[~np.isnan(column)]
    row: dict[str, Any] = {"series": name, "steps": len(values)} | dict.fromkeys(
        _SERIES_SUMMARY_NAMES
    )
    if len(values):
        sd = values.std(ddof=1) if len(values) > 1 else 0.0
        figures = (values.mean(), sd, values.min(), values.max(), values[-1])
        row |= zip(_SERIES_SUMMARY_NAMES, map(float, figures), strict=True)
    return row


def _warnings(analyzer: Analyzer) -> Iterator[str]:
    """Yield a sentence for series that are not tested yet, and for each that is autocorrelated: `arl` does not hold.

    The estimate is by how often the normal scores of two steps in a row have one sign: a change of level then weighs no
    more than the steps until it is found.
    """
    if not analyzer.series:
        return
    untested_step_count = CALIBRATION_STEPS + MIN_SCORES_BEFORE_TESTS
    calibrated_series_names = [
        series.name for series in analyzer.series if series.name in CALIBRATED_SERIES_NAMES
    ]
    if analyzer.step_count <= untested_step_count:
        baseline_text = f"the first {CALIBRATION_STEPS} steps are what they compare with"
        yield f"{' and '.join(calibrated_series_names)}: tested from step {untested_step_count + 1} on; {baseline_text}"
    signs = np.nan_to_num(np.sign(np.array(analyzer.normal_scores)))
    products = signs[1:] * signs[:-1]
    pair_counts = np.abs(products).sum(axis=0)
    sign_agreement_sums = products.sum(axis=0)
    for series, pairs, sign_agreement_sum in zip(
        analyzer.series, pair_counts, sign_agreement_sums, strict=True
    ):
        count = max(pairs, 1.0)
        agreement = sign_agreement_sum / count
        bounds = np.array([agreement, agreement - 3.0 / count**0.5])
        correlation, lowest = np.sin(np.pi / 2.0 * bounds)
        if pairs >= _MIN_PAIRS_FOR_AUTOCORRELATION and lowest > _MAX_HARMLESS_AUTOCORRELATION:
            problem = (
                f"depends on the step before (autocorrelation {correlation:.2f}), "
                "so false alarms are more frequent"
            )
            remedy = "shuffle the prompts, or make steps of more tasks"
            yield f"{series.name} {problem} than one in {analyzer.arl:g} steps; {remedy}"


def _plots(analyzer: Analyzer) -> list[Plot]:
    """Return a panel for each series, shaded from where a change began to where it was found."""
    plots = []
    columns = np.array(analyzer.values).T.tolist()
    for series, column in zip(analyzer.series, columns, strict=True):
        values = [None if isnan(value) else value for value in column]
        line = PlotSeries(series.name, values, range(1, len(values) + 1))
        alerts = [alert for alert in analyzer.alerts if alert.series == series.name]
        shaded_ranges = []
        for alert in alerts:
            label = "hack" if alert.kind == "hack" else ""
            shaded_ranges.append(PlotShading(alert.since, alert.step, label, alert.adverse))
        title = describe_series(f"{series.name}: no change was found; it", "step", line)
        changes = [_describe_alert(alert) for alert in alerts if alert.kind == "change"]
        if changes:
            title = f"{series.name} {'; '.join(changes[:_MAX_CHANGES_IN_TITLE])}"
        plots.append(Plot(title, "line", [line], "step", series.name, shaded_ranges=shaded_ranges))
    return plots


def _describe_alert(alert: Alert) -> str:
    verb_text = "rises" if alert.direction == "up" else "falls"
    return f"{verb_text} from about step {alert.since} on, from {alert.before:.3g} to {alert.after:.3g}"


def iter_scored_groups(
    folder: Path, wait: Callable[[], None] | None = None
) -> Generator[ScoredGroup, None, None]:
    """Yield the groups of a run in the order of its tasks; with `wait`, also those added until the run is closed.

    Those of an open-ended run come in the order in which they were scored.
    The run is reopened for every pass and closed before `wait`, which returns when to read it again, so that its
    writer is not blocked.
    """
    last_read_sequence_number = 0
    is_run_finished = False
    while not is_run_finished:
        with closing(Run.open(folder)) as run:
            is_run_finished = run.is_closed or wait is None
            last = run.last_base_record_number
            ledger = run.source.ledger
            replaced_record_numbers = run.replaced_group_numbers()
            kind = "group" if run.header.is_open_ended else "task"
            records = ledger.records(kind, last_read_sequence_number)
            if run.is_set_of_runs:
                if wait is not None:
                    raise InputError(f"{folder}: is a folder of runs; follow one of them")
                records = iter(sorted(records, key=lambda record: record.content.get("step", 0)))
            for record in records:
                group = record if record.kind == "group" else ledger.find("group", record.key)
                if group is None and not is_run_finished:
                    break  # later tasks may be scored already
                is_record_after_last = last is not None and group is not None and group.seq > last
                if (
                    group is not None
                    and not is_record_after_last
                    and group.seq not in replaced_record_numbers
                ):
                    yield run.group(group)
                last_read_sequence_number = record.seq
        if not is_run_finished and wait is not None:
            wait()


def read_penalty_component_names(folder: Path) -> frozenset[str]:
    """Return the components of a run with a negative weight in its config."""
    with closing(Run.open(folder)) as run:
        return frozenset(name for name, weight in run.config.reward.items() if weight < 0)


def split_steps_by_task_count(
    stream: Iterable[ScoredGroup], every: int
) -> Iterator[list[ScoredGroup]]:
    """Yield steps of `every` tasks each; an incomplete step at the end is dropped."""
    groups = iter(stream)
    while len(step := list(islice(groups, every))) == every:
        yield step


def split_steps_by_label(stream: Iterable[ScoredGroup], label: str) -> Iterator[list[ScoredGroup]]:
    """Yield steps of consecutive tasks whose responses have the same value of a label.

    Erased responses have no label; a task with only erased responses belongs to the step around it. Raises `InputError`
    if a response lacks the label, a task has two values, or a value occurs again after another.
    """
    step: list[ScoredGroup] = []
    step_values: list[JsonValue] = []
    for group in stream:
        values = [_get_label(trace, label) for trace, response in group if response is not None]
        task = group[0].trace.task_id
        if any(value != values[0] for value in values):
            raise InputError(
                f"task {task!r}: its responses differ in label {label!r}; a task belongs to one step"
            )
        if values and step_values[-1:] != values[:1]:
            if values[0] in step_values:
                raise InputError(
                    f"task {task!r}: label {label!r} is {values[0]!r} again, after others; order tasks by it"
                )
            if step_values:
                yield step
                step = []
            step_values.append(values[0])
        step.append(group)
    if step:
        yield step


def _get_label(trace: Trace, label: str) -> JsonValue:
    if label not in trace.labels:
        names = ", ".join(map(repr, trace.labels)) or "none"
        raise InputError(
            f"response {trace.response_id!r}: has no label {label!r}; its labels: {names}"
        )
    return trace.labels[label]


def iter_training_steps(groups_by_step: Iterable[Sequence[ScoredGroup]]) -> Iterator[TrainingStep]:
    """Yield steps as the analyzer expects them. Components are those of the first step; lengths are in characters."""
    names: list[str] | None = None
    for tasks in groups_by_step:
        rows = list(chain.from_iterable(tasks))
        rewards = [trace.reward for trace, _ in rows]
        if names is None:
            names = sorted(set(chain.from_iterable(reward.components for reward in rewards)))
        components = {}
        for name in names:
            components[name] = _to_floats(reward.components.get(name) for reward in rewards)
        lengths: list[int | None] = []
        for _, response in rows:
            lengths.append(None if response is None else len(response.text))
        yield TrainingStep(
            rewards=_to_floats(reward.value for reward in rewards),
            components=components,
            lengths=_to_floats(lengths),
            groups=[trace.task_id for trace, _ in rows],
        )


def _to_floats(values: Iterable[float | None]) -> Floats:
    return np.array(list(values), dtype=np.float64)
