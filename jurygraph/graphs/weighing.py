"""Whose needs count how much: DecompR's weights, from the task alone."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from jurygraph import aggregation
from jurygraph.agents.checks.tensions import tensions
from jurygraph.errors import PlanError
from jurygraph.schema import Audience, Stakeholder, Task, Tension, WeightsConfig
from jurygraph.schema.profile import ReadTension
from jurygraph.schema.task import by_id


def weigh_stakeholders(
    task: Task, config: WeightsConfig, audiences: Iterable[Audience]
) -> tuple[dict[str, float], dict[str, Any]]:
    """Weights w_i by stakeholder, and the terms of d_i they come from (DecompR Eqs. 9-10), in the order of ids.

    `task` is the task with what its profiles were read as. Empty where none of the `audiences` that are asked about is
    the stakeholders. Raises PlanError.
    """
    people = by_id(task.stakeholders)
    if not people or "stakeholder" not in audiences:
        return {}, {}
    names = [s.id for s in people]
    if config.method == "uniform":
        return dict.fromkeys(names, 1.0 / len(names)), {}
    fixed = config.method == "fixed"
    weights, terms = _fixed_weights(task, names, config) if fixed else _calibrated_weights(task, people, config)
    for name in (name for name, weight in weights.items() if weight == 0.0):
        raise PlanError(
            f"task {task.id!r}: stakeholder {name!r} would weigh nothing beside the others; set a higher "
            "weights.temperature, or weights.fixed that lie closer together"
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
    task: Task, people: Sequence[Stakeholder], config: WeightsConfig
) -> tuple[dict[str, float], dict[str, Any]]:
    for person in people:
        if person.profile and not person.constraints:
            raise PlanError(
                f"task {task.id!r}: stakeholder {person.id!r} has a profile in text alone, so its difficulty is not "
                "known; list its constraints (kind, restrictiveness) in the task or in a file for --profiles-from, or "
                "name a model to read it; under weights.method uniform or fixed the difficulty is not needed, but "
                "somebody has to judge the profile all the same"
            )
    hard, soft = ([_restrictiveness(person, kind) for person in people] for kind in ("hard", "soft"))
    pulled = _tensions(task, people)
    conflict = [_conflict(pulled, person.id) for person in people]
    d = aggregation.stakeholders.difficulty(hard, soft, conflict, config.gamma, config.beta)
    w = aggregation.stakeholders.weights(d, config.temperature)
    terms = {
        person.id: {
            "hard": float(aggregation.total(hard[i])),
            "soft": float(aggregation.total(soft[i])),
            "conflict": conflict[i],
            "difficulty": float(d[i]),
            **_told(pulled, person.id),
        }
        for i, person in enumerate(people)
    }
    return {person.id: float(w[i]) for i, person in enumerate(people)}, terms


def _restrictiveness(person: Stakeholder, kind: str) -> list[float]:
    """α(c) of the constraints of a kind, in the order of their ids."""
    return [c.restrictiveness for c in by_id(person.constraints) if c.kind == kind]


class _Tension(NamedTuple):
    """How strongly two stakeholders, in the order of their ids, are pulled apart, and by what."""

    between: tuple[str, str]
    strength: float
    why: tuple[str, ...] = ()


def _tensions(task: Task, people: Sequence[Stakeholder]) -> list[_Tension]:
    """Every pair's tension: as declared, or read in the profiles, else as the constraints' checks show it."""
    declared: dict[tuple[str, str], list[Tension]] = {}
    for tension in task.tensions:
        first, second = sorted(tension.between)
        declared.setdefault((first, second), []).append(tension)
    found = []
    for one, other in combinations(people, 2):
        pair = one.id, other.id
        if pair in declared:
            strength = float(aggregation.total(sorted(tension.strength for tension in declared[pair])))
            found.append(_Tension(pair, strength, tuple(_reasons(declared[pair]))))
        elif pulls := tensions(one, other):
            why = tuple(f"{pull.one} and {pull.other}: {pull.why}" for pull in pulls)
            found.append(_Tension(pair, float(aggregation.total([pull.strength for pull in pulls])), why))
    return found


def _reasons(declared: Iterable[Tension]) -> Iterator[str]:
    """Why there is a tension, where it was read in profiles."""
    yield from sorted(one.reason for one in declared if isinstance(one, ReadTension) and one.reason)


def _conflict(pulled: Sequence[_Tension], member: str) -> float:
    """s_i: the strengths of the tensions that involve the stakeholder, in the order of their partners."""
    strengths = [one.strength for one in pulled if member in one.between]
    return float(aggregation.total(strengths)) if strengths else 0.0


def _told(pulled: Sequence[_Tension], member: str) -> dict[str, Any]:
    """The tensions that make up s_i: with whom, how strong, and why, where constraints or profiles say it."""
    told = {
        next(name for name in one.between if name != member): {"strength": one.strength, "why": list(one.why)}
        for one in pulled
        if member in one.between
    }
    return {"tensions": told} if told else {}
