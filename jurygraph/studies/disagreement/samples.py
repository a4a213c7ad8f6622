"""Samples of a study of disagreement: the components of a run's responses."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from jurygraph.aggregation.arrays import Floats
from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.studies.steps import Row, StepRule, read_rows

PAPER = ("accuracy", "format", "steps")
"""r_acc, r_fmt and r_step of MACRM Eq. 5, under the names of their evaluators."""

_ROUNDING = 1e-9


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

    Without `components`, these are the paper's accuracy, format and steps if all three count in the run with a positive
    weight, else all that do. Left out and counted are responses whose reward failed, those with a missing component,
    and those without the label of the step.

    Raises:
        InputError: an unknown component or fewer than two, a component outside [0, 1], a label that is not a number, or
            fewer than two samples.
    """
    chosen = _choose_components(run, components)
    left_out: Counter[str] = Counter()
    samples = []
    for row in read_rows(run, cut, report):
        reason = _exclusion_reason(row, chosen, cut)
        if reason is None:
            samples.append((row, _component_values(row, chosen)))
        else:
            left_out[reason] += 1
    if len(samples) < 2:
        raise InputError(f"{run.folder}: {_describe_too_few(len(samples), chosen, left_out)}")
    samples.sort(key=lambda one: one[0].response)
    return _make_samples(run, chosen, samples, cut, left_out)


def _make_samples(
    run: Run, chosen: tuple[str, ...], kept: Sequence[tuple[Row, list[float]]], cut: StepRule, left_out: Counter[str]
) -> Samples:
    return Samples(
        run=str(run.folder),
        components=chosen,
        ids=tuple(row.response for row, _ in kept),
        groups=tuple(row.group for row, _ in kept),
        rewards=np.array([row.reward for row, _ in kept], dtype=np.float64),
        values=np.array([values for _, values in kept]),
        steps=np.array([row.step for row, _ in kept], dtype=np.float64) if cut.has_steps else None,
        left_out=dict(sorted(left_out.items())),
    )


def _choose_components(run: Run, requested: Sequence[str]) -> tuple[str, ...]:
    decisions = (run.decision(record.key) for record in run.ledger.records("decision"))
    specs = list(chain.from_iterable(decision.specs for decision in decisions))
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


def _exclusion_reason(row: Row, chosen: Sequence[str], cut: StepRule) -> str | None:
    """Return the reason why a response is not a sample; None if it is one."""
    if row.reward is None:
        return "responses whose reward failed"
    missing = next((name for name in chosen if row.components.get(name) is None), None)
    if missing is not None:
        return f"responses without the component {missing}"
    return f"responses without the label {cut.label}" if cut.has_steps and row.step is None else None


def _component_values(row: Row, chosen: Sequence[str]) -> list[float]:
    return [_validate_unit(row.response, name, row.components[name]) for name in chosen]


def _validate_unit(response: str, name: str, value: float | None) -> float:
    """Return a component without rounding error, in [0, 1]. Raises InputError outside that range."""
    if value is None or not -_ROUNDING <= value <= 1.0 + _ROUNDING:
        problem = f"component {name} of response {response!r} is {value}, and only those in [0, 1] can be compared"
        raise InputError(f"{problem}; name others with --components")
    return min(1.0, max(0.0, value))


def _describe_too_few(kept: int, chosen: Sequence[str], left_out: Mapping[str, int]) -> str:
    reasons = "; ".join(f"{reason}: {count}" for reason, count in left_out.items())
    needed = f"a reward and {', '.join(chosen)}"
    return f"{kept} of its responses have {needed}{f' ({reasons})' if reasons else ''}; at least 2 are needed"
