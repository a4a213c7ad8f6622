"""Evaluators of criteria (GEAR's local event scores p_i), of preferences (DecompR's û_i), and of a short checklist.

A criterion is met or not, on a scale, or in parts. Preferences are a stakeholder's needs and wishes that no check
decides, judged in isolation. The checklist is the same for every stakeholder: quality beyond all of these.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from jurygraph.agents.judging.evaluator import JudgeEvaluator, Sentence
from jurygraph.agents.judging.forms import Binary, PartialCredit, Scale
from jurygraph.agents.judging.items import Item
from jurygraph.agents.roles import EvaluatorInput
from jurygraph.prompts import load_prompt
from jurygraph.schema import Audience, Criterion, Question, Stakeholder, TaskView
from jurygraph.schema.frozen_model import Id, Positive, require_unique
from jurygraph.schema.task import require_different_texts

_NUMBER = re.compile(r"\s*-?\d+(?:\.\d+)?")


def _check_own_id(name: str) -> str:
    if "/" in name:
        raise ValueError("has a slash; leave it out")
    return name


_OwnId = Annotated[Id, AfterValidator(_check_own_id)]
_ANY = Field(min_length=1)


class OwnCriterion(Criterion):
    """A criterion of an evaluator's own; a text alone will do."""

    id: _OwnId | None = None  # type: ignore[assignment]  # the key in a mapping, or the place in a list, replaces it
    weight: Positive = 1.0

    @model_validator(mode="before")
    @classmethod
    def _expand_text(cls, value: Any) -> Any:
        return {"text": value} if isinstance(value, str) else value


class Criteria(JudgeEvaluator):
    """Score how far each criterion of the rubric is met.

    A criterion is met or not, and its score is P(met); with a `scale`, its position on the scale in [0, 1]; with
    `parts`, the share of their weight that is met.
    """

    class Params(JudgeEvaluator.Params):
        criteria: Annotated[dict[_OwnId, OwnCriterion], _ANY] | Annotated[tuple[OwnCriterion, ...], _ANY] | None = None
        """Criteria of its own: texts by id, or a list of texts and of criteria as in a rubric. They are judged in every
        task, in place of its rubric, and form a component of the evaluator's name: their mean by weight."""

        @property
        def own(self) -> tuple[Criterion, ...]:
            named = self.criteria or {}
            if not isinstance(named, dict):
                named = {f"c{number}": one for number, one in enumerate(named, 1)}
            return tuple(one.model_copy(update={"id": one.id or name}) for name, one in named.items())

        @model_validator(mode="after")
        def _check_ids(self) -> Self:
            require_unique("criterion", "criteria[{}].id", [one.id for one in self.own])
            require_different_texts("criteria[{}].text", [(one.id, one.text) for one in self.own])
            return self

    name = "criteria"
    version = "3"
    prompt = load_prompt("criteria")
    audience: Audience = "criterion"
    item_name = "criterion"

    settings: Params

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self._own = self.settings.own
        if self._own:
            self.audience = "task"
            self.shares = {criterion.id: criterion.weight for criterion in self._own}

    def questions(self, view: TaskView) -> Sequence[Question]:
        if not self._own:
            return super().questions(view)
        params = {name: value for name, value in self.params.items() if name != "criteria"}
        shown = [criterion.model_dump(mode="json", exclude={"weight", "role"}) for criterion in self._own]
        return [self.question(view, one["id"], params={**params, "criterion": one}) for one in shown]

    def item(self, inputs: EvaluatorInput) -> Item:
        about: Any = inputs.task.about
        if self._own:
            about = next(criterion for criterion in self._own if criterion.id == inputs.question.subject)
        assert isinstance(about, Criterion)
        if about.parts:
            weights = tuple(part.weight for part in about.parts)
            return Item(about.text, PartialCredit(weights), tuple(part.text for part in about.parts))
        if about.scale is not None:
            anchors = tuple(sorted(about.anchors.items(), key=_anchor_sort_key))
            return Item(about.text, Scale(*about.scale), anchors=anchors)
        return Item(about.text, Binary())


def _anchor_sort_key(anchor: tuple[str, str]) -> tuple[float, str]:
    match = _NUMBER.match(anchor[0])
    return float(match[0]) if match else float("inf"), anchor[0]


SERVED_SCALE = (0.0, 4.0)
_ANCHORS = (
    ("0", "nothing in the response serves it"),
    ("1", "it is touched, and little is done about it"),
    ("2", "about half of it is served"),
    ("3", "it is served, but for something small"),
    ("4", "it is served wholly"),
)


class _StakeholderJudge(JudgeEvaluator):
    def prompt_variables(self, inputs: EvaluatorInput) -> Mapping[str, Any]:
        about = inputs.task.about
        return {"profile": about.profile if isinstance(about, Stakeholder) else ""}

    def batch_key(self, inputs: EvaluatorInput) -> str:
        return inputs.task.member or ""


class Preferences(_StakeholderJudge):
    """Score how far each wish of a stakeholder is served, from 0 to 4, and each need as met, with a probability.

    Covers the constraints without a `check`. Only the stakeholder's own needs are shown to the model.
    """

    name = "preferences"
    version = "3"
    prompt = load_prompt("preferences")
    audience = "stakeholder"
    item_name = "constraint"

    def questions(self, view: TaskView) -> Sequence[Question]:
        assert isinstance(view.about, Stakeholder)
        return [self.question(view, constraint.id) for constraint in view.about.constraints if constraint.check is None]

    def item(self, inputs: EvaluatorInput) -> Item:
        assert isinstance(inputs.task.about, Stakeholder)
        constraint = next(c for c in inputs.task.about.constraints if c.id == inputs.question.subject)
        text = constraint.text or constraint.id
        return Item(text, Binary()) if constraint.kind == "hard" else Item(text, Scale(*SERVED_SCALE), anchors=_ANCHORS)


DEFAULT_ITEMS = (
    "It answers what was asked, and leaves nothing out that whoever asked would have to ask for again.",
    "It can be acted on as it is written, without guessing who does what, where or when.",
    "Its parts agree with each other.",
    "Where not everything could be had, it says what was given up and why.",
)


class Checklist(_StakeholderJudge):
    """Score the share of checklist items that hold. Its layer `residual` may make up a fifth of û_i at most."""

    class Params(JudgeEvaluator.Params):
        items: tuple[Sentence, ...] = Field(DEFAULT_ITEMS, min_length=1, max_length=20)
        """Sentences that hold or do not; four general ones by default."""
        audience: Literal["stakeholder", "task"] = "stakeholder"
        """`stakeholder`, for each one's utility, or `task`, for a separate component `checklist`."""

    name = "checklist"
    version = "3"
    prompt = load_prompt("checklist")
    layer = "residual"
    item_name = "checklist"

    settings: Params

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.audience = self.settings.audience

    def item(self, inputs: EvaluatorInput) -> Item:
        parts = self.settings.items
        return Item("Each part is asked about by itself.", PartialCredit((1.0,) * len(parts)), parts)
