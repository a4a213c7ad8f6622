"""DecompR's scoring protocols (Appendix A.2): one call for a whole protocol, and one reply for all its verdicts.

`DirectProtocol` examines five aspects and gives one score; `RubricProtocol` scores five dimensions under fixed weights
(Table 8); `ChecklistProtocol` asks binary questions in five weighted categories (Eq. 12); `AdaptiveWeightsProtocol` and
`UniformWeightsProtocol` estimate the utility of each person. Scores are on a scale from 1 to 10.
"""

import math
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from operator import attrgetter
from typing import Annotated, Any, ClassVar

from pydantic import Field, create_model, model_validator

from jurygraph.agents.roles import (
    ClaimWithQuotes,
    EvaluatorInput,
    Finding,
    JudgedValue,
    QuoteTexts,
    ReasonText,
    SingleCallEvaluator,
    request_finding_verdicts,
    require_client,
    shared_prompt_variables,
)
from jurygraph.judges.criteria import rotate
from jurygraph.models.request import Reply
from jurygraph.prompts import load_prompt
from jurygraph.schema import Audience, FrozenModel, Question, Stakeholder, TaskView, Verdict
from jurygraph.schema.frozen_model import ParamsModel, ReadOnlyFields, StrictBool, UnitInterval

TOKENS_PER_REASON = 160
"""Tokens that a reply may use for one reason with its quotations and its conclusion; most use half."""

People = Sequence[Stakeholder]
FindingBySubject = Mapping[str, Finding]


class ScoringProtocol(SingleCallEvaluator):
    """Judge one response for all people whom it should serve, in a single call (DecompR, Appendix A.2).

    The call contains the whole protocol even if only a part of it is requested, so that a later request for another
    part finds the reply in the cache. Sample s lists the people rotated by s places, unless `rotate` is false.
    """

    class Params(ParamsModel):
        rotate: StrictBool = True
        """Whether later samples list the people in another order; `false` repeats the identical input, so that samples
        differ by the model's chance alone."""

    settings: Params
    audience: Audience = "everyone"
    combiner = "protocol"
    prompt_name: ClassVar[str]
    """Name of the prompt with the judging instructions."""

    def _set_up_from_settings(self) -> None:
        self._prompt = load_prompt(self.prompt_name)
        self.version = f"2 prompt {self._prompt.full_version}"

    def subjects(self, people: People) -> Sequence[str]:
        """Return the subjects, with one question each: by default those with a share."""
        return tuple(self.shares)

    @abstractmethod
    def reply_model(self, people: People) -> type[FrozenModel]:
        """Return the pydantic model of the reply."""

    @abstractmethod
    def findings(self, reply: Any, people: People) -> FindingBySubject:
        """Return the findings of a reply by subject, at least those of all `subjects`."""

    def max_reasons(self, people: People) -> int:
        """Return the most reasons that a reply may hold, each with its quotations: one per subject by default."""
        return len(self.subjects(people))

    def prompt_variables(self, people: People) -> ReadOnlyFields:
        return {}

    def questions(self, view: TaskView) -> Sequence[Question]:
        return [self.question(view, subject) for subject in self.subjects(view.people)]

    async def judge_response(self, inputs: EvaluatorInput) -> Mapping[str, Verdict]:
        client = require_client(inputs.client)
        shift = inputs.sample if self.settings.rotate else 0
        people = rotate(inputs.task.people, shift)
        reply_model = self.reply_model(people)
        # named by position; an id is untrusted, so that it is part of the fenced text
        named_people = zip(person_names(len(people)), people, strict=True)
        variables = {
            **shared_prompt_variables(inputs),
            "people": [
                {"name": name, "text": _describe_person(person)} for name, person in named_people
            ],
            **self.prompt_variables(people),
        }
        request = client.request(
            self._prompt,
            reply_model,
            variables,
            sample=inputs.sample,
            max_reply_tokens=TOKENS_PER_REASON * self.max_reasons(people),
        )

        def restore_person_id(match: re.Match[str]) -> str:
            number = int(match[1])
            return people[number - 1].id if number <= len(people) else match[0]

        def find(value: Any, _: Reply | None) -> dict[str, Finding]:
            findings = {}
            for subject, finding in self.findings(value, people).items():
                reason = _PERSON_PSEUDONYM_PATTERN.sub(restore_person_id, finding.reason)
                findings[subject] = finding._replace(reason=reason)
            return findings

        return await request_finding_verdicts(
            client, request, reply_model, inputs.response.text, self.subjects(people), find
        )


_PERSON_PSEUDONYM_PATTERN = re.compile(r"\bperson_([1-9]\d{0,5})\b")


