"""Disagreement of the components of a reward, measured from stored runs (MACRM, section 4.5)."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation import fusion
from jurygraph.arrays import Bools, Floats, as_unit_interval
from jurygraph.display import ProgressCallback, ignore_progress
from jurygraph.errors import InputError
from jurygraph.inference.clusters import cluster_numbers, difference_interval
from jurygraph.messages import shell_quote
from jurygraph.runs.reports.units import unit_name_of_task, units_label
from jurygraph.runs.run import Run
from jurygraph.schema import Trace
from jurygraph.studies import symbols
from jurygraph.studies.monitor import refuse_runs_without_order
from jurygraph.studies.report import (
    FigureRows,
    Figures,
    IntervalCell,
    Plot,
    PlotSeries,
    Report,
    ReportSection,
    ReportTable,
    describe_series,
    list_omissions,
    omission_notes,
)

PAPER_COMPONENTS = ("accuracy", "format", "steps")
"""r_acc, r_fmt and r_step of MACRM Eq. 5, under the names of their evaluators."""
CONFLICT_PERCENTILE = 80.0
"""Responses with D_pair above this percentile of their run are conflicts."""

_MAX_STEPS_LISTED = 30
_SERIES_TITLES = {
    "reward": "mean reward",
    "disagreement": "mean D_pair",
    "conflict_rate": "conflict rate",
}
_ROUNDING_ERROR = 1e-9
_ROUNDING_DECIMALS = (
    12  # equal differences can differ in their last bits: 0.3 - 0.2 is not 0.2 - 0.1
)


class ComponentSamples(NamedTuple):
    """R responses of one run, in the order of their ids.

    Attributes:
        components: names, [m], m ≥ 2.
        units: names of the units, tasks or groups of them, [R], R ≥ 2.
        rewards, values: rewards [R], and components in [0, 1], [R, m].
        steps: [R]; None if the run is not cut into steps.
        left_out: number of responses that are not samples, by reason.
    """

    run: str
    components: tuple[str, ...]
    units: tuple[str, ...]
    rewards: Floats
    values: Floats
    steps: Floats | None
    left_out: Mapping[str, int]


def collect_component_samples(
    run: Run,
    advance: ProgressCallback = ignore_progress,
    components: Sequence[str] = (),
    step_label: str | None = None,
    every: int | None = None,
) -> ComponentSamples:
    """Return the samples of a run; `advance` is called with 1 for each task.

    Without `components`, these are the paper's accuracy, format and steps if all three count in the run with a positive
    weight, else all that do. A step is the number in the label `step_label`, or `every` N tasks, in the order of the
    run; with neither there are none. Left out and counted are responses whose reward failed, those with a missing
    component, and those without the label of the step.

    Raises `InputError` for an unknown component or fewer than two, a component outside [0, 1], a label that is not a
    number, or fewer than two samples, and `TraceMismatch` if a record of the run has been changed.
    """
    if every is not None:
        refuse_runs_without_order(run.folder)
    chosen = _choose_components(run, components)
    left_out = Counter[str]()
    samples = []
    units = {}
    for index, group in enumerate(run.group_records()):
        units[group.key] = unit_name_of_task(run, group.key)
        for trace, _ in run.group(group):
            values_by_name = trace.reward.components
            missing = next((name for name in chosen if values_by_name.get(name) is None), None)
            if trace.reward.value is None:
                left_out["responses whose reward failed"] += 1
            elif missing is not None:
                left_out[f"responses without the component {missing}"] += 1
            elif step_label is not None and step_label not in trace.labels:
                left_out[f"responses without the label {step_label}"] += 1
            else:
                step = index // (every or 1) + 1.0
                if step_label is not None:
                    step = _training_step_from_label(trace, step_label)
                values = [_read_unit_interval_component(trace, name) for name in chosen]
                samples.append((trace, values, step))
        advance(1)
    if len(samples) < 2:
        problem = f"{len(samples)} of its responses have a reward and {', '.join(chosen)}"
        if left_out:
            problem += f" ({list_omissions(left_out)})"
        raise InputError(f"{run.folder}: {problem}; at least 2 are needed")
    samples.sort(key=lambda sample: sample[0].response_id)
    has_steps = step_label is not None or every is not None
    return ComponentSamples(
        run=str(run.folder),
        components=chosen,
        units=tuple(units[trace.task_id] for trace, _, _ in samples),
        rewards=np.array([trace.reward.value for trace, _, _ in samples]),
        values=np.array([values for _, values, _ in samples]),
        steps=np.array([step for _, _, step in samples]) if has_steps else None,
        left_out=dict(sorted(left_out.items())),
    )


def _choose_components(run: Run, requested_component_names: Sequence[str]) -> tuple[str, ...]:
    specs = list(chain.from_iterable(decision.specs for decision in run.decisions()))
    names = list(dict.fromkeys(spec.name for spec in specs))
    positive_component_names = dict.fromkeys(spec.name for spec in specs if spec.weight > 0)
    for name in requested_component_names:
        if name not in names:
            raise InputError(
                f"{run.folder}: has no component {name!r}; its components are {', '.join(names)}"
            )
    chosen = tuple(dict.fromkeys(requested_component_names))
    if not chosen:
        chosen = (
            PAPER_COMPONENTS
            if set(PAPER_COMPONENTS) <= positive_component_names.keys()
            else tuple(positive_component_names)
        )
    if len(chosen) < 2:
        problem = "no component counts with a positive weight"
        if chosen:
            problem = f"only {chosen[0]} is there to compare"
        if len(names) > 1:
            problem += f"; name 2 components or more of {', '.join(names)}"
        if run.config.models:
            problem += (
                f"; how far judges differ: jurygraph study reliability {shell_quote(run.folder)}"
            )
        raise InputError(f"{run.folder}: {problem}")
    return chosen


def _training_step_from_label(trace: Trace, label: str) -> float:
    value = trace.labels[label]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(
            f"label {label!r} of response {trace.response_id!r} is {value!r}, which is no step; name a label that "
            "holds a number, such as 12"
        )
    return float(value)


def _read_unit_interval_component(trace: Trace, name: str) -> float:
    """Return a component without rounding error, in [0, 1]. Raises InputError outside that range."""
    value = trace.reward.components[name]
    if value is None or not -_ROUNDING_ERROR <= value <= 1.0 + _ROUNDING_ERROR:
        raise InputError(
            f"component {name} of response {trace.response_id!r} is {value}, and only those in [0, 1] can be compared; "
            "name others with --components"
        )
    return min(1.0, max(0.0, value))


def report(runs: Sequence[ComponentSamples]) -> Report:
    """Measure the disagreement of the components of each run (MACRM, section 4.5).

    - τ is the 80th percentile of all D_pair of a run (NumPy's method `linear`), and a conflict is D_pair > τ. If many
      samples tie, fewer than a fifth of them lie above it.
    - High-div are the fifth of the samples with the greatest D_pair, by count: rounded half up, at least one and not
      all. Of equal samples those with the smaller id come first.
    - D_pair is compared with 12 decimals.

    The figures of a run are `samples` responses in `tasks` tasks, or groups of tasks (`units`), the `threshold`, mean
    `disagreement`, `conflicts`, the `split`, `steps` (mean reward, mean D_pair and conflict rate, Eq. 7; empty if the
    run is not cut into steps), and `left_out`, by reason.
    """
    run_figures = [_measure_component_disagreement(samples) for samples in runs]
    columns = {
        "run": "run",
        "responses": "samples",
        "mean D_pair": "disagreement",
        f"τ ({CONFLICT_PERCENTILE:g}th pct)": "threshold",
        "conflicts": "conflicts",
        "conflict rate": "conflict_rate",
    }
    sections: list[ReportSection] = [ReportTable.of(columns, run_figures)]
    notes: list[str] = []
    step_columns: dict[str, Any] = {
        "step": lambda step: f"{step['step']:g}",
        "responses": "samples",
    }
    step_columns |= {title: name for name, title in _SERIES_TITLES.items()}
    for row in run_figures:
        run = row["run"]
        sections.append(
            f"{run}: {', '.join(row['components'])}, of {row['samples']} responses to {row['tasks']} "
            f"{row['units']}"
        )
        split_figures = row["split"]
        columns = {
            "mean": "name",
            f"High-div ({split_figures['high']})": "high",
            f"Low-div ({split_figures['low']})": "low",
            "difference (95 %)": "difference",
        }
        sections.append(ReportTable.of(columns, split_figures["rows"]))
        sections.append(ReportTable.of(step_columns, row["steps"], most=_MAX_STEPS_LISTED))
        notes += omission_notes(row["left_out"], f"{run}: ")
        if split_figures["tied_low"]:
            notes.append(
                f"{run}: {split_figures['tied_high']} High-div and {split_figures['tied_low']} Low-div "
                f"responses tie at D_pair {split_figures['cut']:.4g}; ties are split by id"
            )
    if len({row["components"] for row in run_figures}) > 1:
        notes.append("the runs have different components; choose common ones with --components")
    return Report(
        {"runs": run_figures},
        sections,
        notes,
        _plots(run_figures),
        symbol_meanings=symbols.DISAGREEMENT_SYMBOL_MEANINGS,
    )


def _measure_component_disagreement(samples: ComponentSamples) -> Figures:
    exact_values = np.atleast_1d(pairwise(samples.values))
    disagreement = np.round(exact_values, _ROUNDING_DECIMALS)
    conflict_percentile_value = np.percentile(disagreement, CONFLICT_PERCENTILE, method="linear")
    threshold = round(float(conflict_percentile_value), _ROUNDING_DECIMALS)
    conflict = disagreement > threshold
    units = samples.units
    return {
        "run": samples.run,
        "components": samples.components,
        "units": units_label(units),
        "tasks": len(set(units)),
        "samples": len(units),
        "threshold": threshold,
        "disagreement": np.mean(exact_values),
        "conflicts": conflict.sum(),
        "conflict_rate": np.mean(conflict),
        "split": split(samples, disagreement),
        "steps": _step_means(samples, exact_values, conflict),
        "left_out": samples.left_out,
    }


def _plots(run_figures: FigureRows) -> Iterator[Plot]:
    if not any(row["steps"] for row in run_figures):
        return
    for name, title in _SERIES_TITLES.items():
        series = []
        for row in run_figures:
            values = [step[name] for step in row["steps"]]
            numbers = [step["step"] for step in row["steps"]]
            series.append(PlotSeries(row["run"], values, numbers))
        subject = title[0].upper() + title[1:]
        if len(series) > 1:
            subject += f" of {series[0].label}"
        sentence = describe_series(subject, "step", series[0])
        yield Plot(sentence, "line", series, x_label="step")


def _step_means(samples: ComponentSamples, disagreement: Floats, conflict: Bools) -> list[Figures]:
    if samples.steps is None:
        return []
    steps, step_index_by_sample, counts = np.unique(
        samples.steps, return_inverse=True, return_counts=True
    )
    columns = {
        "step": steps,
        "samples": counts,
        "reward": np.bincount(step_index_by_sample, samples.rewards) / counts,
        "disagreement": np.bincount(step_index_by_sample, disagreement) / counts,
        "conflict_rate": np.bincount(step_index_by_sample, conflict) / counts,
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def pairwise(components: ArrayLike) -> np.float64 | Floats:
    """Return D_pair = 2 / (m (m - 1)) · Σ_{i<j} |r_i - r_j|: mean absolute difference of components (MACRM Eq. 6).

    It is in [0, 1], for m = 3 at most 2/3: a scalar for one response [m], else [R] for [R, m]. The order of the
    components does not change a bit of it. Raises `PlanError` for fewer than two components, and for the first value
    that is not a number in [0, 1].
    """
    return np.minimum(fusion.disagreement(as_unit_interval("components", components)), 1.0)


def split(samples: ComponentSamples, disagreement: Floats) -> Figures:
    """Compare the fifth of the samples with the greatest D_pair, `disagreement` [R], with the rest.

    `cut` is the least D_pair in High-div. `tied_high` samples of High-div and `tied_low` of Low-div have exactly this
    value; the id decided between them. `rows` are the columns of MACRM's Table 4: the reward, then the components.

    The intervals are 95 % jackknife intervals of the difference over units, each left out with all its samples, with
    Student's t of one degree of freedom less than the side with fewer units has. Each sample stays on its side. The
    ends are None if the units cannot tell: with one unit, if one unit has all samples of a side, or if fewer than six
    units all agree.
    """
    size = len(disagreement)
    # 20 % of 12.5 is 2.5, and half up is 3
    exact_high_count = round((100.0 - CONFLICT_PERCENTILE) * size / 100.0, 9)
    high_disagreement_count = min(size - 1, max(1, math.floor(exact_high_count + 0.5)))
    order = np.argsort(-disagreement, kind="stable")  # the samples are in the order of their ids
    chosen = np.zeros(size, dtype=np.bool_)
    chosen[order[:high_disagreement_count]] = True
    lowest_high_disagreement = disagreement[order[high_disagreement_count - 1]]
    is_tied_with_threshold = disagreement == lowest_high_disagreement
    units = cluster_numbers(samples.units)
    columns = {"reward": samples.rewards}
    columns |= zip(samples.components, samples.values.T, strict=True)
    side_masks = (chosen, ~chosen)
    counts = np.array([np.bincount(units, side) for side in side_masks])
    rows = []
    for name, column in columns.items():
        sums = np.array([np.bincount(units, column * side) for side in side_masks])
        high, low = [math.fsum(column[side]) / float(side.sum()) for side in side_masks]
        estimate = difference_interval(sums, counts)
        interval = IntervalCell(high - low, estimate.low, estimate.high)
        rows.append({"name": name, "high": high, "low": low, "difference": interval})
    return {
        "high": high_disagreement_count,
        "low": size - high_disagreement_count,
        "cut": lowest_high_disagreement,
        "tied_high": (chosen & is_tied_with_threshold).sum(),
        "tied_low": (~chosen & is_tied_with_threshold).sum(),
        "rows": rows,
    }
