"""The protocol by people: each one's utility, and how much each one counts (DecompR, Appendix A.2, Decomposed)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any

from pydantic import Field, create_model, model_validator

from jurygraph.agents.judging.findings import Finding
from jurygraph.agents.judging.forms import Claim, Measured, Quotes, Reason
from jurygraph.judges.protocols.people import Person, names_of, shown, with_ids
from jurygraph.judges.protocols.protocol import People, ScoringProtocol
from jurygraph.judges.protocols.scale import LOWEST, GroundsStated, Ten, on_scale
from jurygraph.schema import Noun, Stakeholder
from jurygraph.schema.noun import Flag, Unit

UTILITY, WEIGHT = "utility", "weight"
_TOLERANCE, _ROUNDING = 0.02 + 1e-9, 0.005  # a sum of 0.97 is less than that in floats
"""How far weights may be from summing to 1, and how far each may be off besides, rounded to hundredths."""
_MOST = 32
"""Constraints of one kind that a reply lists of one person, at most."""
_USUAL = 6
"""Constraints that a reply lists of somebody whose profile alone is known, about."""


# A docstring would stand in the schema that a model is given.


class ConstraintStated(Noun):
    constraint: Annotated[str, Field(max_length=500)]
    reason: Reason
    quotes: Quotes
    held: Flag


class PersonStated(Noun):
    hard: Annotated[tuple[ConstraintStated, ...], Field(max_length=_MOST)]
    soft: Annotated[tuple[ConstraintStated, ...], Field(max_length=_MOST)]
    credibility: GroundsStated
    utility: Ten


class WeightsStated(Noun):  # and a weight for each person, by name
    reason: Reason

    @model_validator(mode="after")
    def _sum_to_one(self) -> "WeightsStated":
        stated = _stated(self)
        total = math.fsum(stated.values())
        if total == 0 or abs(total - 1.0) > _TOLERANCE + _ROUNDING * len(stated):
            raise ValueError(f"the weights sum to {total:g}: choose weights that sum to 1")
        return self


class _Decomposed(ScoringProtocol):
    """Everybody's constraints are verified one by one, and a utility û_i from 1 to 10 follows for each.

    Nothing is asked where the task names nobody. Both evaluators of this kind send the same request, byte for byte, so
    that who asks second is given the first one's reply.
    """

    prompt = "decomposed"
    asked: Sequence[str]
    """What is asked of everybody: the first parts of the subjects."""

    def subjects(self, people: People) -> Sequence[str]:
        return [f"{what}/{one.id}" for what in self.asked for one in people]

    def reply(self, people: People) -> type[Noun]:
        return _reply(len(people))

    def findings(self, reply: Any, people: People) -> Mapping[str, Finding]:
        """All that a reply says, whoever asks: so both find the same flaws in it."""
        named = list(zip(people, shown(people), strict=True))
        utilities = {f"{UTILITY}/{one.id}": _utility(person, reply, people) for one, person in named}
        return utilities | {f"{WEIGHT}/{one.id}": _weight(person, reply.weights, people) for one, person in named}

    def reasons(self, people: People) -> int:
        return 1 + sum(max(_USUAL, len(one.constraints)) + 1 for one in people)


class Adaptive(_Decomposed):
    """R = Σ w_i û_i, where the judge gives the weights too: verdicts of its own, so that no plan fixes them."""

    name = "protocols.decomposed-adaptive"
    combiner = "adaptive"
    asked = (UTILITY, WEIGHT)
    shares: Mapping[str, float] = {UTILITY: 1.0, WEIGHT: 1.0}


class Uniform(_Decomposed):
    """R = Σ û_i / n over the utilities that the adaptive protocol estimates, without a call beyond that one's."""

    name = "protocols.decomposed-uniform"
    asked = (UTILITY,)


@lru_cache(maxsize=64)
def _reply(people: int) -> type[Noun]:
    names = names_of(people)
    shares: Any = dict.fromkeys(names, (Unit, ...))
    weights = create_model("WeightsStated", __base__=WeightsStated, **shares)
    fields: Any = dict.fromkeys(names, (PersonStated, ...)) | {"weights": (weights, ...)}
    return create_model("VerdictsStated", __base__=Noun, **fields)


def _stated(weights: WeightsStated) -> dict[str, float]:
    """The weights as they were stated, by name."""
    return {name: value for name, value in weights if name != "reason"}


def _utility(person: Person, reply: Any, people: Sequence[Stakeholder]) -> Finding:
    stated: PersonStated = getattr(reply, person.name)
    listed = list(_listed(stated))
    quotes = [quote for _, one in listed for quote in one.quotes] + list(stated.credibility.quotes)
    claims = [Claim(f"{name} held", one.quotes) for name, one in listed if one.held]
    claims += [Claim(f"a utility of {stated.utility:g}", quotes)] if stated.utility > LOWEST else []
    told = [f"{name} ({one.constraint}) {'held' if one.held else 'not held'}: {one.reason}" for name, one in listed]
    reason = with_ids("; ".join([*told, f"credibility: {stated.credibility.reason}"]), people)
    return Finding(person.name, on_scale(stated.utility), reason, quotes, claims)


def _listed(stated: PersonStated) -> Iterator[tuple[str, ConstraintStated]]:
    """The constraints, each called by its kind and place."""
    for kind, constraints in (("hard", stated.hard), ("soft", stated.soft)):
        yield from ((f"{kind} {place}", one) for place, one in enumerate(constraints, start=1))


def _weight(person: Person, weights: WeightsStated, people: Sequence[Stakeholder]) -> Finding:
    """A share of all weights; how much somebody counts is not found in the response, and needs no quotation."""
    stated = _stated(weights)
    own = stated[person.name]
    measured = Measured(own / math.fsum(stated.values()), native=own, scale=(0.0, 1.0))
    return Finding(f"weights.{person.name}", measured, with_ids(weights.reason, people))
