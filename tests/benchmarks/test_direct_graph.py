"""The benchmark of the state machines compares LangGraph with the same work: both ways give the same."""

import asyncio
from collections.abc import Sequence
from unittest.mock import patch

import pytest

from benchmarks.direct_graph import DirectGraph
from jurygraph import Jury, Plan, Response, Task, Trace
from jurygraph.graphs import prepare_graph, score_graph
from tests.runs.sample_runs import FULL_CONFIG, make_tasks

pytestmark = pytest.mark.exhaustive

GROUPS = [
    (Task.model_validate(task), [Response.model_validate(one) for one in responses])
    for task in make_tasks(5)
    for responses in [task.pop("responses")]
]


def plans_and_traces(jury: Jury) -> tuple[Sequence[Plan], Sequence[Sequence[Trace]]]:
    async def prepare() -> list[Plan]:
        return [plan async for plan in jury.aprepare_many((task, None) for task, _ in GROUPS)]

    return asyncio.run(prepare()), list(jury.score_many(GROUPS))


def test_nodes_called_directly_give_the_plans_and_traces_of_the_compiled_graphs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Jury.from_config(FULL_CONFIG) as jury:
        compiled = plans_and_traces(jury)
    for module in (prepare_graph, score_graph):
        direct = DirectGraph(module.build())
        monkeypatch.setattr(module, "build", lambda direct=direct: direct)
    with (
        Jury.from_config(FULL_CONFIG) as jury,
        patch("langgraph.pregel.Pregel.ainvoke", side_effect=AssertionError),
    ):
        assert plans_and_traces(jury) == compiled
