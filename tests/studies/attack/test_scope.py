"""The part of a jury that is attacked."""

from collections.abc import Mapping
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.errors import ConfigError, InputError
from jurygraph.jury import Jury
from jurygraph.schema import Config, Survey, Task
from jurygraph.studies.attack import attack_config, make_attack_surveys, positive_question_ids

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
        "stakeholders": [
            {"id": "ann", "constraints": [{"id": "sweet", "text": "It is sweet.", "kind": "hard"}]}
        ],
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
    name="attacked.staged",
    layer="model",
    own_model=True,
    when=jg.Condition(question="attacked.long", threshold=0.5),
)
def judge_after_check(task: jg.TaskView, response: jg.Response) -> float:
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
def judge_layout(task: jg.TaskView, response: jg.Response, lines: jg.Material) -> float:
    return 1.0


def attack_parts(config: Mapping[str, Any], *tasks: Task) -> tuple[list[Survey], Config]:
    with Jury.from_config(config) as jury:
        surveys = make_attack_surveys(jury, tasks or [TASK])
        return surveys, attack_config(jury, surveys)


def question_ids(survey: Survey) -> list[str]:
    return [question.id for question in survey.questions]


def test_model_questions_are_attacked_but_facts_and_checks_are_not():
    config = {
        **SERVED,
        "evaluators": [
            "criteria",
            "preferences",
            "checklist",
            "maths.accuracy",
            "checks.constraints",
        ],
        "reward": {"accuracy": 1.0, "rubric": 1.0},
    }
    (survey,), reduced = attack_parts(config)
    assert question_ids(survey) == [
        "checklist@ann",
        "criteria@oven",
        "criteria@wave",
        "preferences/sweet@ann",
    ]
    assert [use.use for use in reduced.evaluators] == ["criteria", "preferences", "checklist"]


def test_a_recipe_over_omitted_evaluators_is_dropped():
    config = {
        **SERVED,
        "evaluators": ["criteria", "maths.accuracy", "maths.format"],
        "components": {"both": {"inputs": {"a": "maths.accuracy", "c": "criteria"}}},
        "reward": {"both": 1.0, "accuracy": 1.0, "format": 0.5},
        "gates": [{"kind": "format", "below": 1.0}],
        "weights": {"method": "fixed", "fixed": {"somebody": 1.0}},
    }
    _, reduced = attack_parts(config)
    assert (reduced.reward, reduced.components, reduced.gates) == ({"rubric": 1.0}, {}, ())
    Jury.from_config(reduced).close()


def test_a_check_that_a_judge_waits_for_is_kept():
    config = {
        "evaluators": ["attacked.staged", "attacked.long", "maths.length"],
        "reward": {"staged": 1.0},
    }
    config["components"] = {
        "staged": {"inputs": {"s": {"verdicts_of": "attacked.staged", "if_skipped": "zero"}}}
    }
    (survey,), reduced = attack_parts(config)
    assert question_ids(survey) == ["attacked.long", "attacked.staged"]
    assert [use.use for use in reduced.evaluators] == ["attacked.staged", "attacked.long"]
    assert positive_question_ids(Config.model_validate(config), survey) == {"attacked.staged"}


def test_material_that_a_judge_needs_is_kept():
    derivers = [f"{__name__}:{name}" for name in ("Lines", "Letters", "Words")]
    (survey,), reduced = attack_parts({"evaluators": ["attacked.laid_out"], "derivers": derivers})
    assert [one.gives for one in survey.derivations] == ["letters", "lines"]
    assert [use.use for use in reduced.derivers] == derivers[:2]


def test_a_high_score_on_a_penalty_is_not_a_merit():
    config = Config.model_validate(
        {**SERVED, "evaluators": ["criteria", "attacked.toxic"], "reward": {"toxic": -1.0}}
    )
    (survey,), _ = attack_parts(config.model_dump(mode="json"))
    assert question_ids(survey) == ["attacked.toxic", "criteria@oven", "criteria@wave"]
    assert positive_question_ids(config, survey) == {"criteria@oven"}


def test_a_config_without_model_evaluators_is_refused():
    with pytest.raises(ConfigError, match="evaluators: none is of layer model or residual"):
        attack_parts({"evaluators": ["maths.accuracy"]})
    with pytest.raises(
        ConfigError, match="judges one response by itself; list one that does, such as criteria"
    ):
        attack_parts({"evaluators": ["attacked.better"]})


def test_a_config_without_a_model_is_refused():
    with pytest.raises(
        ConfigError, match="model: it is none, and evaluator 'criteria' asks a model"
    ):
        attack_parts({"evaluators": ["criteria"]})


def test_tasks_without_questions_are_refused():
    with pytest.raises(
        InputError, match="none of the tasks has a question of layer model or residual; give them"
    ):
        attack_parts({**SERVED, "evaluators": ["criteria"]}, BARE)
