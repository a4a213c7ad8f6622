"""The three roles: what they are given, what a question says of itself, and what a combiner's cells mean."""

import pickle

import pytest

from jurygraph import (
    Combiner,
    Deriver,
    Evaluator,
    EvaluatorInput,
    Question,
    Response,
    Stakeholder,
    TaskView,
)
from jurygraph.agents.roles import BRANCH_OF_AUDIENCE
from jurygraph.errors import InputError
from jurygraph.schema import Criterion, Reviewer

WHOLE = TaskView(id="t", query="q")
ANN = TaskView(id="t", query="q", audience="stakeholder", about=Stakeholder(id="ann"))


class Tone(Evaluator):
    name = "my_package.tone"

    def answer(self, inputs: EvaluatorInput) -> float:
        return 1.0


@pytest.mark.parametrize("role", [Evaluator, Deriver, Combiner])
def test_roles_are_abstract(role: type) -> None:
    with pytest.raises(TypeError, match="abstract"):
        role()


@pytest.mark.parametrize(
    ("view", "name", "subject"),
    [(WHOLE, "my_package.tone", "tone"), (ANN, "my_package.tone@ann", "ann")],
)
def test_an_evaluator_has_one_question_per_member(view: TaskView, name: str, subject: str) -> None:
    (question,) = Tone().questions(view)
    assert (question.id, question.evaluator, question.subject) == (name, "my_package.tone", subject)
    assert question.view == view.digest
    assert (question.scope, question.layer, question.branch, question.material) == (
        "response",
        "check",
        "checks",
        "submitted",
    )


def test_a_wrong_declaration_is_an_input_error_of_its_author() -> None:
    tone = Tone()
    tone.audience = "criteria"  # type: ignore[assignment]
    with pytest.raises(
        InputError, match="audience: is the text 'criteria'; did you mean criterion"
    ):
        tone.record  # noqa: B018 - made when it is read


def test_every_audience_belongs_to_a_branch() -> None:
    views = {
        "task": None,
        "everyone": None,
        "stakeholder": Stakeholder(id="m"),
        "criterion": Criterion(id="m", text="x", weight=1),
        "reviewer": Reviewer(id="m"),
    }
    assert views.keys() == BRANCH_OF_AUDIENCE.keys()
    for audience, about in views.items():
        tone = Tone()
        tone.audience = audience  # type: ignore[assignment]
        view = TaskView(id="t", query="q", audience=audience, about=about)
        assert tone.question(view).branch == BRANCH_OF_AUDIENCE[audience]  # type: ignore[index]


def test_an_input_can_be_pickled() -> None:
    question = Question(id="q", evaluator="e", version="1", subject="r", view="v")
    inputs = EvaluatorInput(question, WHOLE, (Response(id="r", text="t"),), ({},))
    assert pickle.loads(pickle.dumps(inputs)).response.text == "t"
