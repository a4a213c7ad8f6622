"""State machines: prepare turns a task into a plan, score turns a plan and responses into rewards, and annotate, a part
of prepare that can also run alone, adds a graph to a rubric."""

from importlib import import_module
from typing import Literal


def draw(name: Literal["prepare", "score", "annotate"]) -> str:
    """Return the state machine as a Mermaid diagram."""
    machine = import_module(f"jurygraph.graphs.{name}_graph")  # lazily: LangGraph is slow to import
    return str(machine.build().get_graph().draw_mermaid())
