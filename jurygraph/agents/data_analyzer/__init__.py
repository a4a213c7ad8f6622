"""MACRM's Data Analyzer (§3): statistics of rewards over training steps, and tests for reward hacking."""

from jurygraph.agents.data_analyzer.analyzer import MAX_ARL, MIN_STEPS, Analyzer, AnalyzerSettings, SeriesSummary
from jurygraph.agents.data_analyzer.diagnosis import Alert
from jurygraph.agents.data_analyzer.step import TrainingStep

__all__ = ["MAX_ARL", "MIN_STEPS", "Alert", "Analyzer", "AnalyzerSettings", "SeriesSummary", "TrainingStep"]
