"""The same responses get the same bits through every interface and `jurygraph score`."""

import asyncio
import json
from pathlib import Path
from typing import Any

import jurygraph as jg
from jurygraph.integrations import openrlhf
from jurygraph.integrations.lazy_jury import find_shared_jury
from jurygraph.integrations.trl import reward_function
from jurygraph.integrations.verl import compute_score
from tests.command import run_command

CONFIG = (
    "evaluators: [maths.accuracy, maths.format, maths.repetition, maths.length]\n"
    "reward: {accuracy: 1.0, format: 0.3, repetition: -0.7, length: 0.1}\n"
)
TASKS = {"sum": ("What is 17 + 25?", "42"), "third": ("What is 1 / 3?", "1/3")}
TEXTS = [
    "<think>17 + 25 = 42</think><answer>42</answer>",
    "It is one third, one third, one third: 1/3",
    "<answer>\\frac{1}{3}</answer>",
    "",
]


def test_every_interface_gives_the_same_bits(tmp_path: Path) -> None:
    config = tmp_path / "jury.yaml"
    config.write_text(CONFIG, encoding="utf-8")
    samples = [(task, text) for task in TASKS for text in TEXTS]
    rewards = {
        "trl": by_trl(config, samples),
        "verl": by_verl(config, samples),
        "openrlhf": by_openrlhf(config, samples),
        "score": by_command(tmp_path, samples),
    }
    find_shared_jury(config).close()
    for name, values in rewards.items():
        assert [value.hex() for value in values] == [value.hex() for value in rewards["score"]], (
            name
        )
    assert len(set(rewards["score"])) > 3


def by_trl(config: Path, samples: list[tuple[str, str]]) -> Any:
    function = reward_function(config, reference="reference")
    prompts = [TASKS[task][0] for task, _ in samples]
    columns = {
        "reference": [TASKS[task][1] for task, _ in samples],
        "task_id": [task for task, _ in samples],
    }
    texts = [text for _, text in samples]
    values = asyncio.run(function.func(*function.args, prompts, texts, **columns))
    function.close()
    return values


def by_verl(config: Path, samples: list[tuple[str, str]]) -> list[float]:
    async def score() -> list[Any]:
        calls = []
        for task, text in samples:
            query, reference = TASKS[task]
            extra = {"task_id": task, "query": query}
            calls.append(compute_score("maths", text, reference, extra, config=config))
        return await asyncio.gather(*calls)

    return [scored["score"] for scored in asyncio.run(score())]


def by_openrlhf(config: Path, samples: list[tuple[str, str]]) -> Any:
    prompts = [TASKS[task][0] for task, _ in samples]
    queries = [prompt + text for prompt, (_, text) in zip(prompts, samples, strict=True)]
    labels = [json.dumps({"id": task, "reference": TASKS[task][1]}) for task, _ in samples]
    return openrlhf.reward_func(queries, prompts, labels, config=config)["rewards"]


def by_command(folder: Path, samples: list[tuple[str, str]]) -> list[float]:
    lines = []
    for task, (query, reference) in TASKS.items():
        responses = [{"id": f"{task}/{number}", "text": text} for number, text in enumerate(TEXTS)]
        line = {"id": task, "query": query, "reference": reference, "responses": responses}
        lines.append(json.dumps(line) + "\n")
    (folder / "tasks.jsonl").write_text("".join(lines), encoding="utf-8")
    scored = run_command(
        "score", folder / "tasks.jsonl", "--config", folder / "jury.yaml", "--out", folder / "run"
    )
    assert scored.code == 0, scored.err
    with jg.Run.open(folder / "run") as run:
        values = {trace.response_id: trace.reward.value for trace in run.traces()}
    found = [values[f"{task}/{number}"] for task in TASKS for number in range(len(TEXTS))]
    return [value for value in found if value is not None]
