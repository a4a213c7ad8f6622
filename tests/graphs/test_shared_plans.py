"""Tasks of one jury share the outlines and decisions of their plans, which stay the same as those made alone."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jurygraph as jg
from jurygraph.agents.roles import Evaluator, EvaluatorInput
from jurygraph.errors import PlanError
from jurygraph.graphs import state
from jurygraph.graphs.state import SharedParts
from jurygraph.schema import Question, Task, TaskView
from tests.examples import at_most
from tests.graphs.scripted import evaluator_use

NAME, SECRET = "SHARED_API_KEY", "sk-Zq81mPx02LkTr55vWb"


class Metadata(Evaluator):
    """Asks with whatever the task's metadata say."""

    name = "about"

    def questions(self, view: TaskView) -> Sequence[Question]:
        names = view.metadata.get("subjects", ["x"])
        assert isinstance(names, list)
        return [self.question(view, str(name), params=view.metadata) for name in names]

    def answer(self, inputs: EvaluatorInput) -> bool:
        return True


class Hidden(Evaluator):
    """Asks with a value that may be a secret."""

    name = "hidden"

    def questions(self, view: TaskView) -> Sequence[Question]:
        return [self.question(view, params={"key": SECRET})]

    def answer(self, inputs: EvaluatorInput) -> bool:
        return True


def settings_of_jury() -> dict[str, Any]:
    return {
        "evaluators": [
            evaluator_use("kind", audience="stakeholder"),
            evaluator_use("met", audience="criterion"),
            Metadata(),
        ],
        "reward": {"stakeholders": 1.0, "rubric": 0.5, "about": -0.25},
        "rubric": {"aggregation": "gear"},
    }


numbers = st.sampled_from([0, 0.0, -0.0, 1, 1.0, True])
metadata = st.fixed_dictionaries({"subjects": st.lists(st.sampled_from("ab"), min_size=1, unique=True), "n": numbers})


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    """A task that often has the same shape as another, or one that differs in a single number."""
    weights = st.sampled_from([0.5, 1.0, -1.0])
    names = draw(st.permutations("xyz"))[: draw(st.integers(2, 3))]
    criteria = [{"id": name, "text": draw(st.sampled_from("uv")), "weight": abs(draw(weights))} for name in names]
    criteria[-1]["weight"] = draw(weights)
    kind, retention = draw(st.sampled_from(["weak", "strong"])), draw(st.sampled_from([None, 0.0, -0.0, 0.3]))
    edge = {"parent": names[0], "child": names[1], "kind": kind, "retention": retention}
    people = [
        {
            "id": name,
            "constraints": [{"id": "c", "kind": draw(st.sampled_from(["hard", "soft"])), "restrictiveness": r}],
        }
        for name, r in (("ann", draw(st.sampled_from([0.0, 1.0]))), ("bo", 1.0))
    ]
    return Task.model_validate(
        {
            "id": draw(st.sampled_from("tu")),
            "query": draw(st.sampled_from(["q", "r"])),
            "rubric": {"criteria": criteria, "edges": [edge] if draw(st.booleans()) else []},
            "stakeholders": people,
            "metadata": draw(metadata),
        }
    )


@settings(max_examples=at_most(40, quick=10), deadline=None)
@given(st.lists(tasks(), min_size=2, max_size=8), st.sampled_from([1, 2, 512]))
def test_a_plan_does_not_depend_on_the_tasks_planned_before(several: list[Task], most_shared: int) -> None:
    with pytest.MonkeyPatch.context() as patched, jg.Jury(**settings_of_jury()) as one:
        patched.setattr(state, "_MAX_SHARED", most_shared)
        for task in several:
            with jg.Jury(**settings_of_jury()) as alone:
                expected = alone.prepare(task)
            made = one.prepare(task)
            assert made.model_dump_json() == expected.model_dump_json()
            assert made.digest == expected.digest
            assert made.survey.outline.digest == made.survey.model_copy().outline.digest


def test_tasks_that_differ_in_their_texts_share_an_outline_and_a_decision() -> None:
    with jg.Jury(evaluators=[Metadata()]) as jury:
        one, other = (jury.prepare(Task(id=name, query=f"question {name}")) for name in "ab")
    assert one.survey.views.keys() != other.survey.views.keys()
    assert one.survey.outline is other.survey.outline
    assert one.decision is other.decision


def test_a_survey_with_other_questions_has_an_outline_of_its_own() -> None:
    with jg.Jury(evaluators=[Metadata()]) as jury:
        survey = jury.prepare(Task(id="a", query="q", metadata={"subjects": ["a", "b"]})).survey
    fewer = survey.model_copy(update={"questions": survey.questions[:1]})
    assert [question.id for question in fewer.outline.questions] == [survey.questions[0].id]


def test_a_secret_in_shared_parts_is_refused_as_soon_as_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is refused where the task itself contains it, and that allows it in no other task."""
    monkeypatch.delenv(NAME, raising=False)
    with jg.Jury(evaluators=[Hidden()]) as jury:
        jury.prepare(Task(id="a", query="q"))
        monkeypatch.setenv(NAME, SECRET)
        for _ in range(2):
            jury.prepare(Task(id="b", query=f"why {SECRET}?"))
            with pytest.raises(PlanError, match=f"task 'c': question 'hidden', params.key: holds the secret of {NAME}"):
                jury.prepare(Task(id="c", query="q"))
        monkeypatch.delenv(NAME)
        jury.prepare(Task(id="d", query="q"))


def test_shared_parts_are_bounded() -> None:
    parts = SharedParts[int]()
    for number in range(3 * state._MAX_SHARED):
        parts.keep(number, number)
        assert parts[number] == number
        assert len(parts) <= state._MAX_SHARED
