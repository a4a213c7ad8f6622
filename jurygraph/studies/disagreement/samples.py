"""What a run holds of its responses' components: the samples that a study of disagreement is of."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.studies.stepwise import Cut, Row, read_rows

Floats = NDArray[np.float64]

PAPER = ("accuracy", "format", "steps")
"""r_acc, r_fmt and r_step of MACRM Eq. 5, as their evaluators are called here."""

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, slots=True)
class Samples:
    """R responses of one run, in the order of their ids.

    Attributes:
        run: what the run is called.
        components: names, [m], m ≥ 2.
        ids: of the responses, sorted [R], R ≥ 2.
        groups: id of each one's task [R].
        rewards: [R].
        values: each component in [0, 1], [R, m].
        steps: [R]; None where the run is not cut.
        left_out: how many responses are no samples, by why.
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
    run: Run, cut: Cut, components: Sequence[str] = (), report: Callable[[int], None] = lambda tasks: None
) -> Samples:
    """The samples of a run; `report` is called for each task.

    Without `components`, these are the paper's accuracy, format and steps where all three count in the run with a
    positive weight, else all that do. Left out and counted are responses whose reward failed, those of which a
    component is missing, and those without the label that steps are cut by.

    Raises:
        InputError: an unknown component or fewer than two, a component outside [0, 1], a label that holds no number, or
            fewer than two samples.
    """
    chosen = _chosen(run, components)
    left_out: Counter[str] = Counter()
    kept = []
    for row in read_rows(run, cut, report):
        why = _missing(row, chosen, cut)
        if why is None:
            kept.append((row, _values(row, chosen)))
        else:
            left_out[why] += 1
    if len(kept) < 2:
        raise InputError(f"{run.folder}: {_too_few(len(kept), chosen, left_out)}")
    kept.sort(key=lambda one: one[0].response)
    return _samples(run, chosen, kept, cut, left_out)


def _samples(
    run: Run, chosen: tuple[str, ...], kept: Sequence[tuple[Row, list[float]]], cut: Cut, left_out: Counter[str]
) -> Samples:
    return Samples(
        run=str(run.folder),
        components=chosen,
        ids=tuple(row.response for row, _ in kept),
        groups=tuple(row.group for row, _ in kept),
        rewards=np.array([row.reward for row, _ in kept], dtype=np.float64),
        values=np.array([values for _, values in kept]),
        steps=np.array([row.step for row, _ in kept], dtype=np.float64) if cut.cuts else None,
        left_out=dict(sorted(left_out.items())),
    )


def _chosen(run: Run, asked: Sequence[str]) -> tuple[str, ...]:
    decisions = (run.decision(record.key) for record in run.ledger.records("decision"))
    specs = list(chain.from_iterable(decision.specs for decision in decisions))
    known = dict.fromkeys(spec.name for spec in specs)
    positive = dict.fromkeys(spec.name for spec in specs if spec.weight > 0)
    for name in asked:
        if name not in known:
            raise InputError(f"{run.folder}: has no component {name!r}; its components are {', '.join(known)}")
    chosen = tuple(dict.fromkeys(asked)) or (PAPER if set(PAPER) <= positive.keys() else tuple(positive))
    if len(chosen) < 2:
        alone = f"only {chosen[0]} is there to compare" if chosen else "no component counts with a positive weight"
        raise InputError(f"{run.folder}: {alone}; name 2 components or more of {', '.join(known)}")
    return chosen


def _missing(row: Row, chosen: Sequence[str], cut: Cut) -> str | None:
    """Why a response is no sample."""
    if row.reward is None:
        return "responses whose reward failed"
    absent = next((name for name in chosen if row.components.get(name) is None), None)
    if absent is not None:
        return f"responses without the component {absent}"
    return f"responses without the label {cut.label}" if cut.cuts and row.step is None else None


def _values(row: Row, chosen: Sequence[str]) -> list[float]:
    return [_unit(row.response, name, row.components[name]) for name in chosen]


def _unit(response: str, name: str, value: float | None) -> float:
    """A component, without what rounding added to it."""
    if value is None or not -_ROUNDING <= value <= 1.0 + _ROUNDING:
        wrong = f"component {name} of response {response!r} is {value}, and only those in [0, 1] can be compared"
        raise InputError(f"{wrong}; name others with --components")
    return min(1.0, max(0.0, value))


def _too_few(kept: int, chosen: Sequence[str], left_out: Mapping[str, int]) -> str:
    why = "; ".join(f"{reason}: {count}" for reason, count in left_out.items())
    needed = f"a reward and {', '.join(chosen)}"
    return f"{kept} of its responses have {needed}{f' ({why})' if why else ''}; at least 2 are needed"
