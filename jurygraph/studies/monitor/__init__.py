"""The Data Analyzer fed: from a run, or from a trainer."""

from jurygraph.studies.monitor.watch import Watch, WatchReport

__all__ = ["Watch", "WatchReport"]