def person_names(number: int) -> tuple[str, ...]:
    return tuple(f"person_{index}" for index in range(1, number + 1))


def _describe_person(stakeholder: Stakeholder) -> str:
    lines = [f"id: {stakeholder.id}"]
    if stakeholder.profile:
        lines.append(stakeholder.profile)
    for constraint in stakeholder.constraints:
        lines.append(f"- {constraint.kind}: {constraint.text or constraint.id}")
    return "\n".join(lines)


LOWEST_SCORE = 1.0
HIGHEST_SCORE = 10.0

ScoreFromOneToTen = Annotated[
    float, Field(strict=True, ge=LOWEST_SCORE, le=HIGHEST_SCORE, allow_inf_nan=False)
]


# No docstrings: they would be part of the schema in the prompt.


class GroundsReply(FrozenModel):  # the reason and its quotations, which come before the decision
    reason: ReasonText
    quotes: QuoteTexts


class RatingReply(GroundsReply):
    value: ScoreFromOneToTen


class ItemReply(GroundsReply):
    met: StrictBool | None


class AspectReply(GroundsReply):
    held: StrictBool


def rating(
    path: str,
    value: float,
    reason: str,
    quotes: Sequence[str],
    claims: Sequence[ClaimWithQuotes] = (),
    name: str = "value",
) -> Finding:
    """Return the finding of a value from 1 to 10; one above the lowest needs a quotation, as do the other claims."""
    score = (value - LOWEST_SCORE) / (HIGHEST_SCORE - LOWEST_SCORE)
    judged_value = JudgedValue(score, native=value, scale=(LOWEST_SCORE, HIGHEST_SCORE))
    all_claims = list(claims)
    if value > LOWEST_SCORE:
        all_claims.append(ClaimWithQuotes(f"a {name} of {value:g}", quotes))
    return Finding(path, judged_value, reason, quotes, all_claims)


OVERALL_ASPECT = "overall"
ASPECTS = ("hard_constraints", "credibility", "timeline", "fairness", "actionability")
_DIRECT_REPLY_FIELDS: Any = dict.fromkeys(ASPECTS, (AspectReply, ...)) | {
    "value": (ScoreFromOneToTen, ...)
}
_DIRECT_REPLY_MODEL = create_model("DirectReply", __base__=FrozenModel, **_DIRECT_REPLY_FIELDS)


class DirectProtocol(ScoringProtocol):
    """One score from 1 to 10 for the whole response, after a finding, a reason and quotations for each of five aspects.

    An aspect that held needs a quotation of its own, and a score above the lowest one under any aspect.
    """

    name = "protocols.direct"
    prompt_name = "direct"

    def subjects(self, people: People) -> Sequence[str]:
        return (OVERALL_ASPECT,)

    def reply_model(self, people: People) -> type[FrozenModel]:
        return _DIRECT_REPLY_MODEL

    def findings(self, reply: Any, people: People) -> FindingBySubject:
        quotes: list[str] = []
        reasons = []
        claims = []
        for aspect in ASPECTS:
            answer: AspectReply = getattr(reply, aspect)
            quotes += answer.quotes
            reasons.append(f"{aspect} {_describe_constraint(answer)}")
            if answer.held:
                claims.append(ClaimWithQuotes(f"{aspect} held", answer.quotes))
        reason = "; ".join(reasons)
        return {OVERALL_ASPECT: rating(OVERALL_ASPECT, reply.value, reason, quotes, claims)}

    def max_reasons(self, people: People) -> int:
        return len(ASPECTS)


WEIGHT_BY_DIMENSION: Mapping[str, float] = {
    "constraint_satisfaction": 0.30,
    "information_credibility": 0.25,
    "timeline_feasibility": 0.20,
    "fairness": 0.15,
    "conflict_resolution": 0.10,
}
"""The dimensions and their weights α_d (Table 8)."""

_DIMENSION_REPLY_FIELDS: Any = dict.fromkeys(WEIGHT_BY_DIMENSION, (RatingReply, ...))
_DIMENSIONS_REPLY_MODEL = create_model(
    "VerdictsReply", __base__=FrozenModel, **_DIMENSION_REPLY_FIELDS
)


class RubricProtocol(ScoringProtocol):
    """R = Σ α_d s_d over five dimensions, each scored from 1 to 10 by itself."""

    name = "protocols.rubric"
    prompt_name = "dimensions"
    shares = WEIGHT_BY_DIMENSION

    def reply_model(self, people: People) -> type[FrozenModel]:
        return _DIMENSIONS_REPLY_MODEL

    def findings(self, reply: Any, people: People) -> FindingBySubject:
        findings = {}
        for dimension in WEIGHT_BY_DIMENSION:
            answer: RatingReply = getattr(reply, dimension)
            findings[dimension] = rating(dimension, answer.value, answer.reason, answer.quotes)
        return findings


