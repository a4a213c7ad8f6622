"""The 30 lines of TravelPlanner's training set that the tests read."""

import gzip
import json
from pathlib import Path
from typing import Any

TRAIN = Path(__file__).parents[1] / "data" / "travelplanner" / "train.jsonl.gz"


def lines() -> dict[str, dict[str, Any]]:
    """The lines of the file by the numbers in their ids."""
    with gzip.open(TRAIN, "rt", encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    return {line["id"].rpartition("-")[2]: line for line in found}
