"""The config: short forms, defaults and refused values."""

from typing import Any

import pytest
from pydantic import ValidationError

from jurygraph.errors import InputError
from jurygraph.schema import Config, FormatGate, InputConfig, WeightsConfig
from jurygraph.schema.config import JurySettings
from tests.rows import all_rows
from tests.schema.samples import CONFIG


def validate(**change: Any) -> Config:
    return Config.model_validate({"evaluators": ["maths.accuracy"]} | change)


def test_the_example_of_the_contract_is_a_config() -> None:
    config = Config.model_validate(CONFIG)
    assert [use.use for use in config.evaluators] == CONFIG["evaluators"]
    assert config.reward["repetition"] == -0.2


def test_defaults_are_those_of_the_design() -> None:
    config = validate()
    assert (config.model, config.langsmith) == ("none", False)
    assert (config.weights.method, config.weights.gamma, config.weights.beta) == (
        "calibrated",
        0.5,
        0.5,
    )
    assert (config.weights.temperature, config.rubric.aggregation, config.rubric.kappa) == (
        5.0,
        "gear",
        1.0,
    )
    assert (config.failure.rule, config.failure.min_coverage, config.failure.max_error_rate) == (
        "conservative",
        0.8,
        0.1,
    )


def test_a_bare_name_means_its_use() -> None:
    assert validate(evaluators=["a"]) == validate(evaluators=[{"use": "a"}])
    assert validate(derivers=["a"]) == validate(derivers=[{"use": "a"}])
    assert InputConfig.model_validate("a") == InputConfig(verdicts_of="a")


@all_rows(
    "change",
    [
        {"evaluators": []},
        {"evaluators": "maths.accuracy"},
        {"evaluators": [""]},
        {"evaluators": [{"use": "a", "samples": 0}]},
        {"version": 2},
        {"version": "1"},
        {"scale": 0},
        {"scale": -1.0},
        {"clip": [1, 0]},
        {"clip": [0, 0]},
        {"clip": [0]},
        {"reward": {"accuracy": "1"}},
        {"reward": {"accuracy": True}},
        {"reward": {"": 1.0}},
        {"components": {"own": {"inputs": {}}}},
        {"components": {"own": {"inputs": {"a": {"verdicts_of": "a", "input_weight": 0}}}}},
        {"gates": [{"kind": "unheard-of", "component": "format", "below": 0.5}]},
        {"gates": [{"kind": "format", "component": "format", "below": 1.5}]},
        {"gates": [{"kind": "precision", "auxiliary": [], "fraction": 0.5}]},
        {"weights": {"gamma": 0.0}},
        {"weights": {"gamma": 1.0}},
        {"weights": {"beta": 1.0}},
        {"weights": {"temperature": 0.0}},
        {"rubric": {"kappa": -1}},
        {"rubric": {"aggregation": "mean"}},
        {"failure": {"min_coverage": 1.1}},
        {"failure": {"rule": "lenient"}},
        {"langsmith": "no"},
        {"evaluator": ["a"]},
    ],
)
def test_a_contradictory_config_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        validate(**change)


@pytest.mark.parametrize(
    ("method", "fixed"), [("fixed", {}), ("calibrated", {"ann": 1.0}), ("uniform", {"ann": 1.0})]
)
def test_fixed_weights_are_listed_exactly_when_the_method_is_fixed(
    method: Any, fixed: dict[str, float]
) -> None:
    with pytest.raises(InputError, match="exactly when `method` is fixed"):
        WeightsConfig(method=method, fixed=fixed)
    assert WeightsConfig(method="fixed", fixed={"ann": 1.0}).fixed == {"ann": 1.0}


def test_type_checkers_know_the_keys_of_a_config_as_arguments_of_a_jury() -> None:
    assert [*JurySettings.__annotations__] == ["preset", *Config.model_fields]


def test_the_kind_of_a_gate_selects_its_model() -> None:
    gate = validate(gates=[{"kind": "format", "below": 0.5}]).gates[0]
    assert gate == FormatGate(component="format", below=0.5)
