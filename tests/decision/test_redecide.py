"""Re-deciding: another decision for an existing survey equals the one that `prepare` would make."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jurygraph.agents.registry import load_combiners
from jurygraph.decision.recipe import check_recipe
from jurygraph.errors import ConfigError, PlanError
from jurygraph.schema import Constraint, Decision, EvaluatorRecord, Stakeholder, Survey, Task
from jurygraph.sources import parse_config_mapping
from tests.examples import at_most
from tests.graphs.scenes import SIGNED, Scene, decide, scenes
from tests.graphs.scripted import criterion, evaluator_use, make_plan, task

EACH = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def evaluator_records(config: Mapping[str, Any]) -> dict[str, EvaluatorRecord]:
    told = {use["name"]: use["params"].get("audience", "task") for use in config["evaluators"]}
    return {
        name: EvaluatorRecord(version="1", audience=audience) for name, audience in told.items()
    }


def redecide_from_storage(about: Task, survey: Survey, config: Mapping[str, Any]) -> Decision:
    """The decision for a task and survey as they are stored."""
    stored = Survey.model_validate_json(survey.model_dump_json())
    read = parse_config_mapping(config)
    check_recipe(read, evaluator_records(config))
    return decide(about, stored, read, evaluator_records(config), load_combiners(read, ()))


@settings(EACH, max_examples=at_most(EACH.max_examples, quick=5))
@given(scenes())
def test_redecide_under_the_same_config_gives_the_decision_of_the_plan(scene: Scene) -> None:
    plan = make_plan(scene.config, scene.task)
    decision = redecide_from_storage(scene.task, plan.survey, scene.config)
    assert decision == plan.decision
    assert decision.model_dump_json() == plan.decision.model_dump_json()


@EACH
@given(scenes(), st.data())
@pytest.mark.exhaustive
def test_redecide_under_another_config_gives_the_decision_of_a_new_plan(
    scene: Scene, data: st.DataObject
) -> None:
    other = {
        **scene.config,
        "reward": {name: data.draw(SIGNED) for name in scene.config["reward"]},
        "gates": [],
        "scale": 3.0,
        "rubric": {
            "aggregation": data.draw(st.sampled_from(["flat", "gear"])),
            "if_skipped": "zero",
            "kappa": 2.0,
        },
        "failure": {"rule": "gear", "group_rule": "drop-criterion"},
    }
    survey = make_plan(scene.config, scene.task).survey
    try:
        plan = make_plan(other, scene.task)
    except PlanError as refusal:  # of a must that is a penalty under the other config
        with pytest.raises(PlanError, match=re.escape(str(refusal))):
            redecide_from_storage(scene.task, survey, other)
        return
    assert plan.survey == survey
    assert redecide_from_storage(scene.task, survey, other) == plan.decision


def test_stakeholder_weights_are_computed_again() -> None:
    hard = [Constraint(id=f"{i}", kind="hard") for i in range(3)]
    about = task(
        stakeholders=[Stakeholder(id="ann", constraints=tuple(hard)), Stakeholder(id="bob")]
    )
    config = {
        "evaluators": [evaluator_use("kind", audience="stakeholder")],
        "weights": {"temperature": 2.0},
    }
    survey = make_plan(config, about).survey
    (spec,) = redecide_from_storage(
        about, survey, {**config, "weights": {"method": "uniform"}}
    ).specs
    assert {name: one.input_weight for name, one in spec.inputs.items()} == {"ann": 0.5, "bob": 0.5}
    assert spec.params == {}


def test_a_recipe_that_does_not_fit_is_refused_as_when_the_plan_is_made() -> None:
    config = {
        "evaluators": [evaluator_use("met", audience="criterion"), evaluator_use("tone")],
        "reward": {"tone": 1.0},
    }
    survey = make_plan(config, task()).survey
    with pytest.raises(PlanError, match="the task has no rubric"):
        redecide_from_storage(task(), survey, {**config, "reward": {"rubric": 1.0}})
    with pytest.raises(ConfigError, match="did you mean tone"):
        redecide_from_storage(task(criterion("x")), survey, {**config, "reward": {"tonne": 1.0}})
