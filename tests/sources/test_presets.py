"""Presets, and settings added to one."""

import math
from pathlib import Path
from typing import Any

import pytest

from jurygraph import ConfigError, Jury, Response, Task
from jurygraph.sources import parse_config_mapping, read_config
from jurygraph.sources.config import (
    GLOBAL_PRESET_SIGNALS,
    PRESET_AGENT_COUNTS,
    PRESETS,
    config_file_schema,
)
from tests.schema.json_schema import faults

WITHOUT_MODELS = [f"macrm-vanilla-{agents}" for agents in PRESET_AGENT_COUNTS] + [
    "macrm-multi-head"
]


def components(name: str, **parsed: Any) -> dict[str, float]:
    return dict(parse_config_mapping({"preset": name, **parsed}).reward)


def test_the_weights_of_the_paper_are_used() -> None:
    """Table 3."""
    parsed = {"accuracy": 1.0, "format": 0.5, "steps": 0.5, "repetition": -0.2}
    for name in WITHOUT_MODELS[:-1]:
        assert parsed.items() <= components(name).items()


def test_fusion_adds_the_three_rules_of_f_and_is_off_unless_it_is_named() -> None:
    """Eq. 4, with thresholds of ours; the global signal counts as auxiliary."""
    assert parse_config_mapping({"preset": "macrm-vanilla-2"}).gates == ()
    gates = parse_config_mapping({"preset": {"name": "macrm-emb-2", "fusion": True}}).gates
    assert [gate.kind for gate in gates] == ["format", "precision", "repetition"]
    assert gates[1].auxiliary == ("format", "similarity", "steps")
    own = {"preset": {"name": "macrm-vanilla-2", "fusion": True}, "gates": []}
    assert parse_config_mapping(own).gates == ()
    with pytest.raises(ConfigError, match=r"preset.fusion: is of no use to macrm-single"):
        parse_config_mapping(
            {"preset": {"name": "macrm-single", "fusion": True}, "model": "openai/gpt-5"}
        )


def test_a_wrong_repetitive_answer_is_paid_less_with_fusion() -> None:
    task = Task(id="sum", query="What is 3 * 4?", reference="A: 12")
    text = f"<think>{'So it is. ' * 30}</think><answer>13</answer>"
    rewards = []
    for fusion in (False, True):
        with Jury.from_config({"preset": {"name": "macrm-vanilla-2", "fusion": fusion}}) as jury:
            (trace,) = jury.score(task, [Response(id="a", text=text)])
        rewards.append(trace.reward.value)
    assert rewards[1] < rewards[0]


def test_each_agent_adds_its_components() -> None:
    two, three, four = (components(f"macrm-vanilla-{agents}") for agents in PRESET_AGENT_COUNTS)
    assert two.keys() - {"accuracy", "format", "steps", "repetition", "concise"} == {
        "efficient",
        "diverse",
    }
    assert three.keys() - two.keys() == {"sound"}
    assert four.keys() - three.keys() == {"enhanced"}


def test_accuracy_is_rescaled_by_the_cosine_of_the_length() -> None:
    """R_cs (3.3): in each composition, beside the accuracy that Table 3 weighs."""
    task = Task(id="sum", query="What is 3 * 4?", reference="A: 12")
    texts = {"short": "A: 12", "long": f"{'3*4 is what we need. ' * 90}\nA: 12", "wrong": "A: 7"}
    assert all(
        components(name)["concise"] == 0.25
        for name in PRESETS
        if name.startswith(("macrm-v", "macrm-r"))
    )
    with Jury.from_config({"preset": "macrm-vanilla-2"}) as jury:
        traces = jury.score(task, [Response(id=name, text=text) for name, text in texts.items()])
    concise = {trace.response_id: trace.reward.components["concise"] for trace in traces}
    length = len(texts["long"])
    assert length < 2000
    assert concise["long"] == pytest.approx(0.75 + 0.25 * math.cos(math.pi * length / 2000))
    assert (round(concise["short"], 3), concise["wrong"]) == (1.0, 0.0)


def test_a_model_named_on_the_command_line_is_seen_by_the_preset(tmp_path: Path) -> None:
    (tmp_path / "jury.yaml").write_text("preset: macrm-vanilla-3\n", encoding="utf-8")
    assert "reasoned" not in read_config(tmp_path / "jury.yaml").reward
    named = read_config(tmp_path / "jury.yaml", "openai/gpt-5-mini")
    assert ("reasoned" in named.reward, named.model) == (True, "openai/gpt-5-mini")


