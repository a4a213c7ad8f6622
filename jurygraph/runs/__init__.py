"""A run is a folder: what was asked and how it is decided, then one trace a response, each chained to the last."""

from jurygraph.runs.export import export_csv, export_jsonl
from jurygraph.runs.forecast import Forecast, forecast
from jurygraph.runs.manifest import Extent, Manifest, write_whole
from jurygraph.runs.records import UNSEEN, Record, Recovered
from jurygraph.runs.run import Run
from jurygraph.runs.session import Session
from jurygraph.runs.summary import AgentRow, Summary

__all__ = [
    "UNSEEN",
    "AgentRow",
    "Extent",
    "Forecast",
    "Manifest",
    "Record",
    "Recovered",
    "Run",
    "Session",
    "Summary",
    "export_csv",
    "export_jsonl",
    "forecast",
    "write_whole",
]