WEIGHT_BY_CATEGORY: Mapping[str, float] = {"A": 2.5, "B": 2.0, "C": 1.5, "D": 1.5, "E": 1.0}
"""Weight of one item of a category: A hard constraints, B credibility, C timeline, D fairness, E actionability."""
ITEM_COUNT_BY_CATEGORY: Mapping[str, int] = {"A": 3, "B": 3, "C": 3, "D": 2, "E": 2}
"""Number of items of a category, of A for each person.

The paper gives the number of A alone; the other numbers, and the wording of all items, are our interpretation.
"""


class ChecklistProtocol(ScoringProtocol):
    """R = 9 · Σ a_b ω_b / Σ ω_b + 1 over items that are met (a = 1) or not, each with its own quotations.

    Category A has its items for each person, so that the list grows with the number of people. If the task has no
    people, the items of A and of fairness, D, are left out.
    """

    name = "protocols.checklist"
    prompt_name = "verification"
    shares = WEIGHT_BY_CATEGORY

    def subjects(self, people: People) -> Sequence[str]:
        return tuple(_item_path_by_subject(people))

    def reply_model(self, people: People) -> type[FrozenModel]:
        return _checklist_reply_model(len(people))

    def findings(self, reply: Any, people: People) -> FindingBySubject:
        findings = {}
        for subject, path in _item_path_by_subject(people).items():
            item: ItemReply = attrgetter(path)(reply)
            judged_value = None if item.met is None else JudgedValue(float(item.met), item.met)
            claims = [ClaimWithQuotes("met", item.quotes)] if item.met else []
            findings[subject] = Finding(path, judged_value, item.reason, item.quotes, claims)
        return findings

    def prompt_variables(self, people: People) -> ReadOnlyFields:
        return {"names": person_names(len(people))}


def _item_path_by_subject(people: People) -> dict[str, str]:
    """Return the path of each item in the reply, by the subject of its question."""
    items = {}
    for person, name in zip(people, person_names(len(people)), strict=True):
        for field in _item_fields("A"):
            items[f"A/{person.id}/{field[1:]}"] = f"{name}.{field}"
    for field in _response_item_fields(len(people)):
        items[f"{field[0]}/{field[1:]}"] = field
    return items


def _response_item_fields(people: int) -> list[str]:
    """Return the fields of the items about the response as a whole; those of D are about a group of people."""
    return _item_fields("BCDE" if people else "BCE")


def _item_fields(categories: str) -> list[str]:
    """Return the fields of all items of categories of one letter each, such as A1."""
    fields = []
    for category in categories:
        numbers = range(1, ITEM_COUNT_BY_CATEGORY[category] + 1)
        fields += [f"{category}{number}" for number in numbers]
    return fields


@lru_cache(maxsize=64)
def _checklist_reply_model(people: int) -> type[FrozenModel]:
    item_fields: Any = dict.fromkeys(_item_fields("A"), (ItemReply, ...))
    person = create_model("PersonReply", __base__=FrozenModel, **item_fields)
    fields: Any = dict.fromkeys(person_names(people), (person, ...))
    fields |= dict.fromkeys(_response_item_fields(people), (ItemReply, ...))
    return create_model("VerdictsReply", __base__=FrozenModel, **fields)


UTILITY_SUBJECT = "utility"
WEIGHT_SUBJECT = "weight"
# a sum of 0.97 is less than that in floats
_WEIGHT_SUM_TOLERANCE = 0.02 + 1e-9
_TOLERANCE_PER_WEIGHT = 0.005
"""Tolerances for a sum of weights other than 1: of the sum, and of each weight, which models round to hundredths."""
_MAX_CONSTRAINTS_PER_KIND = 32  # most constraints of one kind in a reply about one person
_TYPICAL_CONSTRAINT_COUNT = (
    6  # number of constraints in a reply about a person with a profile alone
)


# No docstrings: they would be part of the schema in the prompt.


class ConstraintReply(FrozenModel):
    constraint: Annotated[str, Field(max_length=500)]
    reason: ReasonText
    quotes: QuoteTexts
    held: StrictBool


class PersonReply(FrozenModel):
    hard: Annotated[tuple[ConstraintReply, ...], Field(max_length=_MAX_CONSTRAINTS_PER_KIND)]
    soft: Annotated[tuple[ConstraintReply, ...], Field(max_length=_MAX_CONSTRAINTS_PER_KIND)]
    credibility: GroundsReply
    utility: ScoreFromOneToTen


