"""Agreement of judges with people: what a judge says of responses that people have labelled."""

from jurygraph.studies.judge.report import GATE_NAMES, gate_values, report
from jurygraph.studies.judge.study import (
    JUDGED,
    Judge,
    JudgedRow,
    JudgeStudy,
    join_labels,
    read_judgements,
    read_labels,
    status_of,
)

__all__ = [
    "GATE_NAMES",
    "JUDGED",
    "Judge",
    "JudgeStudy",
    "JudgedRow",
    "gate_values",
    "join_labels",
    "read_judgements",
    "read_labels",
    "report",
    "status_of",
]
