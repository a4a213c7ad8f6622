"""Agreement of judges with people: what a judge says of responses that people have labelled."""

from jurygraph.studies.judge.report import GATE_NAMES, gate_values, report
from jurygraph.studies.judge.study import Judge, JudgedRow, JudgeStudy, join_labels, read_judgements, read_labels

__all__ = [
    "GATE_NAMES",
    "Judge",
    "JudgeStudy",
    "JudgedRow",
    "gate_values",
    "join_labels",
    "read_judgements",
    "read_labels",
    "report",
]
