"""prepare: everything is decided from the task alone, before there is a response, and in no order that a file has."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jurygraph as jg
from jurygraph.agents.roles import DeriverInput
from jurygraph.errors import PlanError
from jurygraph.graphs import prepare_graph
from jurygraph.graphs.context import GraphContext, TaskContexts
from jurygraph.graphs.groups import PlannedGroup
from jurygraph.graphs.state import PrepareState, TaskPlanning
from jurygraph.schema import Constraint, Stakeholder, Task
from tests.graphs.scripted import (
    SCRIPTED,
    by_id,
    criterion,
    evaluator_use,
    jury,
    make_plan,
    response,
    response_with,
    score_responses,
    task,
)

CONFIG = {
    "evaluators": [
        evaluator_use("kind", audience="stakeholder"),
        evaluator_use("fair", audience="stakeholder"),
        evaluator_use("met", audience="criterion"),
        evaluator_use("tone"),
        {**evaluator_use("rank", scope="pair"), "when": {"question": "tone", "threshold": 0.1}},
    ],
    "components": {
        "order": {"inputs": {"x": {"verdicts_of": "rank", "if_skipped": "zero"}, "y": "tone"}}
    },
    "reward": {"stakeholders": 1.0, "rubric": 0.5, "order": -0.25},
    "gates": [
        {"kind": "repetition", "component": "tone", "above": 0.9},
        {"kind": "format", "component": "tone", "below": 0.1},
    ],
    "weights": {"temperature": 2.0},
}


def full_task(reverse: bool = False) -> Task:
    """A task with everything that has no order, in one order or the reverse."""
    step = -1 if reverse else 1
    constraints = [
        Constraint(id=f"c{i}", kind="hard" if i % 2 else "soft", restrictiveness=i / 7)
        for i in range(5)
    ]
    people = [
        Stakeholder(id=name, constraints=tuple(constraints[::step]))
        for name in ("ann", "bob", "cy")
    ]
    tensions = [
        {"between": ["ann", "bob"][::step], "strength": 0.3},
        {"between": ["cy", "ann"][::step]},
    ]
    return task(
        *[criterion(name, weight) for name, weight in (("x", 0.1), ("y", 0.7), ("z", -0.3))][
            ::step
        ],
        edges=[("x", "y", "weak"), ("x", "z", "activation"), ("y", "z", 0.3)][::step],
        stakeholders=people[::step],
        tensions=tensions[::step],
        reviewers=["r1", "r2"][::step],
    )


def reversed_config() -> dict[str, Any]:
    turned = {
        key: list(value)[::-1] if isinstance(value, list) else value
        for key, value in CONFIG.items()
    }
    for key in ("components", "reward"):
        turned[key] = dict(reversed(CONFIG[key].items()))  # type: ignore[attr-defined]
    turned["components"]["order"] = {
        "inputs": dict(reversed(CONFIG["components"]["order"]["inputs"].items()))
    }  # type: ignore[index]
    return dict(reversed(turned.items()))


def test_the_plan_is_the_same_in_any_order_of_the_task_and_the_config() -> None:
    plans = [
        make_plan(c, t)
        for c in (CONFIG, reversed_config())
        for t in (full_task(), full_task(reverse=True))
    ]
    assert len({plan.digest for plan in plans}) == 1
    assert len({plan.model_dump_json() for plan in plans}) == 1


def test_a_dry_run_returns_the_plan_of_the_graph() -> None:
    with jg.Jury.from_config(CONFIG) as one:
        foreseen, calls = asyncio.run(jg.Planner(one).aestimate_plan(full_task()))
    assert foreseen == make_plan(CONFIG, full_task())
    assert not calls


def test_there_is_no_field_in_which_a_response_could_lie() -> None:
    channels = {
        *prepare_graph.build().channels,
        *PrepareState.__annotations__,
        *TaskPlanning.__annotations__,
    }
    assert not [
        name for name in channels if "response" in name or "material" in name or "verdict" in name
    ]
    assert "responses" in PlannedGroup._fields, (
        "the score graph's state has one, so the name is the right one"
    )


def test_a_response_cannot_reach_prepare() -> None:
    """Even one that somebody hands over is dropped: no node sees it and the plan is the same."""
    with jury(evaluator_use("tone")) as made:
        context = TaskContexts([made.context])
        planning = TaskPlanning(task=task(), profiles_line=None, digest=task().content_digest)
        handed = {"tasks": [planning], "responses": (response("a"),)}
        given_one = asyncio.run(prepare_graph.build().ainvoke(handed, context=context))  # type: ignore[arg-type]
        plan = made.prepare(task())
    assert given_one["tasks"][0]["plan"].digest == plan.digest
    assert "responses" not in {*given_one, *given_one["tasks"][0]}


def test_a_plan_for_one_group_is_made_from_the_task_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has the bits of `prepare`, with stakeholders and a rubric, too, and its errors."""
    seen: list[tuple[Any, ...]] = []

    def plan_by_code(*arguments: Any) -> Any:
        seen.append(arguments)
        return prepare_graph.plan_by_code(*arguments)

    monkeypatch.setattr("jurygraph.jury.plan_by_code", plan_by_code)
    with jg.Jury.from_config(CONFIG) as made:
        for item in (full_task(), full_task(reverse=True)):
            (trace,) = made.score(item, [response("a")])
            assert trace.plan is not None
            assert trace.plan.digest == made.prepare(item).digest
    waiting = {**evaluator_use("tone"), "when": {"question": "tune", "threshold": 0.1}}
    messages = []
    with jury(waiting) as made:
        for work in (made.prepare, lambda item: made.score(item, ["x"])):
            with pytest.raises(PlanError, match="did you mean") as refused:
                work(task())
            messages.append(str(refused.value))
    assert messages[0] == messages[1]
    assert [[type(argument) for argument in each] for each in seen] == 3 * [[Task, GraphContext]]


