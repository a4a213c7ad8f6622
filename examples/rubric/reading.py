"""Readings as an evaluator: what readings.csv says of a response and a criterion."""

import csv
import hashlib
from pathlib import Path

import jurygraph as jg

FILE = Path(__file__).with_name("readings.csv")


def readings() -> dict[tuple[str, str], tuple[float, str]]:
    """Value and reason by response and criterion."""
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        return {
            (row["response"], row["criterion"]): (float(row["value"]), row["reason"])
            for row in rows
        }


READ = readings()
VERSION = hashlib.sha256(FILE.read_bytes()).hexdigest()[:12]
"""Of the readings: another reading of a response makes other verdicts."""


@jg.evaluator(audience="criterion", layer="human", version=VERSION)
def read(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
    """The value read, on the criterion's scale; what nobody has read abstains."""
    criterion = task.about
    assert isinstance(criterion, jg.Criterion)
    if (response.id, criterion.id) not in READ:
        return jg.Verdict.abstain("nobody has read this response for this criterion")
    value, reason = READ[response.id, criterion.id]
    low, high = criterion.scale or (0.0, 1.0)
    score = (value - low) / (high - low)
    return jg.Verdict(score=score, native=value, scale=(low, high), reason=reason)
