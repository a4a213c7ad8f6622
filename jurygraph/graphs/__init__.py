"""State machines: prepare turns a task into a plan, score turns a plan and responses into rewards, and annotate, a part
of prepare that can also run alone, adds a graph to a rubric."""

from typing import Literal


def draw(name: Literal["prepare", "score", "annotate"]) -> str:
    """Return the state machine as a Mermaid diagram."""
    from jurygraph.graphs import annotate, prepare, score

    machines = {"prepare": prepare, "score": score, "annotate": annotate}
    return str(machines[name].build().get_graph().draw_mermaid())
