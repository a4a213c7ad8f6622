"""Samples of a study of disagreement: the components of a run's responses, cut into steps."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jurygraph.aggregation.arrays import Floats
from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.schema import Trace

PAPER = ("accuracy", "format", "steps")
"""r_acc, r_fmt and r_step of MACRM Eq. 5, under the names of their evaluators."""

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class StepRule:
    """Rule for cutting a run into steps: by a response label that holds the step number, or every N tasks.

    With neither there are no steps. Tasks are counted in the order of the run, including tasks with failed rewards.

    Raises:
        InputError: both are set, or `every` is below 1.
    """

    label: str | None = None
    every: int | None = None

    def __post_init__(self) -> None:
        if self.label is not None and self.every is not None:
            raise InputError("steps are cut by a label or every N tasks, not both; leave one of them out")
        if self.every is not None and self.every < 1:
            raise InputError(f"steps cannot be cut every {self.every} tasks; name a number from 1")

    @property
    def has_steps(self) -> bool:
        """Return True if the run is cut into steps."""
        return self.label is not None or self.every is not None

    def step_of(self, trace: Trace, task_index: int) -> float | None:
        """Return the step of a response: its label's number, or 1, 2, … for every N tasks; None if it has none.

        Raises `InputError` if the label is not a finite number.
        """
        if self.every is not None:
            return float(task_index // self.every + 1)
        if self.label is None or self.label not in trace.labels:
            return None
        value = trace.labels[self.label]
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            problem = f"label {self.label!r} of response {trace.response_id!r} is {value!r}"
            raise InputError(f"{problem}, which is no step; name a label that holds a number, such as 12")
        return float(value)


@dataclass(frozen=True, eq=False, slots=True)
class Samples:
    """R responses of one run, in the order of their ids.

    Attributes:
        run: name of the run.
        components: names, [m], m ≥ 2.
        ids: of the responses, sorted [R], R ≥ 2.
        groups: task id of each [R].
        rewards: [R].
        values: each component in [0, 1], [R, m].
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
    run: Run, cut: StepRule, components: Sequence[str] = (), report: Callable[[int], None] = lambda tasks: None
) -> Samples:
    """Return the samples of a run; `report` is called with 1 for each task.

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
    for index, group in enumerate(run.source.ledger.records("group", up_to=run.last_base_record)):
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
        report(1)
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
