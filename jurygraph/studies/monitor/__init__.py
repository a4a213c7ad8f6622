"""The Data Analyzer applied to a stored run, or to the steps of a trainer."""

from jurygraph.studies.monitor.watch import Watch, WatchReport

__all__ = ["Watch", "WatchReport"]
