"""The real TRL trains on rewards of which some failed: no sibling's advantage changes, alone and beside a function.

Needs trl and torch, which no extra of jurygraph has: `pip install trl torch`, then `pytest -m heavy` on this file.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jurygraph.aggregation import advantages
from jurygraph.integrations.trl import reward_functions
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


def train(kind: str, folder: Path, beside: list[Any], **settings: Any) -> Any:
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
    functions = reward_functions(CONFIG, beside=beside, record=folder / "run")
    trainer = getattr(trl, f"{kind}Trainer")(
        model=model,
        processing_class=tokenizer,
        reward_funcs=functions,
        args=arguments,
        train_dataset=datasets.Dataset.from_dict({"prompt": list(QUESTIONS) * 3}),
    )
    try:
        trainer.train()
    finally:
        functions[0].close()  # type: ignore[attr-defined]
    return trainer


def expected(kind: str, with_form: bool, settings: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Return the advantages that the judged samples have when the failed ones had never been sampled."""
    rewards = np.array([JUDGED[question] for question in QUESTIONS], dtype=np.float64)
    parts = [rewards, np.where(np.isnan(rewards), np.nan, np.tile(FORM, (2, 1)))][: 1 + with_form]
    groups = np.repeat([0, 1], SIZE)
    if settings.get("multi_objective_aggregation") == "normalize_then_sum":
        scaled = sum(advantages(part.ravel(), groups, epsilon=1e-4) for part in parts)
        return advantages(scaled, epsilon=1e-4)
    total = sum(part.ravel() for part in parts)
    if kind == "RLOO":
        return advantages(total, groups, normalize="leave-one-out")
    scale = settings.get("scale_rewards", "group")
    if scale == "group":
        return advantages(total, groups, epsilon=1e-4)
    centred = advantages(total, groups, normalize="none")
    return centred / (np.nanstd(total, ddof=1) + 1e-4) if scale == "batch" else centred


@pytest.mark.parametrize("with_form", [False, True])
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
    kind: str, settings: dict[str, Any], with_form: bool, tmp_path: Path
) -> None:
    trainer = train(kind, tmp_path, [form] if with_form else [], **settings)
    logged = np.array(trainer._logs["advantages"])[-2 * SIZE :]
    order = list(trainer._logs["prompt"])[-2 * SIZE :]
    awaited = np.nan_to_num(expected(kind, with_form, settings)).reshape(2, SIZE)
    rows = [awaited[QUESTIONS.index(order[0])], awaited[QUESTIONS.index(order[SIZE])]]
    assert trainer.state.global_step == 3
    assert logged == pytest.approx(np.concatenate(rows), abs=1e-4)
    assert trainer.state.log_history[0]["jury/failed"] == 0.25