def test_text_added_by_an_agent_does_not_help_a_wrong_plan() -> None:
    """However long, new, sound or well contrasted a wrong answer is."""
    task = Task(id="sum", query="Ann has 3 boxes of 4 eggs. How many eggs?", reference="A: 12")
    padding = "".join(f"And {n}+{n}={2 * n}.\n" for n in range(40))
    texts = {
        "wrong": f"{padding}So 3*4=13.\nA: 13",
        "brief": "A: 7",
        "hidden": "<think>Easy.</think>3*4=13\nA: 13",
    }
    with Jury.from_config({"preset": "macrm-vanilla-4"}) as jury:
        for trace in jury.score(
            task, [Response(id=name, text=text) for name, text in texts.items()]
        ):
            added = {
                name: trace.reward.components[name]
                for name in ("sound", "efficient", "diverse", "enhanced")
            }
            # no contrast can be made of a wrong answer
            assert added == {
                **dict.fromkeys(added, 0.0),
                "enhanced": None,
            }


def test_each_signal_adds_its_component() -> None:
    plain, ranked, embedded = (components(f"macrm-{signal}-2") for signal in GLOBAL_PRESET_SIGNALS)
    assert ranked.keys() - plain.keys() == {"ranker"}
    assert embedded.keys() - plain.keys() == {"similarity"}


def test_settings_next_to_a_preset_are_added() -> None:
    config = parse_config_mapping(
        {
            "preset": "macrm-vanilla-4",
            "evaluators": ["maths.length"],
            "derivers": [{"use": "synthesizer", "params": {"each": 3}}],
            "components": {
                "concise": {
                    "combiner": "product",
                    "inputs": {"a": "maths.accuracy", "l": "maths.length"},
                }
            },
            "reward": {"accuracy": 2.0, "concise": 0.5},
            "gates": [{"kind": "format", "below": 0.5}],
        }
    )
    assert config.evaluators[0].use == "maths.length"
    assert [use.params for use in config.derivers] == [{"each": 3}], (
        "what is stated takes the place of the preset's"
    )
    assert set(config.components) == {"enhanced", "efficient", "diverse", "sound", "concise"}
    assert (config.reward["accuracy"], config.reward["concise"], config.reward["format"]) == (
        2.0,
        0.5,
        0.5,
    )
    assert len(config.gates) == 1


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.exhaustive) for name in WITHOUT_MODELS[:-2]),
        *WITHOUT_MODELS[-2:],
    ],
)
def test_presets_without_a_model_reward_a_right_solution_above_a_wrong_one(name: str) -> None:
    task = Task(id="sum", query="Ann has 3 boxes of 4 eggs. How many eggs?", reference="A: 12")
    texts = {"right": "There are 3*4=12 eggs.\nA: 12", "wrong": "There are 3+4=7 eggs.\nA: 7"}
    with Jury.from_config({"preset": name}) as jury:
        right, wrong = jury.score(
            task, [Response(id=name, text=text) for name, text in texts.items()]
        )
    assert right.reward.value is not None
    assert wrong.reward.value is not None
    assert right.reward.value > wrong.reward.value
    assert (right.reward.status, wrong.reward.status) == ("ok", "ok")


@pytest.mark.parametrize(
    ("preset", "message"),
    [
        ("macrm-vanila-3", "key preset: .*did you mean macrm-vanilla-3"),
        ("nothing", "key preset: .*there are macrm-vanilla-2"),
        (5, "key preset"),
        ({"name": "macrm-emb-2", "embeder": "x"}, "key preset.embeder"),
        (
            {"name": "macrm-vanilla-2", "embedder": "x"},
            "key preset.embedder: is of no use to macrm-vanilla-2",
        ),
        ({"name": "macrm-emb-2", "ranker": "x"}, "key preset.ranker: is of no use to macrm-emb-2"),
    ],
)
def test_an_unknown_preset_is_refused_with_the_nearest_name(preset: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config_mapping({"preset": preset})


def test_the_config_schema_accepts_presets() -> None:
    assert faults({"preset": "macrm-vanilla-2"}, config_file_schema()) == []
    assert (
        faults(
            {"preset": {"name": "macrm-emb-2", "embedder": "gguf:small.gguf"}}, config_file_schema()
        )
        == []
    )
    assert faults({"evaluators": ["maths.accuracy"]}, config_file_schema()) == []
    assert faults({"reward": {}}, config_file_schema())
