"""The purpose of rewards, and when two names mean the same judge."""

import pytest

from jurygraph.errors import InputError
from jurygraph.schema import Purpose, PurposeConfig
from jurygraph.schema.trace import determine_purpose
from tests.rows import all_rows


@all_rows(
    ("judge", "reward_judge", "same"),
    [
        ("openai/gpt-5-mini", "gpt-5-mini", True),
        ("openrouter/Qwen/Qwen3-8B", "qwen3-8b", True),
        ("openai-compatible:http://127.0.0.1:8000/v1#qwen3-8b", "Qwen3-8B", True),
        ("models/judge.gguf", "judge.gguf", True),
        ("qwen3-8b", "qwen3-32b", False),
        ("gpt-5", "gpt-5-mini", False),
        ("llama3:8b", "llama3:70b", False),
    ],
)
def test_a_judge_is_recognized_without_its_provider(
    judge: str, reward_judge: str, same: bool
) -> None:
    purpose = determine_purpose(
        PurposeConfig(kind="evaluation", reward_judges=(reward_judge,)), [judge]
    )
    assert purpose is not None
    assert purpose.same_judge is same


def test_rewards_for_training_are_the_default_and_have_no_purpose() -> None:
    assert PurposeConfig().kind == "reward"
    assert determine_purpose(PurposeConfig(), ["qwen3-8b"]) is None


def test_an_evaluation_names_its_judge_and_the_judges_of_training() -> None:
    config = PurposeConfig(kind="evaluation", reward_judges=("b/qwen3-8b", "a", "a"))
    assert config.reward_judges == ("a", "b/qwen3-8b")
    expected = Purpose(
        kind="evaluation", judge="qwen3-32b", reward_judges=("a", "b/qwen3-8b"), same_judge=False
    )
    assert determine_purpose(config, ["qwen3-32b"]) == expected
    same = determine_purpose(config, ["Qwen3-8B"])
    assert same is not None
    assert same.same_judge
    assert same.description.endswith("by Qwen3-8B, which is one of them (allowed by the config)")
    none = determine_purpose(config, [])
    assert none is not None
    assert not none.same_judge


def test_reward_judges_are_required_for_an_evaluation_and_refused_otherwise() -> None:
    with pytest.raises(InputError, match=r"or write \[\] where no model did"):
        PurposeConfig(kind="evaluation")
    with pytest.raises(InputError, match="belongs to an evaluation"):
        PurposeConfig(reward_judges=("a",))
    assert PurposeConfig(kind="evaluation", reward_judges=()).reward_judges == ()
