"""The state machines: prepare makes a plan from a task, score makes rewards from a plan and its responses."""

from typing import Literal


def draw(name: Literal["prepare", "score"]) -> str:
    """The state machine as a Mermaid diagram."""
    from jurygraph.graphs import prepare, score

    graph = prepare.build() if name == "prepare" else score.build()
    return graph.get_graph().draw_mermaid()
