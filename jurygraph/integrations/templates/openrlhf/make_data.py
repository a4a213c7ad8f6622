"""Write train.jsonl for OpenRLHF: the label of a prompt is its task, as JSON. Run `python make_data.py`."""

import json
from pathlib import Path

HERE = Path(__file__).parent


def read_rows() -> list[dict[str, str]]:
    lines = (HERE / "tasks.jsonl").read_text("utf-8").splitlines()
    return [{"input": json.loads(line)["query"], "label": line} for line in lines]


if __name__ == "__main__":
    text = "".join(json.dumps(row) + "\n" for row in read_rows())
    (HERE / "train.jsonl").write_text(text, encoding="utf-8")
