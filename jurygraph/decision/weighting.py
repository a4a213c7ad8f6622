"""Compute the stakeholder weights of DecompR from the task alone."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from jurygraph import aggregation
from jurygraph.errors import ConfigError, PlanError
from jurygraph.messages import did_you_mean, nearest_name
from jurygraph.schema import Audience, Stakeholder, Task, WeightsConfig
from jurygraph.schema.frozen_model import JsonFields
from jurygraph.schema.task import ReadTension, sort_by_id


class ConstraintTension(NamedTuple):
    """A tension between two constraints: their ids, its strength in (0, 1], and the reason."""

    first: str
    second: str
    strength: float
    why: str


WeightsWithTerms = tuple[dict[str, float], dict[str, Any]]
"""The weights by stakeholder id, and the terms behind them."""
TensionsByStakeholder = dict[str, dict[str, dict[str, Any]]]
"""The tensions of each stakeholder by the other one."""
TensionFinder = Callable[[Stakeholder, Stakeholder], Sequence[ConstraintTension]]
"""Return the tensions between the constraints of two stakeholders, in the order of the constraints' ids."""


def weigh_stakeholders(
    task: Task, config: WeightsConfig, audiences: Iterable[Audience], find_tensions: TensionFinder
) -> WeightsWithTerms:
    """Return the weights w_i by stakeholder id, and the terms of d_i behind them (DecompR Eqs. 9-10), sorted by id.

    `task` includes the constraints and tensions read from its profiles; `find_tensions` is called for pairs of
    stakeholders without a declared tension. Both mappings are empty where the task has no
    stakeholders or 'stakeholder' is not among the evaluators' `audiences`. Raises PlanError where a weight is missing
    or underflows to 0, or where the difficulty of a profile is not known.
    """
    people = sort_by_id(task.stakeholders)
    if not people or "stakeholder" not in audiences:
        return {}, {}
    names = [s.id for s in people]
    if config.method == "uniform":
        return dict.fromkeys(names, 1.0 / len(names)), {}
    terms: JsonFields = {}
    if config.method == "fixed":
        if missing := [name for name in names if name not in config.fixed]:
            near = nearest_name(missing[0], sorted(config.fixed.keys() - set(names)))
            hint = f"rename {near!r} there" if near else "add one"
            raise PlanError(
                f"task {task.id!r}: weights.fixed names no weight for stakeholder {missing[0]!r}; {hint}, or set "
                "weights.method to uniform or calibrated"
            )
        total = float(aggregation.total([config.fixed[name] for name in names]))
        weights = {name: config.fixed[name] / total for name in names}
    else:
        weights, terms = _weights_from_difficulty(task, people, config, find_tensions)
    for name, weight in weights.items():
        if weight == 0.0:
            raise PlanError(
                f"task {task.id!r}: stakeholder {name!r} would get weight 0 because the others weigh so much more; "
                "set a higher weights.temperature, or weights.fixed that lie closer together"
            )
    return weights, terms


def refuse_unknown_stakeholders(names: Iterable[str], stakeholders: Collection[str]) -> None:
    """Raise ConfigError for the first of these names in `weights.fixed` that is none of the tasks' `stakeholders`."""
    for name in names:
        if name not in stakeholders:
            advice = "leave it out, or add the stakeholder to a task"
            hint = did_you_mean(name, sorted(stakeholders)) or advice
            raise ConfigError(f"weights.fixed.{name}: no task has a stakeholder {name!r}; {hint}")


def _weights_from_difficulty(
    task: Task, people: Sequence[Stakeholder], config: WeightsConfig, find_tensions: TensionFinder
) -> WeightsWithTerms:
    for person in people:
        if person.profile and not person.constraints:
            raise PlanError(
                f"task {task.id!r}: stakeholder {person.id!r} has a profile in text alone, so its difficulty is not "
                "known; list its constraints (kind, restrictiveness) in the task or in a file for --profiles-from, or "
                "name a model to read it; under weights.method uniform or fixed the difficulty is not needed, but "
                "a model has to judge the profile"
            )
    hard_restrictiveness = [_restrictiveness(person, "hard") for person in people]
    soft_restrictiveness = [_restrictiveness(person, "soft") for person in people]
    tensions = _tensions_by_partner(task, people, find_tensions)
    conflict = []
    for person in people:
        # s_i: the strengths of a stakeholder's tensions, summed in the order of the partners
        tension_strengths = [tension["strength"] for tension in tensions[person.id].values()]
        conflict.append(float(aggregation.total(tension_strengths)))
    d = aggregation.stakeholders.difficulty(
        hard_restrictiveness, soft_restrictiveness, conflict, config.gamma, config.beta
    )
    w = aggregation.stakeholders.weights(d, config.temperature)
    terms = {}
    for i, person in enumerate(people):
        difficulty_terms: JsonFields = {
            "hard": float(aggregation.total(hard_restrictiveness[i])),
            "soft": float(aggregation.total(soft_restrictiveness[i])),
            "conflict": conflict[i],
            "difficulty": float(d[i]),
        }
        if tensions[person.id]:
            difficulty_terms["tensions"] = tensions[person.id]
        terms[person.id] = difficulty_terms
    return {person.id: float(w[i]) for i, person in enumerate(people)}, terms


def _restrictiveness(person: Stakeholder, kind: str) -> list[float]:
    """Return α(c) of a stakeholder's constraints of a kind, in the order of their ids."""
    sorted_constraints = sort_by_id(person.constraints)
    return [
        constraint.restrictiveness for constraint in sorted_constraints if constraint.kind == kind
    ]


def _tensions_by_partner(
    task: Task, people: Sequence[Stakeholder], find_tensions: TensionFinder
) -> TensionsByStakeholder:
    """Return each stakeholder's tensions by partner: the strength, and the reasons that are known.

    They are those that are declared or read from profiles, else those computed from the constraints' checks.
    """
    tensions_by_pair = defaultdict(list)
    for tension in task.tensions:
        first_stakeholder_id, second_stakeholder_id = sorted(tension.between)
        tensions_by_pair[first_stakeholder_id, second_stakeholder_id].append(tension)
    tensions_by_partner: TensionsByStakeholder = {person.id: {} for person in people}
    for first, second in combinations(people, 2):
        declared_tensions = tensions_by_pair.get((first.id, second.id), [])
        # Sorted, so that the order in which they are declared changes no sum.
        tension_strengths = sorted(tension.strength for tension in declared_tensions)
        tensions_read_by_model = [t for t in declared_tensions if isinstance(t, ReadTension)]
        why = sorted(tension.reason for tension in tensions_read_by_model if tension.reason)
        if not declared_tensions:
            found = find_tensions(first, second)
            tension_strengths = [tension.strength for tension in found]
            why = [f"{tension.first} and {tension.second}: {tension.why}" for tension in found]
        if tension_strengths:
            total = float(aggregation.total(tension_strengths))
            tensions_by_partner[first.id][second.id] = {"strength": total, "why": why}
            tensions_by_partner[second.id][first.id] = {"strength": total, "why": list(why)}
    return tensions_by_partner
