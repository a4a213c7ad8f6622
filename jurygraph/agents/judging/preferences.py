"""One stakeholder's needs and wishes that no check decides, judged by a model in isolation (DecompR's û_i)."""

from collections.abc import Mapping, Sequence
from typing import Any

from jurygraph.agents.judging.evaluator import JudgeEvaluator
from jurygraph.agents.judging.forms import Binary, Scale
from jurygraph.agents.judging.items import Item
from jurygraph.agents.roles import EvaluatorInput
from jurygraph.prompts import load_prompt
from jurygraph.schema import Question, Stakeholder, TaskView

SERVED_SCALE = (0.0, 4.0)
_ANCHORS = (
    ("0", "nothing in the response serves it"),
    ("1", "it is touched, and little is done about it"),
    ("2", "about half of it is served"),
    ("3", "it is served, but for something small"),
    ("4", "it is served wholly"),
)


class Preferences(JudgeEvaluator):
    """Score how far each wish of a stakeholder is served, from 0 to 4, and each need as met, with a probability.

    Covers the constraints without a `check`. Only the stakeholder's own needs are shown to the model.
    """

    name = "preferences"
    prompt = load_prompt("preferences")
    audience = "stakeholder"
    item_name = "constraint"

    def questions(self, view: TaskView) -> Sequence[Question]:
        assert isinstance(view.about, Stakeholder)
        return [self.question(view, constraint.id) for constraint in view.about.constraints if constraint.check is None]

    def item(self, inputs: EvaluatorInput) -> Item:
        assert isinstance(inputs.task.about, Stakeholder)
        constraint = next(
            candidate for candidate in inputs.task.about.constraints if candidate.id == inputs.question.subject
        )
        text = constraint.text or constraint.id
        return Item(text, Binary()) if constraint.kind == "hard" else Item(text, Scale(*SERVED_SCALE), anchors=_ANCHORS)

    def prompt_variables(self, inputs: EvaluatorInput) -> Mapping[str, Any]:
        assert isinstance(inputs.task.about, Stakeholder)
        return {"profile": inputs.task.about.profile}

    def batch_key(self, inputs: EvaluatorInput) -> str:
        return inputs.task.member or ""
