"""An answering agent that is judged, and revises its draft while a criterion is unmet: a jury as a node of a graph.

python examples/revising_agent/agent.py                             # scripted judge and writer: no key, no server
python examples/revising_agent/agent.py --model openai/gpt-5-mini   # a judge of your own
"""

import argparse
from collections.abc import Callable
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

import jurygraph as jg
from jurygraph.testing import ScriptedJudge

CRITERIA = {"c1": "It says when the parcel comes.", "c2": "It apologises for the delay."}
TASK = jg.Task(id="parcel", query="Ann asks where her parcel is, which was due on Monday.")
MAX_DRAFTS = 4

Writer = Callable[[str, list[str]], str]
"""Writes a draft: from the last one, and the criteria that it does not meet."""


class Letter(TypedDict, total=False):
    """The state of the agent; the jury reads `task`, `drafts` and `round`, and writes `traces`."""

    task: jg.Task
    round: int
    drafts: list[str]
    unmet: list[str]
    traces: list[jg.Trace]


def scripted_writer(draft: str, unmet: list[str]) -> str:
    """Mend the first unmet criterion; a model of yours would be asked here."""
    additions = {"c1": "It comes on Thursday.", "c2": "We are sorry for the delay."}
    return f"{draft} {additions[unmet[0]]}" if unmet else "Dear Ann, your parcel is on its way."


def scripted_judge() -> ScriptedJudge:
    """Answer the criteria by what the letter contains, as a careful reader would."""
    return ScriptedJudge(
        {
            CRITERIA["c1"]: lambda letter: "Thursday" in letter,
            CRITERIA["c2"]: lambda letter: "sorry" in letter,
        }
    )


def build_agent(jury: jg.Jury, write: Writer) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return the graph: write → judge → write …, until no criterion is unmet or the drafts are too many."""

    def draft(state: Letter) -> Letter:
        last = state["drafts"][-1] if state.get("drafts") else ""
        drafts = [write(last, state.get("unmet", []))]
        return {"drafts": drafts, "round": state.get("round", 0) + 1}

    def read_verdicts(state: Letter) -> Letter:
        (trace,) = state["traces"]
        return {"unmet": [verdict.subject for verdict in trace.verdicts if not verdict.met]}

    graph = StateGraph(Letter)
    graph.add_node("write", draft)
    # with `step`, a response is named by its round, as events and records need it: parcel@2/1
    graph.add_node("judge", jury.as_node(responses="drafts", step="round"))
    graph.add_node("read", read_verdicts)
    graph.add_edge(START, "write")
    graph.add_edge("write", "judge")
    graph.add_edge("judge", "read")
    graph.add_conditional_edges("read", lambda state: "write" if state["unmet"] else END)
    return graph.compile()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", default=None, help="the judge's model, instead of a script")
    options = parser.parse_args()
    model = options.model or scripted_judge()
    with jg.Jury(model=model, evaluators=[jg.criteria(list(CRITERIA.values()))]) as jury:
        agent = build_agent(jury, scripted_writer)
        limit: Any = {"recursion_limit": 3 * MAX_DRAFTS}
        for event in agent.stream({"task": TASK}, limit, stream_mode="custom"):
            if event["event"] == "verdict":
                verdict = event["verdict"]
                state = "met  " if verdict["met"] else "unmet"
                print(f"  {state}  {CRITERIA[verdict['subject']]}")
            elif event["event"] == "reward":
                print(f"{event['response_id']}: reward {event['trace']['reward']['value']:.2f}")


if __name__ == "__main__":
    main()
