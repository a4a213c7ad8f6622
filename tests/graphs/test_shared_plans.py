"""Tasks of one jury share parts of their plans, which stay the same as those of plans that are made alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jurygraph as jg
from jurygraph.agents.roles import Evaluator, EvaluatorInput
from jurygraph.graphs import context
from jurygraph.graphs.context import SharedPlanParts
from jurygraph.schema import Question, Task, TaskView
from tests.examples import at_most
from tests.graphs.scripted import evaluator_use


class Metadata(Evaluator):
    """Asks with whatever the task's metadata say."""

    name = "about"

    def questions(self, view: TaskView) -> Sequence[Question]:
        names = view.metadata.get("subjects", ["x"])
        assert isinstance(names, list)
        return [self.question(view, str(name), params=view.metadata) for name in names]

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
parts: dict[str, st.SearchStrategy[Any]] = {
    "id": st.sampled_from("tu"),
    "query": st.sampled_from(["q", "r"]),
    "names": st.permutations("xyz"),
    "text": st.sampled_from("uv"),
    "weights": st.tuples(*[st.sampled_from([0.5, 1.0])] * 2, st.sampled_from([0.5, -0.5])),
    "edge": st.none() | st.fixed_dictionaries({"kind": st.sampled_from(["weak", "strong"])}),
    "retention": st.sampled_from([None, 0.0, -0.0, 0.3]),
    "kinds": st.tuples(*[st.sampled_from(["hard", "soft"])] * 2),
    "restrictiveness": st.sampled_from([0.0, 0.5, 1.0]),
    "subjects": st.lists(st.sampled_from("ab"), min_size=1, unique=True),
    "n": numbers,
}


def make_task(drawn: Mapping[str, Any]) -> Task:
    names, edge = drawn["names"], drawn["edge"]
    criteria = [
        {"id": name, "text": f"{name}, {drawn['text']}", "weight": weight}
        for name, weight in zip(names, drawn["weights"], strict=True)
    ]
    edges = (
        []
        if edge is None
        else [{"parent": "x", "child": "y", "retention": drawn["retention"], **edge}]
    )
    constraints = zip(("ann", "bo"), drawn["kinds"], (drawn["restrictiveness"], 1.0), strict=True)
    return Task.model_validate(
        {
            "id": drawn["id"],
            "query": drawn["query"],
            "rubric": {"criteria": criteria, "edges": edges},
            "stakeholders": [
                {"id": name, "constraints": [{"id": "c", "kind": kind, "restrictiveness": alpha}]}
                for name, kind, alpha in constraints
            ],
            "metadata": {"subjects": drawn["subjects"], "n": drawn["n"]},
        }
    )


@st.composite
def similar_tasks(draw: st.DrawFn) -> list[Task]:
    """Tasks of which each differs from the first in one part at most."""
    first = draw(st.fixed_dictionaries(parts))
    changed = draw(st.lists(st.sampled_from(sorted(parts)), min_size=3, max_size=8, unique=True))
    return [make_task(first), *(make_task({**first, name: draw(parts[name])}) for name in changed)]


@settings(max_examples=at_most(60, quick=5), deadline=None)
@given(similar_tasks(), st.sampled_from([1, 2, 512]))
def test_a_plan_does_not_depend_on_the_tasks_planned_before(
    several: list[Task], most_shared: int
) -> None:
    with pytest.MonkeyPatch.context() as patched, jg.Jury(**settings_of_jury()) as one:
        patched.setattr(context, "_MAX_SHARED_PLAN_PARTS", most_shared)
        for task in several:
            with jg.Jury(**settings_of_jury()) as alone:
                expected = alone.prepare(task)
            made = one.prepare(task)
            assert made.model_dump_json() == expected.model_dump_json()
            assert made.digest == expected.digest
            assert made.survey.without_texts.digest == made.survey.model_copy().without_texts.digest


def test_tasks_that_differ_in_their_texts_share_a_survey_without_texts_and_a_decision() -> None:
    with jg.Jury(evaluators=[Metadata()]) as jury:
        one, other = (jury.prepare(Task(id=name, query=f"question {name}")) for name in "ab")
    assert one.survey.views.keys() != other.survey.views.keys()
    assert one.survey.without_texts is other.survey.without_texts
    assert one.decision is other.decision


def test_shared_parts_are_bounded() -> None:
    parts = SharedPlanParts[int]()
    for number in range(3 * context._MAX_SHARED_PLAN_PARTS):
        parts.store_part(number, number)
        assert parts[number] == number
        assert len(parts) <= context._MAX_SHARED_PLAN_PARTS
