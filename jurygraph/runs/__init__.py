"""A run is a folder: a ledger of what was asked, decided and answered, each record chained to the one before it.

Its public names load when they are first used: a command that only prints a line need not load the arithmetic.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jurygraph.runs.figures.comparison import Comparison, compare
    from jurygraph.runs.integrity.verification import verify
    from jurygraph.runs.making.rescoring import rescore
    from jurygraph.runs.making.session import Session
    from jurygraph.runs.run import Run

__all__ = ["Comparison", "Run", "Session", "compare", "rescore", "verify"]

_HOMES = {
    "Comparison": "figures.comparison",
    "Run": "run",
    "Session": "making.session",
    "compare": "figures.comparison",
    "rescore": "making.rescoring",
    "verify": "integrity.verification",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
