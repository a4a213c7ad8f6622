"""Makes the folder of the example: a copy of its files, and tasks.jsonl with two trips, a conversation and a log.

    python examples/investigator/prepare.py FOLDER

The conversation is one of `examples/agent`. The log is made here, from a seed, since 300 KB of it say little.
"""

import gzip
import json
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CONVERSATIONS = HERE.parent / "agent" / "tasks.jsonl.gz"
CONVERSATION = "airline-2/1"
COPIED = ("jury.yaml", "without_tools.yaml", "prices.py", "prices.csv", "scripted_judge.py")
RULE = (
    'The agent keeps this rule of its policy where it changes a booking: "if you make a tool call, you should not '
    'respond to the user simultaneously".'
)
SEED = 7
LOG_LINES = 4_800
LOSS = "23 of 250 rows dropped, quota of the table exceeded"
"""What the line that matters has in the place of `250 rows written`."""


def main(folder: str) -> None:
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        shutil.copyfile(HERE / name, target / name)
    trips = (HERE / "trips.jsonl").read_text(encoding="utf-8")
    more = [read_conversation(), make_log_task()]
    lines = [json.dumps(task, ensure_ascii=False) + "\n" for task in more]
    (target / "tasks.jsonl").write_text(trips + "".join(lines), encoding="utf-8")


def read_conversation() -> dict[str, Any]:
    with gzip.open(CONVERSATIONS, "rt", encoding="utf-8") as file:
        for task in map(json.loads, file):
            for response in task["responses"]:
                if response["id"] == CONVERSATION:
                    return {
                        "id": task["id"],
                        "query": task["query"],
                        "rubric": {"criteria": [{"id": "policy", "text": RULE, "weight": 1}]},
                        "responses": [response],
                    }
    raise LookupError(f"{CONVERSATIONS} has no response {CONVERSATION}")


def make_log_task() -> dict[str, Any]:
    text = "By its log, the import wrote every row that it read."
    return {
        "id": "import",
        "query": "Import the table of flights, and hand in the log.",
        "rubric": {"criteria": [{"id": "complete", "text": text, "weight": 1}]},
        "responses": [{"id": "import/log", "agent": "importer", "text": "\n".join(log_lines())}],
    }


def log_lines() -> Iterator[str]:
    """Yield the lines of a log, one of which says that rows were lost."""
    draw = random.Random(SEED)
    lost_at = draw.randrange(1_000, LOG_LINES - 1_000)
    second = 0
    for number in range(LOG_LINES):
        second += draw.randrange(1, 5)
        time = f"{second // 3600 + 1:02}:{second // 60 % 60:02}:{second % 60:02}"
        written = LOSS if number == lost_at else "250 rows written"
        worker = draw.randrange(8)
        yield f"{time} worker-{worker} batch {number:05}: 250 rows read, {written}"
    yield f"{time} import finished, {LOG_LINES:,} batches"


if __name__ == "__main__":
    main(*sys.argv[1:])
