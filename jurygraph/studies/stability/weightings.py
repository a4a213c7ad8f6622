"""Fixed weightings of stakeholders, applied to utilities that were estimated once (DecompR section 6.1, Table 5)."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from jurygraph.agents.checks.tensions import find_tensions
from jurygraph.aggregation import stakeholders
from jurygraph.aggregation.stakeholders import SUM_TOLERANCE
from jurygraph.decision.weighting import weigh_stakeholders
from jurygraph.errors import InputError, PlanError
from jurygraph.messages import quote
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
    for _, row in read_models(path, StakeholderWeight).rows:
        found.setdefault(row.task, {})[row.stakeholder] = row.weight
    for task, weights in found.items():
        total = sum(weights.values())
        if abs(total - 1.0) > SUM_TOLERANCE:
            raise InputError(f"{path}: the weights of task {quote(task)} sum to {total:g}; they have to sum to 1")
    return OwnWeights(path.name, found)


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
    given = {} if own is None or task is None else own.by_task.get(task, {})
    if own is not None and all(person in given for person in people):
        found[own.name] = np.array([given[person] for person in people])
    return found
