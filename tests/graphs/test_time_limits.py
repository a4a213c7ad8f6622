"""Evaluators and derivers that hang: each call ends as a named failure, the others go on, and the process exits."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph

import jurygraph as jg
from jurygraph.agents.roles import CODE_TIME_LIMIT_SECONDS
from jurygraph.graphs.time_limits import (
    MAX_HANGING_THREADS,
    OWN_MODEL_TIMEOUT_SECONDS,
    CallTimeLimits,
    UserCallThreads,
    time_limit,
)
from jurygraph.schema import CallsConfig, Response, TaskView, Verdict
from tests.rows import all_rows
from tests.virtual_time import HeldLoop, held_time, pass_time

HERE = "tests.graphs.test_time_limits"
LIMIT = 0.3
TASK = jg.Task(id="t", query="?")
PATIENCE = 60  # seconds that a test waits before it calls a process stuck
RELEASE = threading.Event()
HANGING = threading.Event()


@pytest.fixture(autouse=True)
def held_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no time pass but by `pass_time`, and let what hangs in a thread end after each test."""
    monkeypatch.setattr("jurygraph.concurrency.new_event_loop", HeldLoop)
    monkeypatch.setattr("jurygraph.graphs.time_limits.monotonic", held_time)
    monkeypatch.setattr("jurygraph.concurrency.monotonic", held_time)
    RELEASE.clear()
    HANGING.clear()
    yield
    RELEASE.set()


def hang() -> None:
    """Hang in a thread while more time passes than any limit of the test."""
    HANGING.set()
    pass_time(2 * LIMIT)
    RELEASE.wait(PATIENCE)


def respond(*texts: str) -> list[Response]:
    return [Response(id=f"r{number}", text=text) for number, text in enumerate(texts)]


def score(*texts: str, **use: Any) -> list[Verdict]:
    """The verdicts on responses with these texts, by one evaluator."""
    with jg.Jury.from_config({"evaluators": [{"name": "it", "timeout": LIMIT, **use}]}) as jury:
        return [trace.verdicts[0] for trace in jury.score(TASK, respond(*texts))]


def outcome(verdict: Verdict) -> Any:
    return verdict.failure.kind if verdict.failure else verdict.score


def hangs(task: TaskView, response: Response) -> float:
    if response.text == "hang":
        hang()
    if response.text == "slow":
        pass_time(2 * LIMIT)
    return 1.0


async def waits(task: TaskView, response: Response) -> float:
    if response.text == "hang":
        pass_time(2 * LIMIT)
        await asyncio.Event().wait()
    if response.text == "slow":
        pass_time(2 * LIMIT)  # never awaits, so nothing can cancel it
    return 1.0


async def clings(task: TaskView, response: Response) -> float:
    """Catch every cancellation and go on."""
    while response.text == "hang":
        try:
            pass_time(1.0)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue
    return 1.0


class State(TypedDict, total=False):
    text: str
    score: float


def score_node(state: State) -> State:
    if state["text"] == "hang":
        hang()
    return {"score": 1.0}


GRAPH = StateGraph(State)
GRAPH.add_node("node", score_node)
GRAPH.add_edge(START, "node")
GRAPH.add_edge("node", END)
graph = GRAPH.compile()


class HangingDeriver(jg.Deriver):
    gives = "words"

    def derive(self, inputs: jg.DeriverInput) -> jg.Material:
        hang()
        return jg.Material(name="words", data=1)


@jg.evaluator(layer="check", needs=["words"])
def reads_words(task: TaskView, response: Response, words: jg.Material) -> float:
    return 1.0


@pytest.mark.parametrize("name", ["hangs", "waits", "clings"])
def test_a_call_that_hangs_is_a_named_failure_and_the_others_are_scored(name: str) -> None:
    verdicts = score("fine", "hang", "fine", "hang", "fine", use=f"{HERE}.{name}")
    assert [outcome(verdict) for verdict in verdicts] == [1.0, "time-limit", 1.0, "time-limit", 1.0]
    assert "'it' ran past its time limit of 0.3 s" in verdicts[1].reason


def test_a_graph_that_hangs_is_a_named_failure_and_its_step_that_never_ended_has_no_duration() -> (
    None
):
    with jg.Jury.from_config(
        {"evaluators": [{"use": f"{HERE}.graph", "name": "it", "timeout": LIMIT}]}
    ) as jury:
        verdicts = [
            jury.score(TASK, respond(text))[0].verdicts[0] for text in ("fine", "hang", "fine")
        ]
    assert [outcome(verdict) for verdict in verdicts] == [1.0, "time-limit", 1.0]
    assert "'it' ran past its time limit of 0.3 s" in verdicts[1].reason
    fine, hung, _ = (verdict.steps for verdict in verdicts)
    assert [(step.name, step.duration is None) for step in (*fine, *hung)] == [
        ("node", False),
        ("node", True),
    ]


def test_a_response_cannot_escape_a_penalty_by_provoking_a_time_limit() -> None:
    config = {
        "evaluators": [
            {"use": f"{HERE}.hangs", "name": "bad", "timeout": LIMIT},
            {"use": f"{HERE}.waits", "name": "ok"},
        ],
        "reward": {"bad": -0.1, "ok": 1.0},
    }
    with jg.Jury.from_config(config) as jury:
        traces = jury.score(
            TASK, [Response(id="honest", text="fine"), Response(id="hostile", text="slow")]
        )
    assert [trace.reward.value for trace in traces] == [0.9, 0.9]


