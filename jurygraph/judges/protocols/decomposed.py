"""The protocol by people: a utility and a weight for each person (DecompR, Appendix A.2, Decomposed)."""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any

from pydantic import Field, create_model, model_validator

from jurygraph.agents.judging.forms import Claim, Measurement, Quotes, Reason
from jurygraph.agents.judging.quotations import Finding
from jurygraph.judges.protocols.protocol import (
    LOWEST,
    GroundsReply,
    People,
    ScoringProtocol,
    Ten,
    on_scale,
    person_names,
    restore_ids,
)
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Flag, Unit

UTILITY, WEIGHT = "utility", "weight"
_TOLERANCE, _ROUNDING = 0.02 + 1e-9, 0.005  # a sum of 0.97 is less than that in floats
"""Tolerances for a sum of weights other than 1: of the sum, and of each weight, which models round to hundredths."""
_MAX_CONSTRAINTS = 32  # most constraints of one kind in a reply about one person
_TYPICAL_CONSTRAINTS = 6  # typical number of constraints in a reply about a person with a profile alone


# No docstrings: they would be part of the schema in the prompt.


class ConstraintReply(FrozenModel):
    constraint: Annotated[str, Field(max_length=500)]
    reason: Reason
    quotes: Quotes
    held: Flag


class PersonReply(FrozenModel):
    hard: Annotated[tuple[ConstraintReply, ...], Field(max_length=_MAX_CONSTRAINTS)]
    soft: Annotated[tuple[ConstraintReply, ...], Field(max_length=_MAX_CONSTRAINTS)]
    credibility: GroundsReply
    utility: Ten


class WeightsReply(FrozenModel):  # `_reply_model` adds a weight for each person, by name
    reason: Reason

    @model_validator(mode="after")
    def _sum_to_one(self) -> "WeightsReply":
        weights = _weights_by_name(self)
        total = math.fsum(weights.values())
        if total == 0 or abs(total - 1.0) > _TOLERANCE + _ROUNDING * len(weights):
            raise ValueError(f"the weights sum to {total:g}: choose weights that sum to 1")
        return self


class _Decomposed(ScoringProtocol):
    """Verify the constraints of each person one by one, and derive a utility û_i from 1 to 10 for each.

    There are no questions if the task has no people. Both evaluators of this kind send the same request, byte for byte,
    so that the second one reads its reply from the cache.
    """

    prompt = "decomposed"
    subject_kinds: Sequence[str]
    """First parts of the subjects: the kinds of question for each person."""

    def subjects(self, people: People) -> Sequence[str]:
        return [f"{kind}/{person.id}" for kind in self.subject_kinds for person in people]

    def reply_model(self, people: People) -> type[FrozenModel]:
        return _reply_model(len(people))

    def findings(self, reply: Any, people: People) -> Mapping[str, Finding]:
        """Return all findings of a reply, whichever evaluator asks, so that both find the same errors in it."""
        names = dict(zip((person.id for person in people), person_names(len(people)), strict=True))
        utilities = {f"{UTILITY}/{person}": _utility_finding(name, reply, people) for person, name in names.items()}
        weights = {f"{WEIGHT}/{person}": _weight_finding(name, reply, people) for person, name in names.items()}
        return utilities | weights

    def max_reasons(self, people: People) -> int:
        return 1 + sum(max(_TYPICAL_CONSTRAINTS, len(stakeholder.constraints)) + 1 for stakeholder in people)


class Adaptive(_Decomposed):
    """R = Σ w_i û_i, with weights from the judge: they are verdicts of its own, so that no plan fixes them."""

    name = "protocols.decomposed-adaptive"
    combiner = "adaptive"
    subject_kinds = (UTILITY, WEIGHT)
    shares: Mapping[str, float] = {UTILITY: 1.0, WEIGHT: 1.0}


class Uniform(_Decomposed):
    """R = Σ û_i / n over the utilities that the adaptive protocol estimates, without an additional call."""

    name = "protocols.decomposed-uniform"
    subject_kinds = (UTILITY,)


@lru_cache(maxsize=64)
def _reply_model(people: int) -> type[FrozenModel]:
    names = person_names(people)
    shares: Any = dict.fromkeys(names, (Unit, ...))
    weights = create_model("WeightsReply", __base__=WeightsReply, **shares)
    fields: Any = dict.fromkeys(names, (PersonReply, ...)) | {"weights": (weights, ...)}
    return create_model("VerdictsReply", __base__=FrozenModel, **fields)


def _weights_by_name(weights: WeightsReply) -> dict[str, float]:
    """Return the weights by name, not normalized."""
    return {name: value for name, value in weights if name != "reason"}


def _utility_finding(name: str, reply: Any, people: People) -> Finding:
    verdict: PersonReply = getattr(reply, name)
    constraints = {
        f"{kind} {number}": constraint
        for kind, of_kind in (("hard", verdict.hard), ("soft", verdict.soft))
        for number, constraint in enumerate(of_kind, start=1)
    }
    quotes = [quote for constraint in constraints.values() for quote in constraint.quotes]
    quotes += verdict.credibility.quotes
    claims = [Claim(f"{place} held", constraint.quotes) for place, constraint in constraints.items() if constraint.held]
    claims += [Claim(f"a utility of {verdict.utility:g}", quotes)] if verdict.utility > LOWEST else []
    descriptions = [
        f"{place} ({constraint.constraint}) {'held' if constraint.held else 'not held'}: {constraint.reason}"
        for place, constraint in constraints.items()
    ]
    reason = restore_ids("; ".join([*descriptions, f"credibility: {verdict.credibility.reason}"]), people)
    return Finding(name, on_scale(verdict.utility), reason, quotes, claims)


def _weight_finding(name: str, reply: Any, people: People) -> Finding:
    """Return the finding on a person's share of all weights; it is not about the response, and needs no quotation."""
    values = _weights_by_name(reply.weights)
    measured = Measurement(values[name] / math.fsum(values.values()), native=values[name], scale=(0.0, 1.0))
    return Finding(f"weights.{name}", measured, restore_ids(reply.weights.reason, people))
