"""The purpose of rewards, and when two names mean the same judge."""

import pytest

from jurygraph.errors import InputError
from jurygraph.schema import Purpose, PurposeConfig
from jurygraph.schema.purpose import is_same_model, purpose_of
from tests.rows import all_rows


@all_rows(
    ("one", "other"),
    [
        ("openai/gpt-5-mini", "gpt-5-mini"),
        ("gpt-5-mini-2025-08-07", "openai/gpt-5-mini"),
        ("openrouter/Qwen/Qwen3-8B", "qwen3-8b"),
        ("openai-compatible:http://127.0.0.1:8000/v1#qwen3-8b", "Qwen3-8B"),
        ("claude-4-sonnet@20250514", "anthropic/claude-4-sonnet"),
        ("models/judge.gguf", "judge.gguf"),
        ("gpt-4-0613", "gpt-4-0125-preview"),
        ("gpt-3.5-turbo-1106", "gpt-3.5-turbo"),
        ("mistral-large-2411", "mistral-large-latest"),
        ("gpt-5-2025-08", "gpt-5"),
        ("bedrock/us.anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet"),
        ("qwen3:latest", " qwen3"),
        ("openai:gpt-5", "gpt-5"),
        ("mistral:latest", "mistral"),
        ("qwen.gguf", "models/qwen"),
        ("gemini-2.5-flash-preview-05-20", "gemini-2.5-flash"),
        ("apac.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4"),
        ("gemini-1.5-pro-002", "gemini-1.5-pro"),
        ("gpt-5:free", "openai/gpt-5/"),
    ],
)
def test_names_with_vendor_date_or_edition_mean_the_same_model(one: str, other: str) -> None:
    assert is_same_model(one, other)


@all_rows(
    ("one", "other"),
    [
        ("qwen3-8b", "qwen3-32b"),
        ("gpt-5", "gpt-5-mini"),
        ("judge-2", "judge-1"),
        ("llama3:8b", "llama3:70b"),
        ("qwen:7b", "mistral:7b"),
        ("qwen.gguf", "mistral.gguf"),
        ("policy-1000", "policy-2000"),
        ("openai/gpt-5/", "openai/claude/"),
    ],
)
def test_names_of_other_models_differ(one: str, other: str) -> None:
    assert not is_same_model(one, other)


def test_rewards_for_training_are_the_default_and_have_no_purpose() -> None:
    assert PurposeConfig().kind == "reward"
    assert purpose_of(PurposeConfig(), "qwen3-8b") is None


def test_an_evaluation_names_its_judge_and_the_judges_of_training() -> None:
    config = PurposeConfig(kind="evaluation", reward_judges=("b/qwen3-8b", "a", "a"))
    assert config.reward_judges == ("a", "b/qwen3-8b")
    expected = Purpose(kind="evaluation", judge="qwen3-32b", reward_judges=("a", "b/qwen3-8b"), same_judge=False)
    assert purpose_of(config, "qwen3-32b") == expected
    same = purpose_of(config, "Qwen3-8B")
    assert same is not None
    assert same.same_judge
    assert same.description.endswith("by Qwen3-8B, which is one of them (allowed by the config)")
    none = purpose_of(config, None)
    assert none is not None
    assert not none.same_judge


def test_reward_judges_are_required_for_an_evaluation_and_refused_otherwise() -> None:
    with pytest.raises(InputError, match=r"or write \[\] where no model did"):
        PurposeConfig(kind="evaluation")
    with pytest.raises(InputError, match="belongs to an evaluation"):
        PurposeConfig(reward_judges=("a",))
    assert PurposeConfig(kind="evaluation", reward_judges=()).reward_judges == ()
