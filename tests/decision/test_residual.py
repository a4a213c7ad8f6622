"""DecompR: the residual checklist holds at most 20 % of û_i, or no plan is made; most of a reward should be checked."""

from collections.abc import Mapping
from typing import Any

import pytest

from jurygraph.errors import PlanError
from jurygraph.schema import Stakeholder, Task
from tests.graphs.scripted import evaluator_use, make_plan, task


def config_with_layers(*layers: str, **fields: Any) -> dict[str, Any]:
    """Return a config in which one evaluator for each layer has one question about each stakeholder."""
    uses = [
        evaluator_use(f"e{i}", audience="stakeholder", layer=layer, **fields)
        for i, layer in enumerate(layers)
    ]
    return {"evaluators": uses, "weights": {"method": "uniform"}}


ANN = task(stakeholders=[Stakeholder(id="ann")])


@pytest.mark.parametrize(
    "layers", [["residual", *["check"] * 4], ["residual", *["model"] * 5], ["fact"], ["model"]]
)
def test_residual_questions_may_hold_a_fifth_of_a_stakeholders_weight(layers: list[str]) -> None:
    assert make_plan(config_with_layers(*layers), ANN).decision.specs[0].name == "stakeholders"


@pytest.mark.parametrize(
    ("layers", "share"),
    [
        (["residual", "check", "check"], "33.3"),
        (["residual"], "100"),
        (["residual"] * 2 + ["fact"] * 7, "22.2"),
    ],
)
def test_residual_questions_that_hold_more_are_refused(layers: list[str], share: str) -> None:
    with pytest.raises(PlanError) as error:
        make_plan(config_with_layers(*layers), ANN)
    assert str(error.value) == (
        f"task 'task': residual questions hold {share} % of the weight of stakeholder 'ann', and 20 % is the most; ask "
        "it more by facts, checks or a model, share the weight out by weights.layers, or ask fewer residual "
        "questions"
    )


def test_the_residual_limit_holds_for_every_stakeholder_and_configured_component() -> None:
    config = config_with_layers("check", "check", "check", "check", "residual")
    own = {
        "combiner": "stakeholders",
        "inputs": {
            "ann": {"verdicts_of": "e0", "input_weight": 0.5},
            "bob": {"verdicts_of": "e4", "input_weight": 0.5},
        },
    }
    make_plan(config, ANN)
    with pytest.raises(PlanError, match="hold 100 % of the weight of stakeholder 'bob'"):
        make_plan({**config, "components": {"own": own}, "reward": {"own": 1.0}}, ANN)


# Most of the reward on facts and checks


def notes_of(config: Mapping[str, Any], about: Task = ANN) -> tuple[str, ...]:
    return make_plan(config, about).notes


@pytest.mark.parametrize(
    "layers", [["fact"], ["check", "model"], ["fact", "check", "model", "model"]]
)
def test_a_plan_with_half_of_the_weight_on_facts_and_checks_has_no_note(layers: list[str]) -> None:
    assert notes_of(config_with_layers(*layers)) == ()


@pytest.mark.parametrize(
    ("layers", "share"),
    [
        (["model"], "0"),
        (["check", "model", "model", "human"], "25"),
        (["fact", "model", "model"], "33.3"),
    ],
)
def test_a_plan_with_less_says_so_once(layers: list[str], share: str) -> None:
    assert notes_of(config_with_layers(*layers)) == (
        f"{share} % of the reward's absolute weight depends on facts and checks, the rest on models or people; DecompR "
        "keeps most of it on facts and checks: give constraints a `check`, or raise `fact` and `check` in "
        "weights.layers",
    )


def test_stakeholders_count_by_their_weights_and_components_by_their_absolute_ones() -> None:
    people = task(stakeholders=[Stakeholder(id="ann"), Stakeholder(id="bob")])
    config = config_with_layers("check", "model")
    assert make_plan(config, people).checked_weight_share == pytest.approx(0.5)
    config["evaluators"] += [
        evaluator_use("tone", layer="model"),
        evaluator_use("length", layer="check"),
    ]
    config["reward"] = {"stakeholders": 1.0, "tone": -2.0, "length": 0.0}
    assert make_plan(config, people).checked_weight_share == pytest.approx(0.5 / 3)
    assert notes_of(config, people)[0].startswith("16.7 % of")
    config["reward"] = {"stakeholders": 1.0, "tone": -1.0, "length": -2.0}
    assert make_plan(config, people).checked_weight_share == pytest.approx(2.5 / 4)


def test_a_reward_without_stakeholders_is_no_business_of_decompr() -> None:
    assert notes_of({"evaluators": [evaluator_use("tone", layer="model")]}) == ()
