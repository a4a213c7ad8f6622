"""Write train.parquet for verl: each row has its task in `extra_info`. It needs pandas and pyarrow."""

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def read_rows() -> list[dict[str, Any]]:
    rows = []
    for line in (HERE / "tasks.jsonl").read_text("utf-8").splitlines():
        task = json.loads(line)
        rows.append(
            {
                "data_source": "jurygraph",
                "prompt": [{"role": "user", "content": task["query"]}],
                "reward_model": {"style": "rule", "ground_truth": task.get("reference")},
                "extra_info": {"task_id": task["id"], "task": line},
            }
        )
    return rows


if __name__ == "__main__":
    try:
        import pandas
        import pyarrow  # noqa: F401 - pandas writes Parquet with it
    except ImportError as error:
        sys.exit(f"train.parquet: {error.name} is not installed; pip install 'jurygraph[pandas]'")
    pandas.DataFrame(read_rows()).to_parquet(HERE / "train.parquet")
