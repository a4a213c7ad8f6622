"""Fixed weightings of stakeholders, applied to utilities that were estimated once (DecompR section 6.1, Table 5)."""

from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from jurygraph.agents.checks.tensions import find_tensions
from jurygraph.aggregation import stakeholders
from jurygraph.aggregation.stakeholders import SUM_TOLERANCE
from jurygraph.decision.weighting import weigh_stakeholders
from jurygraph.errors import InputError, PlanError
from jurygraph.messages import quote, shorten
from jurygraph.schema import FrozenModel, Task, WeightsConfig
from jurygraph.schema.frozen_model import Id, LongId, Unit
from jurygraph.sources.ratings import read_models

TEMPERATURES = (3.0, 5.0, 8.0)
"""τ of DecompR's Table 5."""
UNIFORM = "uniform"


class StakeholderWeight(FrozenModel):
    """A stakeholder's weight in a task."""

    json_columns: ClassVar = frozenset({"weight"})

    task: LongId
    stakeholder: Id
    weight: Unit


class OwnWeights(NamedTuple):
    """The weights of a file, by task and stakeholder."""

    name: str
    by_task: Mapping[str, Mapping[str, float]]


def difficulty_of(task: Task, config: WeightsConfig) -> dict[str, float]:
    """Return d_i by stakeholder (DecompR Eq. 9) with the discounts of a config; empty where a profile is text alone."""
    calibrated = config.model_copy(update={"method": "calibrated", "fixed": {}})
    try:
        _, terms = weigh_stakeholders(task, calibrated, ("stakeholder",), find_tensions)
    except PlanError:
        return {}
    return {person: term["difficulty"] for person, term in terms.items()}


def read_weights(path: Path) -> OwnWeights:
    """Read weights from a table with the columns `task`, `stakeholder` and `weight`, which sum to 1 in each task.

    Raises InputError with file, line and field.
    """
    found: dict[str, dict[str, float]] = {}
    for place, row in read_models(path, StakeholderWeight).rows:
        of_task = found.setdefault(row.task, {})
        if row.stakeholder in of_task:
            raise InputError(f"{path}, {place}: a second weight of {quote(row.stakeholder)} in task {quote(row.task)}")
        of_task[row.stakeholder] = row.weight
    for task, weights in found.items():
        total = sum(weights.values())
        if abs(total - 1.0) > SUM_TOLERANCE:
            raise InputError(f"{path}: the weights of task {quote(task)} sum to {total:g}; they have to sum to 1")
    return OwnWeights(path.name, found)


def check_weights(own: OwnWeights, people: Mapping[str, Set[str]]) -> Iterator[str]:
    """Yield notes on tasks without weights and on weights without a task, by the stakeholders of each scored task.

    Raises InputError where the weights are of no task, or of other stakeholders than a task has.
    """
    known = own.by_task.keys() & people.keys()
    if not known:
        found = f"such tasks: {shorten(', '.join(people))}" if people else "no task has any"
        raise InputError(f"{own.name}: has no weights of a task whose scores have utilities; {found}")
    for task in sorted(known):
        if own.by_task[task].keys() != people[task]:
            given, wanted = (", ".join(sorted(names)) for names in (own.by_task[task], people[task]))
            raise InputError(f"{own.name}: the weights of task {quote(task)} are of {given}; write those of {wanted}")
    if len(known) < len(people):
        yield f"left out of Table 5's row {own.name}, tasks without weights there: {len(people) - len(known)}"
    if len(known) < len(own.by_task):
        yield f"{own.name}: weights of tasks without scores: {len(own.by_task) - len(known)}"


def fixed_weights(
    people: tuple[str, ...], difficulty: Mapping[str, float], task: str | None, own: OwnWeights | None
) -> dict[str, np.ndarray]:
    """Return the weights [n] of `people` by the name of each weighting that is defined for them.

    They are uniform, DecompR's for each τ of `TEMPERATURES` where every difficulty is known, and those of a file.
    """
    found = {UNIFORM: np.full(len(people), 1.0 / len(people))}
    if all(person in difficulty for person in people):
        d = [difficulty[person] for person in people]
        found |= {f"DecompR τ={tau:g}": stakeholders.weights(d, tau) for tau in TEMPERATURES}
    if own is not None and task is not None and task in own.by_task:
        found[own.name] = np.array([own.by_task[task][person] for person in people])
    return found
