"""A plan fits only the task, the evaluators and the inputs that it was made from."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from jurygraph.agents.roles import Deriver, Evaluator
from jurygraph.errors import InputError
from jurygraph.graphs.context import GraphContext
from jurygraph.graphs.groups import Group, split_into_batches
from jurygraph.jury import check_group
from jurygraph.schema import Plan, Question, Response, Task
from tests.graphs.scripted import (
    DATA_READER,
    Measure,
    ScriptedEvaluator,
    evaluator_use,
    jury,
    make_plan,
    task,
)

CONFIG: dict[str, Any] = {
    "evaluators": [
        evaluator_use("tone"),
        {"use": DATA_READER, "name": "reads", "params": {"needs": ["measure"], "version": "1"}},
    ],
    "derivers": [{"use": f"{__name__}:Ruler", "name": "ruler"}],
    "components": {"style": {"combiner": "mean", "inputs": {"x": "tone", "y": "reads"}}},
    "reward": {"style": 1.0},
}


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan(CONFIG, task())


@pytest.fixture(scope="module")
def context() -> GraphContext:
    with jury(
        *CONFIG["evaluators"],
        **{key: value for key, value in CONFIG.items() if key != "evaluators"},
    ) as made:
        return GraphContext(made.config, made.evaluators, made.derivers, made.combiners)


def check(plan: Plan, of: Task, context: GraphContext) -> None:
    check_group(Group(of, [Response(id="r", text="")], plan), context)


class Ruler(Measure):
    """A deriver with a version."""

    version = "1"


class Changed(ScriptedEvaluator):
    """An evaluator whose input has changed."""

    name = "tone"

    def check(self, question: Question) -> None:
        raise InputError(f"{question.id} depends on a file that changed")


def ruler(**fields: Any) -> Deriver:
    """Return the deriver of the plan with these fields changed."""
    made = Ruler()
    for name, value in ({"name": "ruler"} | fields).items():
        setattr(made, name, value)
    return made


def tone(version: str) -> Evaluator:
    made = ScriptedEvaluator(version=version)
    made.name = "tone"
    return made


def test_a_plan_fits_the_task_that_it_was_made_from(plan: Plan, context: GraphContext) -> None:
    check(plan, task(), context)
    check(Plan.model_validate_json(plan.model_dump_json()), task(), context)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"id": "other"}, "the plan is for task 'task', not for 'other'"),
        (
            {"query": "What is left?"},
            "the plan was made from another version of task 'task': prepare it again",
        ),
    ],
)
def test_a_plan_does_not_fit_another_task(
    plan: Plan, context: GraphContext, changed: Mapping[str, Any], why: str
) -> None:
    with pytest.raises(InputError) as refused:
        check(plan, task(**changed), context)
    assert str(refused.value) == why


@pytest.mark.parametrize(
    ("others", "why"),
    [
        (
            {"evaluators": {"tone": tone("2")}},
            "evaluator 'tone' of version '1'; this jury has 2: prepare it again",
        ),
        (
            {"derivers": {"ruler": ruler(version="2")}},
            "deriver 'ruler' of version '1'; this jury has 2: prepare it",
        ),
        (
            {"evaluators": {}},
            "evaluator 'reads' of version '1'; this jury has none: prepare it again",
        ),
        ({"derivers": {}}, "deriver 'ruler' of version '1'; this jury has none: prepare it again"),
        ({"combiners": {}}, "combiner 'mean' of version '1'; this jury has none: prepare it again"),
    ],
)
def test_a_plan_does_not_fit_other_evaluators_or_settings(
    plan: Plan, context: GraphContext, others: dict[str, Any], why: str
) -> None:
    here = {
        key: {**getattr(context, key), **value} if value else {} for key, value in others.items()
    }
    with pytest.raises(InputError) as refused:
        check(plan, task(), replace(context, **here))
    assert str(refused.value).startswith(f"the plan was made with {why}")


def test_a_plan_does_not_fit_changed_input_of_a_deriver(plan: Plan, context: GraphContext) -> None:
    same, other = (
        replace(context, derivers={"ruler": ruler(params=params)})
        for params in ({}, {"unit": "inch"})
    )
    check(plan, task(), same)
    with pytest.raises(InputError, match="was made with other facts: the input of deriver 'ruler'"):
        check(plan, task(), other)


def test_an_evaluator_decides_if_its_inputs_are_unchanged(
    plan: Plan, context: GraphContext
) -> None:
    relying = replace(context, evaluators={**context.evaluators, "tone": Changed()})
    with pytest.raises(InputError, match="depends on a file that changed"):
        check(plan, task(), relying)


def test_batches_fill_up_to_their_size_and_read_no_further() -> None:
    items = iter("a bb ccc d e".split())
    batches = split_into_batches(items, len, 3)
    assert (next(batches), next(items)) == (["a", "bb"], "ccc")
    assert list(batches) == [["d", "e"]]
