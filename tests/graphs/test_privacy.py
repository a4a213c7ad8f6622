"""Nothing leaves the machine, and user code, our graphs and a caller's graph see nothing of each other."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda
from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import get_runtime
from langsmith.utils import tracing_is_enabled

from jurygraph.agents.roles import Evaluator, EvaluatorInput
from jurygraph.graphs.context import GraphContext
from jurygraph.schema import Response, TaskView
from tests.graphs.scripted import score_responses, task

PROJECT = Path(__file__).parents[2]


class Text(TypedDict, total=False):
    text: str
    score: float


SEEN: list[dict[str, Any]] = []


def visible_context() -> dict[str, Any]:
    """Return the context that code can find of the graph that it runs in."""
    found: dict[str, Any] = {"tracing": tracing_is_enabled()}
    try:
        found["config"] = get_config()
    except RuntimeError:
        found["config"] = {}
    try:
        found["context"] = get_runtime().context
    except RuntimeError:
        found["context"] = None
    return found


async def measure(state: Text) -> Text:
    SEEN.append(visible_context())
    return {"score": len(state["text"]) / 10}


def measure_sync(state: Text) -> Text:
    SEEN.append(visible_context())
    return {"score": len(state["text"]) / 10}


def subgraph_of(node: Any) -> Any:
    graph = StateGraph(Text)
    graph.add_node("inner", node)
    graph.add_edge(START, "inner")
    graph.add_edge("inner", END)
    return graph.compile()


SUBGRAPH = subgraph_of(measure)
SYNC_SUBGRAPH = subgraph_of(measure_sync)
RUNNABLE = RunnableLambda(
    lambda state: {"score": len(state["response"].text) / 10, "reason": state["query"]}
)


def invokes(task: TaskView, response: Response) -> float:
    """A plain function that runs a graph of its own."""
    SEEN.append(visible_context())
    return float(SYNC_SUBGRAPH.invoke({"text": response.text})["score"])


async def invokes_later(task: TaskView, response: Response) -> float:
    SEEN.append(visible_context())
    return float((await SUBGRAPH.ainvoke({"text": response.text}))["score"])


QUIET = RunnableLambda(lambda said: said)


class Opens(Evaluator):
    """Calls a Runnable when it is made, opened and closed."""

    def __init__(self) -> None:
        QUIET.invoke("made")

    def open(self) -> None:
        QUIET.invoke("opened")

    def close(self) -> None:
        QUIET.invoke("closed")

    def answer(self, inputs: EvaluatorInput) -> float:
        return 1.0


@pytest.mark.parametrize("name", ["SUBGRAPH", "SYNC_SUBGRAPH", "invokes", "invokes_later"])
def test_a_nested_graph_sees_nothing_of_the_machine_around_it(name: str) -> None:
    SEEN.clear()
    (trace,) = score_responses(
        {"evaluators": [f"{__name__}.{name}"]}, task(), Response(id="a", text="abcde")
    )
    assert trace.reward.value == 0.5
    assert SEEN
    for seen in SEEN:
        assert not seen["tracing"]
        assert not isinstance(seen["context"], GraphContext)
        assert "plan" not in str(seen["config"])
        assert seen["config"].get("metadata", {}).get("langgraph_node") in (None, "inner")
        names = {
            key for key in seen["config"].get("configurable", {}) if key.startswith("__pregel")
        }
        assert "jurygraph" not in str([seen["config"]["configurable"][key] for key in names])


class Listens(BaseCallbackHandler):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self.heard.append(str(kwargs.get("name")))


class Ear(BaseHTTPRequestHandler):
    heard: list[str]

    def do_GET(self) -> None:
        self.server.heard.append(self.path)  # type: ignore[attr-defined]
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_POST = do_PATCH = do_GET

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def listening_server() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Ear)
    server.heard = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


SCENE = """
from langchain_core.tracers.langchain import wait_for_all_tracers
import jurygraph as jg
from jurygraph.schema import Response, Task

config = {{
    "evaluators": [
        "tests.graphs.test_privacy.SUBGRAPH", "tests.graphs.test_privacy.RUNNABLE",
        "tests.graphs.test_privacy.invokes", "tests.graphs.test_privacy.invokes_later",
        "tests.graphs.test_privacy:Opens",
    ],
    "derivers": ["tests.graphs.scripted:Measure"],
    "reward": {{"SUBGRAPH": 1.0}},
    "langsmith": {langsmith},
}}
with jg.Jury.from_config(config) as jury:
    task = Task(id="t", query="a secret question")
    plan = jury.prepare(task)
    (trace,) = jury.score(task, [Response(id="a", text="secret", data={{"measure": 1.0}})], plan=plan)
    assert trace.reward.status == "ok", trace.reward
    assert all(v.status == "ok" for v in trace.verdicts), trace.verdicts
wait_for_all_tracers()
"""


@pytest.mark.parametrize("langsmith", [False, True])
@pytest.mark.exhaustive
def test_no_request_leaves_the_machine_unless_the_config_asks_for_it(langsmith: bool) -> None:
    with listening_server() as server:
        surroundings = {
            **os.environ,
            "LANGSMITH_TRACING": "true",
            "LANGCHAIN_TRACING_V2": "true",
            "LANGSMITH_API_KEY": "x",
            "LANGSMITH_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }
        scene = SCENE.format(langsmith=langsmith)
        done = subprocess.run(
            [sys.executable, "-c", scene],
            env=surroundings,
            cwd=PROJECT,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        posted = [path for path in server.heard if "runs" in path]  # type: ignore[attr-defined]
        assert bool(posted) == langsmith
        assert bool(server.heard) == langsmith  # type: ignore[attr-defined]