class WeightsReply(FrozenModel):  # `_decomposed_reply_model` adds a weight for each person, by name
    reason: ReasonText

    @model_validator(mode="after")
    def _check_weight_sum(self) -> "WeightsReply":
        weights = _weights_by_name(self)
        total = math.fsum(weights.values())
        if total == 0 or abs(total - 1.0) > _WEIGHT_SUM_TOLERANCE + _TOLERANCE_PER_WEIGHT * len(
            weights
        ):
            raise ValueError(f"the weights sum to {total:g}: choose weights that sum to 1")
        return self


class _DecomposedProtocol(ScoringProtocol):
    """Verify the constraints of each person one by one, and derive a utility û_i from 1 to 10 for each.

    There are no questions if the task has no people. Both evaluators of this kind send the same request, byte for byte,
    so that the second one reads its reply from the cache.
    """

    prompt_name = "decomposed"
    subject_kinds: Sequence[str]
    """First parts of the subjects: the kinds of question for each person."""

    def subjects(self, people: People) -> Sequence[str]:
        return [f"{kind}/{person.id}" for kind, person in product(self.subject_kinds, people)]

    def reply_model(self, people: People) -> type[FrozenModel]:
        return _decomposed_reply_model(len(people))

    def findings(self, reply: Any, people: People) -> FindingBySubject:
        """Return all findings of a reply, whichever evaluator asks, so that both find the same errors in it."""
        findings = {}
        weights = _weights_by_name(reply.weights)
        total = math.fsum(weights.values())
        for person, name in zip(people, person_names(len(people)), strict=True):
            findings[f"{UTILITY_SUBJECT}/{person.id}"] = _finding_on_utility(name, reply)
            # the share of all weights is not about the response, and needs no quotation
            share = JudgedValue(weights[name] / total, native=weights[name], scale=(0.0, 1.0))
            findings[f"{WEIGHT_SUBJECT}/{person.id}"] = Finding(
                f"weights.{name}", share, reply.weights.reason
            )
        return findings

    def max_reasons(self, people: People) -> int:
        number = 1
        for person in people:
            number += max(_TYPICAL_CONSTRAINT_COUNT, len(person.constraints)) + 1
        return number


class AdaptiveWeightsProtocol(_DecomposedProtocol):
    """R = Σ w_i û_i, with weights from the judge: they are verdicts of its own, so that no plan fixes them."""

    name = "protocols.decomposed-adaptive"
    combiner = "adaptive"
    subject_kinds = (UTILITY_SUBJECT, WEIGHT_SUBJECT)
    shares: Mapping[str, float] = {UTILITY_SUBJECT: 1.0, WEIGHT_SUBJECT: 1.0}


class UniformWeightsProtocol(_DecomposedProtocol):
    """R = Σ û_i / n over the utilities that the adaptive protocol estimates, without an additional call."""

    name = "protocols.decomposed-uniform"
    subject_kinds = (UTILITY_SUBJECT,)


@lru_cache(maxsize=64)
def _decomposed_reply_model(people: int) -> type[FrozenModel]:
    names = person_names(people)
    shares: Any = dict.fromkeys(names, (UnitInterval, ...))
    weights = create_model("WeightsReply", __base__=WeightsReply, **shares)
    fields: Any = dict.fromkeys(names, (PersonReply, ...)) | {"weights": (weights, ...)}
    return create_model("VerdictsReply", __base__=FrozenModel, **fields)


def _weights_by_name(weights: WeightsReply) -> dict[str, float]:
    """Return the weights by name, not normalized."""
    return {name: value for name, value in weights if name != "reason"}


def _finding_on_utility(name: str, reply: Any) -> Finding:
    person: PersonReply = getattr(reply, name)
    quotes: list[str] = []
    reasons = []
    claims = []
    for kind, constraints in (("hard", person.hard), ("soft", person.soft)):
        for number, constraint in enumerate(constraints, start=1):
            quotes += constraint.quotes
            label = f"{kind} {number}"
            reasons.append(f"{label} ({constraint.constraint}) {_describe_constraint(constraint)}")
            if constraint.held:
                claims.append(ClaimWithQuotes(f"{label} held", constraint.quotes))
    quotes += person.credibility.quotes
    reasons.append(f"credibility: {person.credibility.reason}")
    return rating(name, person.utility, "; ".join(reasons), quotes, claims, "utility")


def _describe_constraint(reply: AspectReply | ConstraintReply) -> str:
    return f"{'held' if reply.held else 'not held'}: {reply.reason}"