SCRIPT = {
    f"{name}@{who}": score
    for who, score in (("ann", 0.3), ("bob", 0.9))
    for name in ("kind", "fair")
}
ISOLATED = {
    "evaluators": [
        evaluator_use("kind", audience="stakeholder"),
        evaluator_use("fair", audience="stakeholder", scope="pair"),
    ],
    "weights": {"method": "uniform"},
}


def stakeholders_with(profile: str, **constraint: Any) -> list[Stakeholder]:
    wish = Constraint(id="wish", kind="soft", **constraint)
    return [
        Stakeholder(id="ann", profile="likes tea"),
        Stakeholder(id="bob", profile=profile, constraints=(wish,)),
    ]


def test_changing_one_stakeholder_leaves_questions_and_answers_of_others_unchanged() -> None:
    group = [response_with("a", SCRIPT), response_with("b", {**SCRIPT, "fair@ann": 0.5})]
    with jg.Jury.from_config(ISOLATED) as made:
        before = task(stakeholders=stakeholders_with("hates tea"))
        questions, traces = made.prepare(before).survey.questions, by_id(made.score(before, group))

        @settings(max_examples=15, deadline=None)
        @given(st.text(), st.text(), st.floats(0.0, 9.0))
        def check(profile: str, text: str, restrictiveness: float) -> None:
            after = task(
                stakeholders=stakeholders_with(profile, text=text, restrictiveness=restrictiveness)
            )
            for question, other in zip(
                questions, made.prepare(after).survey.questions, strict=True
            ):
                assert question.id == other.id
                if question.id.endswith("@ann"):
                    assert question.digest == other.digest
                elif profile != "hates tea":
                    assert question.digest != other.digest
            for name, trace in by_id(made.score(after, group)).items():
                of_ann, unchanged = (
                    [v.model_dump_json() for v in t.verdicts if v.stakeholder == "ann"]
                    for t in (trace, traces[name])
                )
                assert of_ann == unchanged
                assert len(of_ann) == 2

        check()


class SeesAll(jg.Deriver):
    """Holds a deriver's view against what it may see."""

    gives = "seen"

    def derive(self, inputs: DeriverInput) -> jg.Material:
        assert inputs.task.about is None
        assert (inputs.response.agent, inputs.response.labels, inputs.material) == (None, {}, {})
        return jg.Material(name="seen", data=inputs.task.id)


def test_a_deriver_sees_one_view_and_one_response() -> None:
    config = {
        "evaluators": [{"use": SCRIPTED, "name": "tone"}],
        "derivers": [f"{__name__}:SeesAll"],
    }
    named = response("a", agent="gpt", tone=1.0).model_copy(update={"labels": {"correct": True}})
    (trace,) = score_responses(config, task(stakeholders=stakeholders_with("x")), named)
    assert [(m.status, m.data) for m in trace.material] == [("ok", "task")]
