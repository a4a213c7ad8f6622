"""Tasks and responses: invalid ones, and the views that evaluators see."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from jurygraph.errors import InputError
from jurygraph.schema import (
    Criterion,
    Response,
    ResponseLine,
    Reviewer,
    Rubric,
    Stakeholder,
    Task,
    TaskDefaults,
    TaskLine,
    TaskView,
)
from jurygraph.schema.task import sort_by_id
from tests.rows import all_rows
from tests.schema.samples import TASK
from tests.schema.strategies import made

A, B = Criterion(id="a", text="x", weight=1), Criterion(id="b", text="y", weight=-1)


def edge(parent: str, child: str, kind: str = "weak") -> dict[str, str]:
    return {"parent": parent, "child": child, "kind": kind}


@all_rows(
    ("change", "message"),
    [
        (
            {"stakeholders": [{"id": "ann"}, {"id": "ann"}]},
            r"`stakeholders\[1\].id` is 'ann' again; give each stakeholder an id",
        ),
        ({"reviewers": ["r1", "r1"]}, r"`reviewers\[1\]` is 'r1' again; give each reviewer an id"),
        (
            {"tensions": [{"between": ["ann", "ann"]}]},
            "`between` names 'ann' twice; name two stakeholders",
        ),
        (
            {"tensions": [{"between": ["ann", "cy"]}]},
            r"`tensions\[0\].between\[1\]` names 'cy', which is not a stakeholder",
        ),
        ({"tensions": [{"between": ["ann", "Ann "]}]}, r"names 'Ann ', .*; did you mean 'ann'\?"),
        ({"rubric": {"criteria": []}}, "at least 1 item"),
        ({"id": ""}, "at least 1 character"),
        ({"id": 1}, "valid string"),
        ({"query": [{"role": "narrator", "content": ""}]}, "role"),
        ({"responses": "a text"}, "valid tuple"),
    ],
)
def test_a_task_with_repeated_or_unknown_ids_is_refused(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        TaskLine.model_validate(TASK | change)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (
            [edge("a", "c")],
            r"`edges\[0\].child` names 'c', which is not a criterion; name one that is listed",
        ),
        (
            [edge("c", "a")],
            r"`edges\[0\].parent` names 'c', which is not a criterion; name one that is listed",
        ),
        ([edge("a", "a")], r"`edges\[0\]` joins 'a' to itself; name two"),
        (
            [edge("a", "b"), edge("a", "b")],
            r"`edges\[1\]` joins 'a' -> 'b' again; keep one of them",
        ),
        (
            [edge("a", "b"), edge("a", "b", "strong")],
            r"`edges\[1\]` joins 'a' -> 'b' again; keep one of them",
        ),
        ([edge("a", "b", "maybe")], "kind"),
        ([edge("a", "b") | {"retention": 1.5}], "retention"),
    ],
)
def test_a_rubric_refuses_invalid_and_repeated_edges(
    edges: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        Rubric.model_validate({"criteria": [A, B], "edges": edges})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": 0}, "`weight` is 0"),
        ({"scale": [1, 1]}, "not rise"),
        ({"scale": [10, 1]}, "not rise"),
        ({"text": " "}, "`text` is empty"),
        ({"parts": [{"text": ""}]}, "`text` is empty"),
    ],
)
def test_an_invalid_criterion_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Criterion.model_validate({"id": "a", "text": "x", "weight": 1} | change)


@settings(deadline=None)
@given(made(TaskLine))
def test_a_line_is_split_into_a_task_without_responses_and_its_responses(line: TaskLine) -> None:
    task, responses = line.split()
    assert type(task) is Task
    assert responses == line.responses
    assert task == Task.model_validate(line.model_dump(exclude={"responses"}))
    assert (
        task.digest
        == TaskLine.model_validate(line.model_dump() | {"responses": ()}).split()[0].digest
    )


@settings(deadline=None)
@given(made(ResponseLine))
def test_a_line_of_responses_is_split_into_its_tasks_id_and_the_response(
    line: ResponseLine,
) -> None:
    task, response = line.split()
    assert (task, type(response)) == (line.task, Response)
    assert response == Response.model_validate(line.model_dump(exclude={"task"}))


@settings(deadline=None)
@given(made(Task), made(TaskDefaults) | st.just(TaskDefaults()))
def test_defaults_complete_only_what_a_task_lacks(task: Task, defaults: TaskDefaults) -> None:
    completed = defaults.complete(task)
    for name in Task.model_fields.keys() - {"tensions"}:
        own, default = getattr(task, name), getattr(defaults, name, None)
        is_completed = own in (None, ()) and default not in (None, ())
        assert getattr(completed, name) == (default if is_completed else own)
    assert completed.tensions == (task.tensions if task.stakeholders else defaults.tensions)
    assert completed == Task.model_validate(completed.model_dump())
    assert defaults.complete(completed) == completed
    assert completed.content_digest == Task.model_validate(completed.model_dump()).content_digest


def test_default_tensions_are_between_default_stakeholders() -> None:
    tension = {"between": ["ann", "bo"]}
    with pytest.raises(
        ValidationError,
        match=r"`tensions\[0\].between\[1\]` names 'bo', which is not a stakeholder",
    ):
        TaskDefaults.model_validate({"stakeholders": [{"id": "ann"}], "tensions": [tension]})
    defaults = TaskDefaults.model_validate(
        {"stakeholders": [{"id": "ann"}, {"id": "bo"}], "tensions": [tension]}
    )
    alone = Task(id="t", query="q", stakeholders=(Stakeholder(id="cy"),))
    assert defaults.complete(alone) is alone


def test_a_task_holds_no_response_and_no_verdict() -> None:
    assert not {"responses", "response", "verdicts", "rewards"} & Task.model_fields.keys()


def test_evaluators_see_only_id_text_and_data_of_a_response() -> None:
    bare = Response(id="r", text="t", data={"a": 1})
    known = bare.model_copy(
        update={"agent": "best", "labels": {"good": True}, "metadata": {"is_correct": True}}
    )
    assert known.without_metadata() == bare
    assert known.without_metadata().model_dump() == bare.model_dump()


def test_equal_answers_of_different_agents_have_the_same_content_digest() -> None:
    one = Response(
        id="r1", text="t", data={"a": 1, "b": 2}, agent="x", labels={"l": 1}, metadata={"m": 1}
    )
    other = Response(id="r2", text="t", data={"b": 2, "a": 1})
    assert one.content_digest == other.content_digest
    for change in ({"text": "u"}, {"data": {"a": 1}}, {"data": None}):
        assert one.model_copy(update=change).content_digest != one.content_digest


@settings(deadline=None)
@given(made(Task))
def test_the_digest_of_a_task_is_that_of_the_task_with_its_parts_in_order(task: Task) -> None:
    people = [
        one.model_copy(update={"constraints": sort_by_id(one.constraints)})
        for one in sort_by_id(task.stakeholders)
    ]
    tensions = [
        one.model_copy(update={"between": tuple(sorted(one.between))}) for one in task.tensions
    ]
    tensions.sort(key=lambda one: (one.between, one.strength))
    rubric = task.rubric
    if rubric is not None:
        edges = sorted(rubric.edges, key=lambda edge: (edge.parent, edge.child))
        rubric = rubric.model_copy(
            update={"criteria": sort_by_id(rubric.criteria), "edges": tuple(edges)}
        )
    ordered = {"stakeholders": tuple(people), "tensions": tuple(tensions), "rubric": rubric}
    assert (
        task.content_digest
        == task.model_copy(update={**ordered, "reviewers": tuple(sorted(task.reviewers))}).digest
    )


MEMBERS = {
    "task": None,
    "stakeholder": Stakeholder(id="m"),
    "criterion": A,
    "reviewer": Reviewer(id="m"),
}


@pytest.mark.parametrize("audience", MEMBERS)
def test_a_view_is_about_a_member_of_its_audience(audience: Any) -> None:
    view = TaskView(id="t", query="q", audience=audience, about=MEMBERS[audience])
    assert TaskView.model_validate_json(view.model_dump_json()) == view
    for other in MEMBERS.values():
        if type(other) is not type(MEMBERS[audience]):
            with pytest.raises(InputError, match=f"a view for audience '{audience}' is not about"):
                TaskView(id="t", query="q", audience=audience, about=other)


def test_a_view_contains_nothing_of_other_members() -> None:
    assert (
        not {"stakeholders", "tensions", "rubric", "criteria", "reviewers"}
        & TaskView.model_fields.keys()
    )