@pytest.mark.parametrize("name", ["hangs", "waits"])
def test_a_late_result_is_not_accepted(name: str) -> None:
    assert [outcome(verdict) for verdict in score("slow", "fine", use=f"{HERE}.{name}")] == [
        "time-limit",
        1.0,
    ]


def test_a_deriver_has_a_limit_too() -> None:
    config = {
        "evaluators": [f"{HERE}.reads_words"],
        "derivers": [{"use": f"{HERE}.HangingDeriver", "timeout": LIMIT}],
    }
    with jg.Jury.from_config(config) as jury:
        (trace,) = jury.score(TASK, respond("fine"))
    assert trace.material[0].failure is not None
    assert trace.material[0].failure.kind == "time-limit"


@pytest.mark.parametrize("name", ["hangs", "graph"])
def test_an_evaluator_that_keeps_hanging_is_not_called_any_more(name: str) -> None:
    with jg.Jury.from_config(
        {"evaluators": [{"use": f"{HERE}.{name}", "name": "it", "timeout": LIMIT}]}
    ) as jury:
        for _ in range(MAX_HANGING_THREADS):
            jury.score(TASK, respond("hang"))
        RELEASE.set()
        (trace,) = jury.score(TASK, respond("fine"))
    failure = trace.verdicts[0].failure
    assert failure is not None
    assert (failure.cause, failure.kind) == ("infrastructure", "hanging")
    assert f"it is not called any more: {MAX_HANGING_THREADS} of its calls" in failure.message


class OwnTimeout(jg.Evaluator):
    name, timeout = "own", 5.0

    def answer(self, inputs: jg.EvaluatorInput) -> float:
        return 1.0


class UsesModel(OwnTimeout):
    timeout, uses_model = None, True


class Inline(OwnTimeout):
    timeout, runs_inline = None, True


@all_rows(
    ("use", "calls", "limit"),
    [
        (f"{HERE}.hangs", {}, CODE_TIME_LIMIT_SECONDS),
        (f"{HERE}.waits", {}, CODE_TIME_LIMIT_SECONDS),
        (f"{HERE}.graph", {}, OWN_MODEL_TIMEOUT_SECONDS),
        (f"{HERE}.OwnTimeout", {}, 5.0),
        ({"use": f"{HERE}.OwnTimeout", "timeout": 7}, {}, 7.0),
        (f"{HERE}.Inline", {}, None),
        (f"{HERE}.UsesModel", {}, None),
        (f"{HERE}.UsesModel", {"deadline": 30}, 30 + CODE_TIME_LIMIT_SECONDS),
        ("maths.format", {}, None),
        ({"use": "maths.format", "timeout": 7}, {}, 7.0),
    ],
)
def test_the_limit_of_an_evaluator(use: Any, calls: dict[str, Any], limit: float | None) -> None:
    with jg.Jury.from_config({"evaluators": [use]}) as jury:
        (evaluator,) = jury.evaluators.values()
        assert time_limit(evaluator, CallsConfig(**calls)) == limit


def test_scoring_that_is_cancelled_does_not_wait_for_a_call_that_hangs() -> None:
    async def scene() -> None:
        with jg.Jury.from_config({"evaluators": [f"{HERE}.hangs"]}) as jury:
            scoring = asyncio.create_task(jury.ascore(TASK, respond("hang", "fine")))
            await asyncio.to_thread(HANGING.wait, PATIENCE)
            scoring.cancel()
            await scoring

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(scene())


async def cling() -> None:
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


def test_a_call_that_clings_is_left_alone_if_it_is_cancelled_twice() -> None:
    """The second cancellation comes while the first is waited for; a loop that is closed then would wait for ever."""

    async def scene() -> set[asyncio.Task[Any]]:
        limits = CallTimeLimits("it", CODE_TIME_LIMIT_SECONDS, UserCallThreads())
        waiting = asyncio.create_task(limits.await_result(cling(), ()))
        for _ in range(2):
            for _ in range(3):  # until it waits
                await asyncio.sleep(0)
            waiting.cancel()
        await asyncio.wait({waiting})
        return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type]

    with closing(asyncio.new_event_loop()) as loop:
        assert loop.run_until_complete(scene()) == set()


SCRIPT = """
import asyncio, sys, time
import jurygraph as jg
from tests.graphs import test_time_limits as scene
use = {"use": f"{scene.HERE}.%s", "name": "it", "timeout": 0.3}
with jg.Jury.from_config({"evaluators": [use]}) as jury:
    for run in (jury.score, lambda *group: asyncio.run(jury.ascore(*group))):
        (trace,) = run(scene.TASK, scene.respond("hang"))
        print(trace.verdicts[0].failure.kind)
"""


@pytest.mark.parametrize("name", ["hangs", "clings"])
@pytest.mark.exhaustive
def test_the_process_exits_while_a_call_hangs(name: str) -> None:
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT % name],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=Path(__file__).parents[2],
    )
    assert ended.stdout.split() == ["time-limit"] * 2, ended.stderr
    assert "Traceback" not in ended.stderr
    assert time.monotonic() - began < PATIENCE / 2
