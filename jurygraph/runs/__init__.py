"""Runs: folders with a ledger of surveys, decisions, calls and traces, each record chained to the one before it.

Public names are imported on first use, so that a command that only prints a line does not load numpy and the like.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jurygraph.runs.integrity.verification import verify
    from jurygraph.runs.reports.comparison import Comparison, compare
    from jurygraph.runs.run import Run
    from jurygraph.runs.workflows.rescoring import rescore
    from jurygraph.runs.workflows.session import ScoringSession

__all__ = ["Comparison", "Run", "ScoringSession", "compare", "rescore", "verify"]

_MODULES = {
    "Comparison": "figures.comparison",
    "Run": "run",
    "Session": "making.session",
    "compare": "figures.comparison",
    "rescore": "making.rescoring",
    "verify": "integrity.verification",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
