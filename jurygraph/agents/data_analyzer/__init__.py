"""MACRM's Data Analyzer (§3): statistics of rewards over training steps, and tests for reward hacking."""

from jurygraph.agents.data_analyzer.analyzer import MIN_STEPS, Alert, Analyzer
from jurygraph.agents.data_analyzer.series import TrainingStep

__all__ = ["MIN_STEPS", "Alert", "Analyzer", "TrainingStep"]
