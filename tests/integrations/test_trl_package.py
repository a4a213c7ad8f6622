"""The real TRL trains on rewards of which some failed: no sibling's advantage changes, alone and beside a function.

Needs trl and torch, which no extra of jurygraph has: `pip install trl torch`, then `pytest -m heavy` on this file.
"""

from pathlib import Path
from types import MethodType
from typing import Any

import numpy as np
import pytest

from jurygraph.integrations.trl import read_trainer_settings, reward_functions
from jurygraph.runs.run import Run
from tests.integrations.trainer_arithmetic import (
    trl_grpo_advantages,
    trl_normalize_then_sum_advantages,
    trl_rloo_advantages,
)
from tests.integrations.trainers import QUESTIONS

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.filterwarnings("ignore"),  # those of torch and transformers
]
SIZE = 4
JUDGED: dict[str, list[float | None]] = {
    QUESTIONS[0]: [0.25, 0.5, None, 1.0],
    QUESTIONS[1]: [None, 0.0, 0.75, 0.25],
}
FORM = [0.5, 0.0, 0.5, 1.0]
"""The rewards of the function beside the jury, by position in a group."""
CONFIG = {"evaluators": ["tests.integrations.test_trl_package.by_position"]}


def _evaluator() -> Any:
    import jurygraph as jg

    @jg.evaluator(scope="group", layer="check")
    def by_position(task: jg.TaskView, responses: list[jg.Response]) -> list[Any]:
        """Score the responses of a group by their positions: what a tiny policy writes has no meaning."""
        verdicts = []
        for response in responses:
            score = JUDGED[task.query][int(response.id.rsplit("/", 1)[1]) - 1]
            failed = jg.Verdict.fail("planted", "the judge is out")
            verdicts.append(failed if score is None else jg.Verdict(score=score))
        return verdicts

    return by_position


by_position = _evaluator()


def form(completions: list[str], **columns: Any) -> list[float]:
    return [FORM[index % SIZE] for index in range(len(completions))]


def make_policy() -> tuple[Any, Any]:
    """Return a tiny Qwen2 from a config, and a tokenizer of whole words."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    words = ["<pad>", "<eos>", "<unk>", *"0123456789+?"]
    model = WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = Whitespace()  # type: ignore[assignment]
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )
    config = Qwen2Config(
        vocab_size=len(words),
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        eos_token_id=1,
        pad_token_id=0,
    )
    return Qwen2ForCausalLM(config), fast


def train(kind: str, folder: Path, functions: str, **settings: Any) -> Any:
    """Return a trainer after three steps of two groups each; its last advantages are in its log."""
    trl = pytest.importorskip("trl", reason="needs trl: pip install trl torch")
    datasets = pytest.importorskip("datasets")
    model, tokenizer = make_policy()
    arguments = getattr(trl, f"{kind}Config")(
        output_dir=str(folder / "out"),
        per_device_train_batch_size=2 * SIZE,
        num_generations=SIZE,
        max_completion_length=4,
        max_steps=3,
        logging_steps=1,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        shuffle_dataset=False,
        disable_tqdm=True,
        **settings,
    )
    beside = [form] if functions == "wrapped" else []
    failed = "none" if functions == "careless" else "auto"
    rewards = reward_functions(CONFIG, beside=beside, failed=failed, record=folder / "run")
    trainer = getattr(trl, f"{kind}Trainer")(
        model=model,
        processing_class=tokenizer,
        reward_funcs=[*rewards, form] if functions == "careless" else rewards,
        args=arguments,
        train_dataset=datasets.Dataset.from_dict({"prompt": list(QUESTIONS) * 3}),
    )
    try:
        trainer.train()
    finally:
        rewards[0].close()  # type: ignore[attr-defined]
    return trainer


def expected(kind: str, functions: str, settings: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Return the advantages by the arithmetic of `conformance`, for what the functions return."""
    rewards = np.array([JUDGED[question] for question in QUESTIONS], dtype=np.float64)
    forms = np.tile(FORM, (2, 1))
    if functions == "wrapped":
        forms[np.isnan(rewards)] = np.nan
    groups = np.stack([rewards, forms][: 1 if functions == "alone" else 2], axis=2)
    if functions != "careless":  # as if the failed samples had never been
        is_judged = ~np.isnan(rewards)
        parts = _advantages(kind, settings, [groups[index][is_judged[index]] for index in (0, 1)])
        result = np.zeros_like(rewards)
        result[is_judged] = np.concatenate(parts)
        return result
    return np.array(_advantages(kind, settings, list(groups)))


def _advantages(kind: str, settings: dict[str, Any], groups: list[Any]) -> list[Any]:
    if kind == "RLOO":
        return trl_rloo_advantages(groups)
    if "multi_objective_aggregation" in settings:
        return trl_normalize_then_sum_advantages(groups)
    return trl_grpo_advantages(groups, settings["scale_rewards"])


@pytest.mark.parametrize(
    ("name", "has_mask"),
    [
        ("trl.GRPOTrainer", True),
        ("trl.RLOOTrainer", True),
        ("trl.experimental.gmpo.GMPOTrainer", True),
        ("trl.experimental.grpo_with_replay_buffer.GRPOWithReplayBufferTrainer", False),
        ("trl.experimental.sdpo.SDPOTrainer", False),
        ("trl.experimental.online_dpo.OnlineDPOTrainer", False),
    ],
)
def test_a_mask_is_seen_in_the_trainers_that_have_one(name: str, has_mask: bool) -> None:
    """One with a replay buffer is in no release after 1.13: what a release lacks is skipped."""
    module, _, trainer = name.rpartition(".")
    trainer_class = getattr(pytest.importorskip(module), trainer)
    settings = read_trainer_settings(MethodType(print, object.__new__(trainer_class)))
    assert settings.has_trainer_nan_masking is has_mask


@pytest.mark.parametrize("functions", ["alone", "wrapped", "careless"])
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("GRPO", {"scale_rewards": "group"}),
        ("GRPO", {"scale_rewards": "batch"}),
        ("GRPO", {"scale_rewards": "none"}),
        ("GRPO", {"multi_objective_aggregation": "normalize_then_sum"}),
        ("RLOO", {"beta": 0.0, "normalize_advantages": False}),
    ],
)
def test_failed_rewards_change_no_siblings_advantage(
    kind: str, settings: dict[str, Any], functions: str, tmp_path: Path
) -> None:
    """The careless function is not wrapped: TRL then counts a failed judge as 0, as the table says."""
    trainer = train(kind, tmp_path, functions, **settings)
    logged = np.array(trainer._logs["advantages"])[-2 * SIZE :]
    order = list(trainer._logs["prompt"])[-2 * SIZE :]
    awaited = np.nan_to_num(expected(kind, functions, settings)).reshape(2, SIZE)
    rows = [awaited[QUESTIONS.index(order[0])], awaited[QUESTIONS.index(order[SIZE])]]
    with Run.open(tmp_path / "run") as run:
        recorded_steps = {trace.labels["step"] for trace in run.traces()}
    history = trainer.state.log_history
    assert recorded_steps == {entry["step"] for entry in history if "reward" in entry} == {1, 2, 3}
    assert logged == pytest.approx(np.concatenate(rows), abs=1e-4)
    assert trainer.state.log_history[0]["jury/failed"] == 0.25
