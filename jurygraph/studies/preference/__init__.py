"""Accuracy of a judge on preference sets (RewardBench, JudgeBench), measured from a stored run."""

from jurygraph.studies.preference.outcomes import Comparisons, read_comparisons
from jurygraph.studies.preference.study import PreferenceReport, report

__all__ = ["Comparisons", "PreferenceReport", "read_comparisons", "report"]
