"""Compute the stakeholder weights of DecompR from the task alone."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from jurygraph import aggregation
from jurygraph.errors import PlanError
from jurygraph.schema import Audience, Stakeholder, Task, Tension, WeightsConfig
from jurygraph.schema.profile import ReadTension
from jurygraph.schema.task import sort_by_id


class ConstraintTension(NamedTuple):
    """A tension between two constraints: their ids, its strength in (0, 1], and the reason."""

    first: str
    second: str
    strength: float
    why: str


TensionFinder = Callable[[Stakeholder, Stakeholder], Sequence[ConstraintTension]]
"""Return the tensions between the constraints of two stakeholders, in the order of the constraints' ids."""


def weigh_stakeholders(
    task: Task, config: WeightsConfig, audiences: Iterable[Audience], find_tensions: TensionFinder
) -> tuple[dict[str, float], dict[str, Any]]:
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
    if config.method == "fixed":
        weights, terms = _fixed_weights(task, names, config)
    else:
        weights, terms = _calibrated_weights(task, people, config, find_tensions)
    for name in (name for name, weight in weights.items() if weight == 0.0):
        raise PlanError(
            f"task {task.id!r}: stakeholder {name!r} would get weight 0 because the others weigh so much more; "
            "set a higher weights.temperature, or weights.fixed that lie closer together"
        )
    return weights, terms


def _fixed_weights(task: Task, names: Sequence[str], config: WeightsConfig) -> tuple[dict[str, float], dict[str, Any]]:
    missing = [name for name in names if name not in config.fixed]
    if missing:
        raise PlanError(
            f"task {task.id!r}: weights.fixed names no weight for stakeholder {missing[0]!r}; add one, or set "
            "weights.method to uniform or calibrated"
        )
    total = float(aggregation.total([config.fixed[name] for name in names]))
    return {name: config.fixed[name] / total for name in names}, {}


def _calibrated_weights(
    task: Task, people: Sequence[Stakeholder], config: WeightsConfig, find_tensions: TensionFinder
) -> tuple[dict[str, float], dict[str, Any]]:
    for person in people:
        if person.profile and not person.constraints:
            raise PlanError(
                f"task {task.id!r}: stakeholder {person.id!r} has a profile in text alone, so its difficulty is not "
                "known; list its constraints (kind, restrictiveness) in the task or in a file for --profiles-from, or "
                "name a model to read it; under weights.method uniform or fixed the difficulty is not needed, but "
                "a model has to judge the profile"
            )
    hard, soft = ([_restrictiveness(person, kind) for person in people] for kind in ("hard", "soft"))
    pair_tensions = _pair_tensions(task, people, find_tensions)
    conflict = [_conflict(pair_tensions, person.id) for person in people]
    d = aggregation.stakeholders.difficulty(hard, soft, conflict, config.gamma, config.beta)
    w = aggregation.stakeholders.weights(d, config.temperature)
    terms = {
        person.id: {
            "hard": float(aggregation.total(hard[i])),
            "soft": float(aggregation.total(soft[i])),
            "conflict": conflict[i],
            "difficulty": float(d[i]),
            **_tension_terms(pair_tensions, person.id),
        }
        for i, person in enumerate(people)
    }
    return {person.id: float(w[i]) for i, person in enumerate(people)}, terms


def _restrictiveness(person: Stakeholder, kind: str) -> list[float]:
    """Return α(c) of the constraints of one kind, in the order of their ids."""
    return [c.restrictiveness for c in sort_by_id(person.constraints) if c.kind == kind]


class _PairTension(NamedTuple):
    """The tension between two stakeholders, in the order of their ids: its strength and the reasons for it."""

    between: tuple[str, str]
    strength: float
    why: tuple[str, ...] = ()


def _pair_tensions(task: Task, people: Sequence[Stakeholder], find_tensions: TensionFinder) -> list[_PairTension]:
    """Return each pair's tension: as declared or read from profiles, else computed from the constraints' checks."""
    declared: dict[tuple[str, str], list[Tension]] = {}
    for tension in task.tensions:
        first_id, second_id = sorted(tension.between)
        declared.setdefault((first_id, second_id), []).append(tension)
    pair_tensions = []
    for first_person, second_person in combinations(people, 2):
        pair = first_person.id, second_person.id
        if pair in declared:
            strength = float(aggregation.total(sorted(tension.strength for tension in declared[pair])))
            pair_tensions.append(_PairTension(pair, strength, tuple(_reasons(declared[pair]))))
        elif found := find_tensions(first_person, second_person):
            why = tuple(f"{tension.first} and {tension.second}: {tension.why}" for tension in found)
            strength = float(aggregation.total([tension.strength for tension in found]))
            pair_tensions.append(_PairTension(pair, strength, why))
    return pair_tensions


def _reasons(declared: Iterable[Tension]) -> Iterator[str]:
    """Yield the reasons of tensions that were read from profiles, sorted."""
    yield from sorted(tension.reason for tension in declared if isinstance(tension, ReadTension) and tension.reason)


def _conflict(pair_tensions: Sequence[_PairTension], member: str) -> float:
    """Return s_i: the strengths of the stakeholder's tensions, summed in the order of their partners."""
    strengths = [tension.strength for tension in pair_tensions if member in tension.between]
    return float(aggregation.total(strengths)) if strengths else 0.0


def _tension_terms(pair_tensions: Sequence[_PairTension], member: str) -> dict[str, Any]:
    """Return the tensions that add up to s_i by partner: the strength, and the reasons that are known."""
    by_partner = {
        next(name for name in tension.between if name != member): {
            "strength": tension.strength,
            "why": list(tension.why),
        }
        for tension in pair_tensions
        if member in tension.between
    }
    return {"tensions": by_partner} if by_partner else {}
