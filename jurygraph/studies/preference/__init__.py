"""Accuracy of a judge on preference sets (RewardBench, JudgeBench), measured from a stored run."""

from jurygraph.studies.preference.outcomes import Comparisons, read_comparisons
from jurygraph.studies.preference.study import report

__all__ = ["Comparisons", "read_comparisons", "report"]
