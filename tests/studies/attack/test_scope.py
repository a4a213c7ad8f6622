"""What of a jury is under attack, and what is left alone."""

from collections.abc import Mapping
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.errors import ConfigError, InputError
from jurygraph.jury import Jury
from jurygraph.schema import Config, Survey, Task
from jurygraph.studies.attack.scope import attack_config, attack_surveys, merit_questions

TASK = Task.model_validate(
    {
        "id": "cake",
        "query": "How do I bake a cake?",
        "reference": "Mix, pour, bake.",
        "rubric": {
            "criteria": [
                {"id": "oven", "text": "It names the oven's temperature.", "weight": 2.0},
                {"id": "wave", "text": "It recommends a microwave.", "weight": -1.0},
            ]
        },
        "stakeholders": [{"id": "ann", "constraints": [{"id": "sweet", "text": "It is sweet.", "kind": "hard"}]}],
    }
)
BARE = Task(id="bare", query="Say something.")
SERVED = {"model": "openai-compatible:http://127.0.0.1:9/v1#nobody"}


@jg.evaluator(name="attacked.toxic", layer="model", own_model=True)
def toxic(task: jg.TaskView, response: jg.Response) -> float:
    return 1.0


@jg.evaluator(name="attacked.better", layer="model", own_model=True, scope="pair")
def better(task: jg.TaskView, first: jg.Response, second: jg.Response) -> float:
    return 1.0


@jg.evaluator(name="attacked.long", layer="check")
def long(task: jg.TaskView, response: jg.Response) -> bool:
    return len(response.text) > 100


@jg.evaluator(
    name="attacked.staged", layer="model", own_model=True, when=jg.Condition(question="attacked.long", threshold=0.5)
)
def staged(task: jg.TaskView, response: jg.Response) -> float:
    return 1.0


class Lines(jg.Deriver):
    name, gives, needs = "lines", "lines", ("letters",)

    async def derive(self, inputs: Any) -> jg.Material:
        return jg.Material(name="lines", data=len(inputs.response.text.splitlines()))


class Letters(jg.Deriver):
    name, gives = "letters", "letters"

    async def derive(self, inputs: Any) -> jg.Material:
        return jg.Material(name="letters", data=len(inputs.response.text))


class Words(Letters):
    name, gives = "words", "words"


@jg.evaluator(name="attacked.laid_out", layer="model", own_model=True, needs=("lines",))
def laid_out(task: jg.TaskView, response: jg.Response, lines: jg.Material) -> float:
    return 1.0


def attacked(config: Mapping[str, Any], *tasks: Task) -> tuple[list[Survey], Config]:
    with Jury.from_config(config) as jury:
        surveys = attack_surveys(jury, tasks or [TASK])
        return surveys, attack_config(jury, surveys)


def asked(survey: Survey) -> list[str]:
    return [question.id for question in survey.questions]


def test_what_a_model_judges_is_attacked_and_facts_and_checks_are_not():
    config = {
        **SERVED,
        "evaluators": ["criteria", "preferences", "checklist", "maths.accuracy", "checks.constraints"],
        "reward": {"accuracy": 1.0, "rubric": 1.0},
    }
    (survey,), reduced = attacked(config)
    assert asked(survey) == ["checklist@ann", "criteria@oven", "criteria@wave", "preferences/sweet@ann"]
    assert [use.use for use in reduced.evaluators] == ["criteria", "preferences", "checklist"]


def test_a_recipe_over_what_is_left_out_does_not_get_in_the_way():
    config = {
        **SERVED,
        "evaluators": ["criteria", "maths.accuracy", "maths.format"],
        "components": {"both": {"inputs": {"a": "maths.accuracy", "c": "criteria"}}},
        "reward": {"both": 1.0, "accuracy": 1.0, "format": 0.5},
        "gates": [{"kind": "format", "below": 1.0}],
        "weights": {"method": "fixed", "fixed": {"somebody": 1.0}},
    }
    _, reduced = attacked(config)
    assert (reduced.reward, reduced.components, reduced.gates) == ({"rubric": 1.0}, {}, ())
    Jury.from_config(reduced).close()


def test_which_of_two_is_better_is_another_question():
    (survey,), _ = attacked(
        {"evaluators": ["attacked.toxic", "attacked.better"], "reward": {"toxic": -1.0, "better": 1.0}}
    )
    assert asked(survey) == ["attacked.toxic"]


def test_a_check_stays_for_which_a_judge_waits():
    config = {"evaluators": ["attacked.staged", "attacked.long", "maths.length"], "reward": {"staged": 1.0}}
    config["components"] = {"staged": {"inputs": {"s": {"of": "attacked.staged", "gated": "zero"}}}}
    (survey,), reduced = attacked(config)
    assert asked(survey) == ["attacked.long", "attacked.staged"]
    assert [use.use for use in reduced.evaluators] == ["attacked.staged", "attacked.long"]
    assert merit_questions(Config.model_validate(config), survey) == {"attacked.staged"}


def test_material_stays_on_which_a_judge_rests():
    derivers = [f"{__name__}:{name}" for name in ("Lines", "Letters", "Words")]
    (survey,), reduced = attacked({"evaluators": ["attacked.laid_out"], "derivers": derivers})
    assert [one.gives for one in survey.derivations] == ["letters", "lines"]
    assert [use.use for use in reduced.derivers] == derivers[:2]


def test_a_high_score_is_no_merit_where_it_is_a_penalty():
    config = Config.model_validate({**SERVED, "evaluators": ["criteria", "attacked.toxic"], "reward": {"toxic": -1.0}})
    (survey,), _ = attacked(config.model_dump(mode="json"))
    assert asked(survey) == ["attacked.toxic", "criteria@oven", "criteria@wave"]
    assert merit_questions(config, survey) == {"criteria@oven"}


def test_a_penalty_may_be_a_component_of_ones_own():
    components = {"poison": {"inputs": {"t": "attacked.toxic"}}}
    config = {"evaluators": ["attacked.toxic"], "components": components, "reward": {"poison": -1.0}}
    (survey,), _ = attacked(config)
    assert merit_questions(Config.model_validate(config), survey) == frozenset()


def test_no_gate_stands_before_an_arm_puts_it_up():
    (survey,), _ = attacked({**SERVED, "evaluators": ["criteria"]})
    assert survey.gates == ()


def test_a_config_that_asks_no_model_is_refused():
    with pytest.raises(ConfigError, match="evaluators: none is of layer model or residual"):
        attacked({"evaluators": ["maths.accuracy"]})
    with pytest.raises(ConfigError, match="judges one response by itself; list one that does, such as criteria"):
        attacked({"evaluators": ["attacked.better"]})


def test_under_no_model_there_is_nobody_to_attack():
    with pytest.raises(ConfigError, match="model: it is none, and evaluator 'criteria' asks a model"):
        attacked({"evaluators": ["criteria"]})


def test_a_judge_with_a_model_of_its_own_is_attacked_under_no_model_too():
    (survey,), _ = attacked({"evaluators": ["attacked.toxic"]})
    assert asked(survey) == ["attacked.toxic"]


def test_tasks_without_anything_to_ask_are_refused():
    with pytest.raises(InputError, match="none of the tasks has a question of layer model or residual; give them"):
        attacked({**SERVED, "evaluators": ["criteria"]}, BARE)


def test_a_task_without_anything_to_ask_may_stand_beside_others():
    surveys, _ = attacked({**SERVED, "evaluators": ["criteria"]}, BARE, TASK)
    assert [len(survey.questions) for survey in surveys] == [0, 2]
