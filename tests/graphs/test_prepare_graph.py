"""prepare: everything is decided from the task alone, before there is a response, and in no order that a file has."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jurygraph as jg
from jurygraph.agents.roles import DeriverInput
from jurygraph.graphs import annotate_graph, prepare_graph, score_graph
from jurygraph.graphs.state import BatchContext, PlannedGroup, PrepareState, TaskPlanning
from jurygraph.schema import Constraint, Plan, Stakeholder, Task
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
    "components": {"order": {"inputs": {"x": {"verdicts_of": "rank", "if_skipped": "zero"}, "y": "tone"}}},
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
    constraints = [Constraint(id=f"c{i}", kind="hard" if i % 2 else "soft", restrictiveness=i / 7) for i in range(5)]
    people = [Stakeholder(id=name, constraints=tuple(constraints[::step])) for name in ("ann", "bob", "cy")]
    tensions = [{"between": ["ann", "bob"][::step], "strength": 0.3}, {"between": ["cy", "ann"][::step]}]
    return task(
        *[criterion(name, weight) for name, weight in (("x", 0.1), ("y", 0.7), ("z", -0.3))][::step],
        edges=[("x", "y", "weak"), ("x", "z", "activation"), ("y", "z", 0.3)][::step],
        stakeholders=people[::step],
        tensions=tensions[::step],
        reviewers=["r1", "r2"][::step],
    )


def reversed_config() -> dict[str, Any]:
    turned = {key: list(value)[::-1] if isinstance(value, list) else value for key, value in CONFIG.items()}
    for key in ("components", "reward"):
        turned[key] = dict(reversed(CONFIG[key].items()))  # type: ignore[attr-defined]
    turned["components"]["order"] = {"inputs": dict(reversed(CONFIG["components"]["order"]["inputs"].items()))}  # type: ignore[index]
    return dict(reversed(turned.items()))


def test_the_plan_is_the_same_in_any_order_of_the_task_and_the_config() -> None:
    plans = [make_plan(c, t) for c in (CONFIG, reversed_config()) for t in (full_task(), full_task(reverse=True))]
    assert len({plan.digest for plan in plans}) == 1
    assert len({plan.model_dump_json() for plan in plans}) == 1


def test_a_dry_run_returns_the_plan_of_the_graph() -> None:
    with jg.Jury.from_config(CONFIG) as one:
        foreseen, calls = asyncio.run(jg.Planner(one).aestimate_plan(full_task()))
    assert foreseen == make_plan(CONFIG, full_task())
    assert not calls


def test_a_plan_survives_being_written_and_read() -> None:
    plan = make_plan(CONFIG, full_task())
    again = Plan.model_validate_json(plan.model_dump_json())
    assert again == plan
    assert again.digest == plan.digest


def test_there_is_no_field_in_which_a_response_could_lie() -> None:
    channels = {*prepare_graph.build().channels, *PrepareState.__annotations__, *TaskPlanning.__annotations__}
    assert not [name for name in channels if "response" in name or "material" in name or "verdict" in name]
    assert "responses" in PlannedGroup._fields, "the score graph's state has one, so the name is the right one"


def test_a_response_cannot_reach_prepare() -> None:
    """Even one that somebody hands over is dropped: no node sees it and the plan is the same."""
    with jury(evaluator_use("tone")) as made:
        context = BatchContext([made.context])
        planning = TaskPlanning(task=task(), profiles_line=None, digest=task().content_digest)
        handed = {"tasks": [planning], "responses": (response("a"),)}
        given_one = asyncio.run(prepare_graph.build().ainvoke(handed, context=context))  # type: ignore[arg-type]
        plan = made.prepare(task())
    assert given_one["tasks"][0]["plan"].digest == plan.digest
    assert "responses" not in {*given_one, *given_one["tasks"][0]}


def test_the_plan_is_the_same_whatever_the_responses() -> None:
    config = {"evaluators": [evaluator_use("tone")]}
    groups = [[response("a", tone=1.0)], [response("b", tone=0.0), response("c", tone=0.5)]]
    traces = [trace for group in groups for trace in score_responses(config, task(), *group)]
    assert len({trace.plan_digest for trace in traces}) == 1
    assert {trace.plan.digest for trace in traces if trace.plan} == {traces[0].plan_digest}


SCRIPT = {f"{name}@{who}": score for who, score in (("ann", 0.3), ("bob", 0.9)) for name in ("kind", "fair")}
ISOLATED = {
    "evaluators": [
        evaluator_use("kind", audience="stakeholder"),
        evaluator_use("fair", audience="stakeholder", scope="pair"),
    ],
    "weights": {"method": "uniform"},
}


def stakeholders_with(profile: str, **constraint: Any) -> list[Stakeholder]:
    wish = Constraint(id="wish", kind="soft", **constraint)
    return [Stakeholder(id="ann", profile="likes tea"), Stakeholder(id="bob", profile=profile, constraints=(wish,))]


def test_changing_one_stakeholder_leaves_questions_and_answers_of_others_unchanged() -> None:
    group = [response_with("a", SCRIPT), response_with("b", {**SCRIPT, "fair@ann": 0.5})]
    with jg.Jury.from_config(ISOLATED) as made:
        before = task(stakeholders=stakeholders_with("hates tea"))
        questions, traces = made.prepare(before).survey.questions, by_id(made.score(before, group))

        @settings(max_examples=15, deadline=None)
        @given(st.text(), st.text(), st.floats(0.0, 9.0))
        def check(profile: str, text: str, restrictiveness: float) -> None:
            after = task(stakeholders=stakeholders_with(profile, text=text, restrictiveness=restrictiveness))
            for question, other in zip(questions, made.prepare(after).survey.questions, strict=True):
                assert question.id == other.id
                if question.id.endswith("@ann"):
                    assert question.digest == other.digest
                elif profile != "hates tea":
                    assert question.digest != other.digest
            for name, trace in by_id(made.score(after, group)).items():
                of_ann, unchanged = (
                    [v.model_dump_json() for v in t.verdicts if v.stakeholder == "ann"] for t in (trace, traces[name])
                )
                assert of_ann == unchanged
                assert len(of_ann) == 2

        check()


def test_changing_an_evaluator_changes_its_own_questions_only() -> None:
    one = make_plan({"evaluators": [evaluator_use("kind"), evaluator_use("tone")], "reward": {"kind": 1.0}}, task())
    other = make_plan(
        {"evaluators": [evaluator_use("kind", version="2"), evaluator_use("tone")], "reward": {"kind": 1.0}}, task()
    )
    changed = [q.id for q, o in zip(one.survey.questions, other.survey.questions, strict=True) if q.digest != o.digest]
    assert changed == ["kind"]


def test_a_changed_decision_does_not_change_the_survey() -> None:
    config = {"evaluators": [evaluator_use("kind"), evaluator_use("tone")], "reward": {"kind": 1.0, "tone": 1.0}}
    one, other = (
        make_plan(config, task()),
        make_plan({**config, "reward": {"kind": 1.0, "tone": -2.0}, "scale": 3.0}, task()),
    )
    assert one.survey.digest == other.survey.digest
    assert one.decision.digest != other.decision.digest


class SeesAll(jg.Deriver):
    """Holds a deriver's view against what it may see."""

    gives = "seen"

    def derive(self, inputs: DeriverInput) -> jg.Material:
        assert inputs.task.about is None
        assert (inputs.response.agent, inputs.response.labels, inputs.material) == (None, {}, {})
        return jg.Material(name="seen", data=inputs.task.id)


