"""Disagreement of the components of a reward, measured from stored runs (MACRM, section 4.5)."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation import fusion
from jurygraph.arrays import Bools, Floats, Ints, as_unit_interval
from jurygraph.errors import InputError, PlanError
from jurygraph.inference.clusters import jackknife_interval
from jurygraph.runs.run import Run
from jurygraph.schema import Trace
from jurygraph.studies.report import IntervalCell, Plot, PlotSeries, Report, ReportTable, omission_notes

PAPER = ("accuracy", "format", "steps")
"""r_acc, r_fmt and r_step of MACRM Eq. 5, under the names of their evaluators."""

_MAX_STEPS = 30
_SERIES_TITLES = {"reward": "mean reward", "disagreement": "mean D_pair", "conflict_rate": "conflict rate"}
_ROUNDING = 1e-9
_DECIMALS = 12  # equal differences can differ in their last bits: 0.3 - 0.2 is not 0.2 - 0.1
Figures = dict[str, Any]


@dataclass(frozen=True)
class StepRule:
    """Rule for cutting a run into steps: by a response label that holds the step number, or every N tasks.

    With neither there are no steps. Tasks are counted in the order of the run, including tasks with failed rewards.
    """

    label: str | None = None
    every: int | None = None

    def __post_init__(self) -> None:
        if self.label is not None and self.every is not None:
            raise InputError("steps are cut by a label or every N tasks, not both; leave one of them out")

    @property
    def has_steps(self) -> bool:
        """Return True if the run is cut into steps."""
        return self.label is not None or self.every is not None

    def step_of(self, trace: Trace, task_index: int) -> float | None:
        """Return the step of a response; None if it has none. Raises `InputError` if the label is no finite number."""
        if self.every is not None:
            return float(task_index // self.every + 1)
        if self.label is None or self.label not in trace.labels:
            return None
        value = trace.labels[self.label]
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            problem = f"label {self.label!r} of response {trace.response_id!r} is {value!r}"
            raise InputError(f"{problem}, which is no step; name a label that holds a number, such as 12")
        return float(value)


NO_STEPS = StepRule()


@dataclass(frozen=True, eq=False, slots=True)
class Samples:
    """R responses of one run, in the order of their ids.

    Attributes:
        components: names, [m], m ≥ 2.
        ids, groups: ids of the responses, sorted, and of their tasks, [R], R ≥ 2.
        rewards, values: rewards [R], and components in [0, 1], [R, m].
        steps: [R]; None if the run is not cut into steps.
        left_out: number of responses that are not samples, by reason.
    """

    run: str
    components: tuple[str, ...]
    ids: tuple[str, ...]
    groups: tuple[str, ...]
    rewards: Floats
    values: Floats
    steps: Floats | None
    left_out: Mapping[str, int]


def read_samples(
    run: Run,
    advance: Callable[[int], None] = lambda tasks: None,
    cut: StepRule = NO_STEPS,
    components: Sequence[str] = (),
) -> Samples:
    """Return the samples of a run; `advance` is called with 1 for each task.

    A re-scored run gives its own rewards and components. Without `components`, these are the paper's accuracy, format
    and steps if all three count in the run with a positive weight, else all that do. Left out and counted are responses
    whose reward failed, those with a missing component, and those without the label of the step.

    Raises:
        InputError: an unknown component or fewer than two, a component outside [0, 1], a label that is not a number, or
            fewer than two samples.
        TraceMismatch: a record of the run has been changed.
    """
    chosen = _choose_components(run, components)
    left_out: Counter[str] = Counter()
    samples: list[tuple[Trace, list[float], float | None]] = []
    for index, group in enumerate(run.group_records()):
        for trace, _ in run.group(group):
            step = cut.step_of(trace, index)
            missing = next((name for name in chosen if trace.reward.components.get(name) is None), None)
            if trace.reward.value is None:
                left_out["responses whose reward failed"] += 1
            elif missing is not None:
                left_out[f"responses without the component {missing}"] += 1
            elif cut.has_steps and step is None:
                left_out[f"responses without the label {cut.label}"] += 1
            else:
                samples.append((trace, [_unit_component(trace, name) for name in chosen], step))
        advance(1)
    if len(samples) < 2:
        reasons = "; ".join(f"{reason}: {count}" for reason, count in left_out.items())
        problem = f"{len(samples)} of its responses have a reward and {', '.join(chosen)}"
        raise InputError(f"{run.folder}: {problem}{f' ({reasons})' if reasons else ''}; at least 2 are needed")
    samples.sort(key=lambda one: one[0].response_id)
    return Samples(
        run=str(run.folder),
        components=chosen,
        ids=tuple(trace.response_id for trace, _, _ in samples),
        groups=tuple(trace.task_id for trace, _, _ in samples),
        rewards=np.array([trace.reward.value for trace, _, _ in samples], dtype=np.float64),
        values=np.array([values for _, values, _ in samples]),
        steps=np.array([step for _, _, step in samples], dtype=np.float64) if cut.has_steps else None,
        left_out=dict(sorted(left_out.items())),
    )


def _choose_components(run: Run, requested: Sequence[str]) -> tuple[str, ...]:
    specs = [spec for record in run.ledger.records("decision") for spec in run.decision(record.key).specs]
    known = dict.fromkeys(spec.name for spec in specs)
    positive = dict.fromkeys(spec.name for spec in specs if spec.weight > 0)
    for name in requested:
        if name not in known:
            raise InputError(f"{run.folder}: has no component {name!r}; its components are {', '.join(known)}")
    chosen = tuple(dict.fromkeys(requested)) or (PAPER if set(PAPER) <= positive.keys() else tuple(positive))
    if len(chosen) < 2:
        problem = f"only {chosen[0]} is there to compare" if chosen else "no component counts with a positive weight"
        raise InputError(f"{run.folder}: {problem}; name 2 components or more of {', '.join(known)}")
    return chosen


def _unit_component(trace: Trace, name: str) -> float:
    """Return a component without rounding error, in [0, 1]. Raises InputError outside that range."""
    value = trace.reward.components[name]
    if value is None or not -_ROUNDING <= value <= 1.0 + _ROUNDING:
        problem = f"component {name} of response {trace.response_id!r} is {value}"
        raise InputError(f"{problem}, and only those in [0, 1] can be compared; name others with --components")
    return min(1.0, max(0.0, value))


def report(runs: Sequence[Samples], percentile: float = 80.0) -> Report:
    """Measure the disagreement of the components of each run (MACRM, section 4.5).

    - τ is the `percentile` of all D_pair of a run (NumPy's method `linear`), and a conflict is D_pair > τ. If many
      samples tie, fewer than 1 - percentile / 100 of them lie above it.
    - High-div are the 1 - percentile / 100 of the samples with the greatest D_pair, by count: rounded half up, at least
      one and not all. Of equal samples those with the smaller id come first.
    - D_pair is compared with 12 decimals.

    The figures of a run are `samples` responses in `tasks` tasks, the `threshold`, mean `disagreement`, `conflicts`,
    the `split`, `steps` (mean reward, mean D_pair and conflict rate, Eq. 7; empty if the run is not cut into steps),
    and `left_out`, by reason.

    Raises `InputError` if `percentile` is not above 0 and below 100; the paper's is 80.
    """
    if not 0.0 < percentile < 100.0:
        raise InputError(f"there is no {percentile}th percentile to compare with; name one above 0 and below 100")
    measured = [_measure(samples, percentile) for samples in runs]
    columns = {"run": "run", "responses": "samples", "mean D_pair": "disagreement"}
    columns |= {f"τ ({percentile:g}th pct)": "threshold", "conflicts": "conflicts", "conflict rate": "conflict_rate"}
    sections: list[str | ReportTable] = [ReportTable.of(columns, measured)]
    notes: list[str] = []
    for one in measured:
        components = ", ".join(one["components"])
        sections.append(f"{one['run']}: {components}, of {one['samples']} responses to {one['tasks']} tasks")
        sections += _run_tables(one)
        notes += omission_notes(one["left_out"], f"{one['run']}: ")
        found = one["split"]
        if found["tied_low"]:
            ties = f"{found['tied_high']} High-div and {found['tied_low']} Low-div responses tie at D_pair"
            notes.append(f"{one['run']}: {ties} {found['cut']:.4g}; ties are split by id")
    if len({one["components"] for one in measured}) > 1:
        notes.append("the runs have different components; choose common ones with --components")
    return Report({"runs": measured}, sections, notes, list(_plots(measured)))


def _measure(samples: Samples, percentile: float) -> Figures:
    exact = np.atleast_1d(pairwise(samples.values))
    disagreement = np.round(exact, _DECIMALS)
    threshold = round(float(np.percentile(disagreement, percentile, method="linear")), _DECIMALS)
    conflict = disagreement > threshold
    return {
        "run": samples.run,
        "components": samples.components,
        "tasks": len(set(samples.groups)),
        "samples": len(samples.ids),
        "percentile": percentile,
        "threshold": threshold,
        "disagreement": float(np.mean(exact)),
        "conflicts": int(conflict.sum()),
        "conflict_rate": float(np.mean(conflict)),
        "split": split(samples, disagreement, percentile),
        "steps": _step_means(samples, exact, conflict),
        "left_out": samples.left_out,
    }


def _run_tables(one: Figures) -> Iterator[ReportTable]:
    found = one["split"]
    sides = {f"High-div ({found['high']})": "high", f"Low-div ({found['low']})": "low"}
    yield ReportTable.of({"mean": "name", **sides, "difference (95 %)": "difference"}, found["rows"])
    series = {title: name for name, title in _SERIES_TITLES.items()}
    steps = [{**step, "step": f"{step['step']:g}"} for step in one["steps"]]
    yield ReportTable.of({"step": "step", "responses": "samples", **series}, steps, most=_MAX_STEPS)


def _plots(measured: Sequence[Figures]) -> Iterator[Plot]:
    if not any(one["steps"] for one in measured):
        return
    for name, title in _SERIES_TITLES.items():
        series = [
            PlotSeries(one["run"], [step[name] for step in one["steps"]], [step["step"] for step in one["steps"]])
            for one in measured
        ]
        yield Plot(title, "line", series, x_label="step")


def _step_means(samples: Samples, disagreement: Floats, conflict: Bools) -> list[Figures]:
    if samples.steps is None:
        return []
    steps, places, counts = np.unique(samples.steps, return_inverse=True, return_counts=True)
    columns = {"step": steps, "samples": counts}
    for name, column in (("reward", samples.rewards), ("disagreement", disagreement), ("conflict_rate", conflict)):
        columns[name] = np.bincount(places, column) / counts
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def pairwise(components: ArrayLike) -> np.float64 | Floats:
    """Return D_pair = 2 / (m (m - 1)) · Σ_{i<j} |r_i - r_j|: mean absolute difference of components (MACRM Eq. 6).

    It is in [0, 1], for m = 3 at most 2/3: a scalar for one response [m], else [R] for [R, m]. The order of the
    components does not change a bit of it.

    Raises:
        InputError: fewer than two components, another shape, or a value that is not a number in [0, 1] (such as NaN,
            booleans or text); the first such value is named.
    """
    try:
        values = as_unit_interval("components", components)
        if values.ndim not in (1, 2):
            raise InputError(f"components have shape {values.shape}: [m] or [R, m] is needed")
        return np.minimum(fusion.disagreement(values), 1.0)
    except PlanError as error:
        raise InputError(str(error)) from None


def split(samples: Samples, disagreement: Floats, percentile: float) -> Figures:
    """Compare the samples above a `percentile` of D_pair, `disagreement` [R], by count, with the rest.

    `cut` is the least D_pair in High-div. `tied_high` samples of High-div and `tied_low` of Low-div have exactly this
    value; the id decided between them. `rows` are the columns of MACRM's Table 4: the reward, then the components.

    The intervals are 95 % jackknife intervals of the difference over tasks, each left out with all its samples, with
    Student's t of one degree of freedom less than the side with fewer tasks has. Each sample stays on its side. The
    ends are None if the tasks cannot tell: with one task, if one task has all samples of a side, or if fewer than six
    tasks all agree.
    """
    size = len(disagreement)
    exact_count = round((100.0 - percentile) * size / 100.0, 9)  # 10 % of 15 is 1.5, and half up is 2
    high_count = min(size - 1, max(1, math.floor(exact_count + 0.5)))
    order = np.argsort(-disagreement, kind="stable")  # the samples are in the order of their ids
    chosen = np.zeros(size, dtype=np.bool_)
    chosen[order[:high_count]] = True
    cut = disagreement[order[high_count - 1]]
    tasks = np.unique(samples.groups, return_inverse=True)[1]
    columns = {"reward": samples.rewards, **dict(zip(samples.components, samples.values.T, strict=True))}
    return {
        "high": high_count,
        "low": size - high_count,
        "cut": float(cut),
        "tied_high": int((chosen & (disagreement == cut)).sum()),
        "tied_low": int((~chosen & (disagreement == cut)).sum()),
        "rows": [{"name": name, **_compare_sides(column, chosen, tasks)} for name, column in columns.items()],
    }


def _compare_sides(column: Floats, chosen: Bools, tasks: Ints) -> Figures:
    high, high_without = _means_without(column, chosen, tasks)
    low, low_without = _means_without(column, ~chosen, tasks)
    interval = IntervalCell(high - low, None, None)
    if high_without is not None and low_without is not None:
        fewest = min(len(np.unique(tasks[side])) for side in (chosen, ~chosen))
        estimate = jackknife_interval(high - low, high_without - low_without, fewest - 1)
        interval = IntervalCell(high - low, estimate.low, estimate.high)
    return {"high": high, "low": low, "difference": interval}


def _means_without(column: Floats, side: Bools, tasks: Ints) -> tuple[float, Floats | None]:
    """Return the mean of one side's samples, and those without each task, [G]; None if a task has all of the side."""
    counts = np.bincount(tasks, side)
    sums = np.bincount(tasks, column * side)
    total = counts.sum()
    mean = math.fsum(column[side]) / float(total)
    if (counts == total).any():
        return mean, None
    return mean, mean + (counts * mean - sums) / (total - counts)
