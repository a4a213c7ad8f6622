"""Presets: recipes by name, and what a config states beside one."""

from typing import Any

import pytest

from jurygraph import ConfigError, Jury, Response, Task
from jurygraph.sources import parse_config
from jurygraph.sources.config import config_schema
from jurygraph.sources.presets import AGENTS, PRESETS, SIGNALS
from tests.schema.json_schema import faults

WITHOUT_MODELS = [f"macrm-vanilla-{agents}" for agents in AGENTS] + ["macrm-multi-head"]


def components(name: str, **stated: Any) -> dict[str, float]:
    return dict(parse_config({"preset": name, **stated}).reward)


@pytest.mark.parametrize("name", PRESETS)
def test_each_is_a_config(name: str) -> None:
    assert parse_config({"preset": name}).evaluators


def test_there_is_one_for_each_signal_and_number_of_agents_and_two_baselines() -> None:
    assert len(PRESETS) == len(SIGNALS) * len(AGENTS) + 2 == 11


def test_the_weights_that_the_paper_gives_are_its_own() -> None:
    """Table 3."""
    stated = {"accuracy": 1.0, "format": 0.5, "steps": 0.5, "repetition": -0.2}
    for name in WITHOUT_MODELS[:-1]:
        assert stated.items() <= components(name).items()


def test_each_agent_adds_its_components() -> None:
    two, three, four = (components(f"macrm-vanilla-{agents}") for agents in AGENTS)
    assert two.keys() - {"accuracy", "format", "steps", "repetition"} == {"efficient", "diverse"}
    assert three.keys() - two.keys() == {"arithmetic"}
    assert four.keys() - three.keys() == {"enhanced"}


def test_with_a_model_the_quality_assessor_judges_the_steps_too() -> None:
    assert {"arithmetic", "reasoning"} <= components("macrm-vanilla-3", model="openai/gpt-5-mini").keys()


def test_each_signal_adds_its_component() -> None:
    plain, ranked, embedded = (components(f"macrm-{signal}-2") for signal in SIGNALS)
    assert ranked.keys() - plain.keys() == {"ranker"}
    assert embedded.keys() - plain.keys() == {"similarity"}


def test_who_gives_the_signal_can_be_said() -> None:
    config = parse_config({"preset": {"name": "macrm-emb-2", "embedder": "gguf:small.gguf"}})
    assert [use.params for use in config.evaluators if use.use == "similarity"] == [{"embedder": "gguf:small.gguf"}]


def test_the_heads_count_alike() -> None:
    assert set(components("macrm-multi-head").values()) == {0.25, -0.25}


def test_what_is_stated_beside_it_comes_on_top() -> None:
    config = parse_config(
        {
            "preset": "macrm-vanilla-4",
            "evaluators": ["maths.length"],
            "derivers": [{"use": "synthesizer", "name": "second"}],
            "components": {"concise": {"combiner": "product", "inputs": {"a": "maths.accuracy", "l": "maths.length"}}},
            "reward": {"accuracy": 2.0, "concise": 0.5},
            "gates": [{"kind": "format", "below": 0.5}],
        }
    )
    assert config.evaluators[0].use == "maths.length"
    assert {use.known_as for use in config.derivers} == {"synthesizer", "second"}
    assert set(config.components) == {"enhanced", "efficient", "diverse", "concise"}
    assert (config.reward["accuracy"], config.reward["concise"], config.reward["format"]) == (2.0, 0.5, 0.5)
    assert len(config.gates) == 1


@pytest.mark.parametrize("name", WITHOUT_MODELS)
def test_those_that_need_no_model_reward_a_right_solution_above_a_wrong_one(name: str) -> None:
    task = Task(id="sum", query="Ann has 3 boxes of 4 eggs. How many eggs?", reference="A: 12")
    texts = {"right": "There are 3*4=12 eggs.\nA: 12", "wrong": "There are 3+4=7 eggs.\nA: 7"}
    with Jury.from_config({"preset": name}) as jury:
        right, wrong = jury.score(task, [Response(id=name, text=text) for name, text in texts.items()])
    assert right.reward.value is not None
    assert wrong.reward.value is not None
    assert right.reward.value > wrong.reward.value
    assert (right.reward.status, wrong.reward.status) == ("ok", "ok")


@pytest.mark.parametrize(
    ("preset", "said"),
    [
        ("macrm-vanila-3", "key preset: .*did you mean macrm-vanilla-3"),
        ("nothing", "key preset: .*there are macrm-vanilla-2"),
        (5, "key preset"),
        ({"name": "macrm-emb-2", "embeder": "x"}, "key preset.embeder"),
    ],
)
def test_another_name_is_refused_with_the_nearest(preset: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_config({"preset": preset})


def test_an_error_beside_it_names_its_own_place() -> None:
    with pytest.raises(ConfigError, match=r"key evaluators\[0\]"):
        parse_config({"preset": "macrm-vanilla-2", "evaluators": [{"use": 5}]})


def test_the_schema_of_configs_knows_them() -> None:
    assert faults({"preset": "macrm-vanilla-2"}, config_schema()) == []
    assert faults({"preset": {"name": "macrm-emb-2", "embedder": "gguf:small.gguf"}}, config_schema()) == []
    assert faults({"evaluators": ["maths.accuracy"]}, config_schema()) == []
    assert faults({"reward": {}}, config_schema())