def test_a_deriver_sees_one_view_and_one_response() -> None:
    config = {"evaluators": [{"use": SCRIPTED, "name": "tone"}], "derivers": [f"{__name__}:SeesAll"]}
    named = response("a", agent="gpt", tone=1.0).model_copy(update={"labels": {"correct": True}})
    (trace,) = score_responses(config, task(stakeholders=stakeholders_with("x")), named)
    assert [(m.status, m.data) for m in trace.material] == [("ok", "task")]


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        ("annotate", ["roles", "candidates", "edges", "validate", "project"]),
        ("prepare", ["profiles", "weigh", "annotate", "question", "freeze"]),
        (
            "score",
            ["route", "derive", "checks", "stakeholders", "criteria", "specialists", "judges", "decide"],
        ),
    ],
)
def test_the_picture_of_a_graph_shows_every_node(name: Any, nodes: list[str]) -> None:
    graph: Any = {"prepare": prepare_graph, "score": score_graph, "annotate": annotate_graph}[name].build()
    picture = graph.get_graph().draw_mermaid()
    assert sorted(set(graph.nodes) - {"__start__"}) == sorted(nodes)
    assert all(f"\t{node}({node})" in picture for node in nodes)
    assert picture.count("-->") + picture.count("-.->") >= len(nodes)
