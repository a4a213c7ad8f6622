"""Train with TRL on the rewards of jury.yaml: `pip install trl`, then `python train.py`."""

import json
from pathlib import Path
from typing import Any

from jurygraph.integrations.trl import reward_functions

HERE = Path(__file__).parent
POLICY = "Qwen/Qwen2.5-0.5B-Instruct"


def read_rows() -> list[dict[str, Any]]:
    """The data set: a prompt, and the columns that the reward function reads."""
    tasks = [json.loads(line) for line in (HERE / "tasks.jsonl").read_text("utf-8").splitlines()]
    return [
        {
            "prompt": [{"role": "user", "content": task["query"]}],
            "task_id": task["id"],
            "reference": task.get("reference"),
            # lines of text, a criterion each; or as in a file of tasks
            "rubric": task.get("rubric"),
        }
        for task in tasks
    ]


def brief(completions: list[Any], **columns: Any) -> list[float]:
    """A reward of your own; it is wrapped, so that no failed judge counts as 0."""
    return [1.0 if len(messages[-1]["content"]) < 2000 else 0.0 for messages in completions]


def make_functions() -> list[Any]:
    # what is scored is stored: `jurygraph show run --label step=312`, and `explain`
    return reward_functions(
        HERE / "jury.yaml",
        beside=[brief],
        reference="reference",
        rubric="rubric",
        record=HERE / "run" / "{rank}",
    )


def main() -> None:
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    rows = read_rows()
    functions = make_functions()
    # a row that would end the training ends it now; a reference that may be wrong is only logged
    functions[0].check(rows)
    trainer = GRPOTrainer(
        model=POLICY,
        reward_funcs=functions,
        args=GRPOConfig(output_dir=str(HERE / "policy"), num_generations=8),
        train_dataset=Dataset.from_list(rows),
    )
    trainer.train()


if __name__ == "__main__":
    main()
