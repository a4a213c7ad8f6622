"""A jury in other people's graphs: a Runnable, a node and a stream of events, isolated from what is around it."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import TypeAdapter

import jurygraph as jg
from jurygraph.testing import ScriptedJudge
from tests.rows import all_rows

TASK = jg.Task(id="letter", query="Write to Ann.")
LETTERS = ["Dear Ann, please wait.", "Wait."]


def polite_jury(**settings: Any) -> jg.Jury:
    judge = ScriptedJudge({"polite": lambda letter: "please" in letter})
    return jg.Jury(model=judge, evaluators=[jg.criteria(["It is polite."])], **settings)


def rewards(traces: list[jg.Trace]) -> list[float | None]:
    return [trace.reward.value for trace in traces]


def kinds(events: list[jg.JuryEvent]) -> list[str]:
    return [event.event for event in events]


def test_a_runnable_gives_the_traces_of_its_input() -> None:
    with polite_jury() as jury:
        runnable = jury.as_runnable()
        expected = jury.score(TASK, LETTERS)
        messages = [AIMessage(LETTERS[0]), {"id": "short", "text": LETTERS[1]}]
        inputs = [
            {"task": TASK, "responses": LETTERS},
            {"task": TASK.model_dump(), "responses": messages},
        ]
        assert rewards(runnable.invoke(inputs[0])) == rewards(expected)
        assert [rewards(traces) for traces in runnable.batch(inputs)] == [[1.0, 0.0]] * 2
        assert rewards(asyncio.run(runnable.ainvoke(inputs[1]))) == [1.0, 0.0]
        chain = runnable | RunnableLambda(rewards)
        assert chain.invoke(inputs[0]) == [1.0, 0.0]


def test_the_events_come_verdict_by_verdict_and_end_with_the_rewards() -> None:
    async def stream(runnable: Any) -> list[jg.JuryEvent]:
        return [event async for event in runnable.astream({"task": TASK, "responses": LETTERS})]

    with polite_jury() as jury:
        events = list(jury.as_runnable().stream({"task": TASK, "responses": LETTERS}))
        assert kinds(events) == ["question"] * 2 + ["verdict"] * 2 + ["reward"] * 2
        assert {event.responses[0] for event in events[:2]} == {"letter/1", "letter/2"}
        assert [event.verdict.met for event in events[2:4]].count(True) == 1
        assert rewards([event.trace for event in events[4:]]) == [1.0, 0.0]
        assert str(events[4]).startswith(
            "RewardGiven(task='letter', response='letter/1', reward=1,"
        )
        assert "(task='letter', question='criteria/c1'," in str(events[2])
        assert kinds(asyncio.run(stream(jury.as_runnable()))) == kinds(events)


def test_a_recorded_group_is_streamed_by_its_verdicts_and_rewards_the_second_time(
    tmp_path: Path,
) -> None:
    content = {"task": TASK, "responses": LETTERS, "step": 3}
    with polite_jury(record=tmp_path / "run") as jury:
        assert len(list(jury.as_runnable().stream(content))) == 6
        again = list(jury.as_runnable().stream(content))
        assert kinds(again) == ["verdict"] * 2 + ["reward"] * 2
        assert [event.response_id for event in again[2:]] == ["letter@3/1", "letter@3/2"]


@all_rows(
    "content, message",
    [
        ("a letter", 'input: is a str; give {"task": …, "responses": […]}'),
        ({"task": TASK}, "input: 'responses' is missing"),
        ({"tasks": TASK, "responses": []}, "input: unknown key 'tasks'; did you mean task?"),
        ({"task": TASK, "responses": "a letter"}, "responses: is a str; give a list"),
        ({"task": TASK, "responses": [3]}, "responses[0]: is an int"),
        ({"task": TASK, "responses": [AIMessage([{"type": "image"}])]}, "Response.messages: "),
    ],
)
def test_another_input_is_refused_with_what_would_be_right(content: Any, message: str) -> None:
    with polite_jury() as jury, pytest.raises(jg.InputError) as error:
        jury.as_runnable().invoke(content)
    assert message in str(error.value)


def test_the_drawing_is_of_this_jury_and_the_schema_names_the_keys_of_the_input() -> None:
    """In either form: LangGraph's graphs take `xray`, and a chain calls it by position."""
    with jg.Jury(
        evaluators=["maths.format", "maths.accuracy"],
        components={"both": {"inputs": {"f": "maths.format", "a": "maths.accuracy"}}},
        reward={"both": 0.5, "accuracy": 1.0},
        gates=[{"kind": "format", "below": 0.5}],
    ) as jury:
        runnable = jury.as_runnable()
        drawing = runnable.get_graph(xray=True)
        chain = runnable | RunnableLambda(rewards)
        assert "component both" in chain.get_graph().draw_mermaid()
        assert chain.get_prompts() == []
    assert [edge[:3] for edge in drawing.edges] == [
        ("responses", "evaluator maths.accuracy", None),
        ("responses", "evaluator maths.format", None),
        ("evaluator maths.accuracy", "component accuracy", None),
        ("component accuracy", "reward", "weight 1"),
        ("evaluator maths.format", "component format", None),
        ("component format", "reward", "weight 0, gate: format"),
        ("evaluator maths.accuracy", "component both", None),
        ("evaluator maths.format", "component both", None),
        ("component both", "reward", "weight 0.5"),
    ]
    assert "evaluator maths.accuracy" in drawing.draw_mermaid()
    schema = runnable.get_input_jsonschema()
    assert list(schema["properties"]) == ["task", "responses", "plan", "step", "phase"]
    assert schema["required"] == ["task", "responses"]
    assert repr(runnable) == "JuryRunnable(['maths.accuracy', 'maths.format'])"


class Desk(TypedDict, total=False):
    question: jg.Task
    drafts: list[str]
    week: int
    judged: list[jg.Trace]
    plan: jg.Plan


def build_desk(
    jury: jg.Jury, checkpointer: Any = None, **keys: str
) -> CompiledStateGraph[Any, Any, Any, Any]:
    graph = StateGraph(Desk)
    node = jury.as_node(task="question", responses="drafts", traces="judged", step="week", **keys)
    graph.add_node("judge", node)
    graph.add_edge(START, "judge")
    graph.add_edge("judge", END)
    return graph.compile(checkpointer=checkpointer)


STATE: Desk = {"question": TASK, "drafts": LETTERS, "week": 7}


class Listener(BaseCallbackHandler):
    """Keeps what the callbacks of a user's graph get."""

    def __init__(self) -> None:
        self.custom: list[str] = []
        self.texts: list[str] = []

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        self.custom.append(name)
        self.texts.append(json.dumps(data))

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self.texts.append(f"{serialized} {inputs} {kwargs}")

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        self.texts.append(f"{outputs} {kwargs}")


def test_a_node_reads_and_writes_the_keys_that_it_is_told(tmp_path: Path) -> None:
    async def stream(desk: Any) -> list[dict[str, Any]]:
        return [event async for event in desk.astream(STATE, stream_mode="custom")]

    with polite_jury(record=tmp_path / "run") as jury:
        desk = build_desk(jury)
        events = list(desk.stream(STATE, stream_mode="custom"))
        assert [event["event"] for event in events].count("verdict") == 2
        assert rewards(desk.invoke(STATE)["judged"]) == [1.0, 0.0]
        assert desk.invoke(STATE)["judged"][0].response_id == "letter@7/1"
        read_event = TypeAdapter(jg.JuryEvent).validate_python
        again = [read_event(event) for event in asyncio.run(stream(desk))]
        assert kinds(again) == ["verdict", "verdict", "reward", "reward"]
        assert again[1].verdict == again[3].trace.verdicts[0]
        with pytest.raises(
            jg.InputError, match=r"state: has no 'drafts', only \['question', 'week'\]"
        ):
            desk.invoke({"question": TASK, "week": 8})


def test_a_reward_is_explained_after_a_checkpoint_with_the_plan_in_the_state() -> None:
    """A trace is stored without its plan, which every trace of the group would repeat."""
    serializer = JsonPlusSerializer(allowed_msgpack_modules=[jg.Task, jg.Trace, jg.Plan])
    thread: RunnableConfig = {"configurable": {"thread_id": "1"}}
    with polite_jury() as jury:
        desk = build_desk(jury, InMemorySaver(serde=serializer), plan="plan")
        (trace, _) = desk.invoke(STATE, thread)["judged"]
        saved = desk.get_state(thread).values
    with pytest.raises(jg.InputError, match=r"jury.as_node\(plan=KEY\)"):
        saved["judged"][0].explain()
    assert str(saved["judged"][0].explain(saved["plan"])) == str(trace.explain())


def test_callbacks_around_a_node_see_events_and_neither_keys_nor_what_judges_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-abcdefghijklmnop0123456789")
    inner: list[RunnableConfig] = []

    def judge(content: Any, config: RunnableConfig) -> float:
        inner.append(config)
        return 1.0

    own = jg.evaluator(layer="check", name="judge")(RunnableLambda(judge))
    listener = Listener()
    with jg.Jury(evaluators=[own]) as jury:
        desk = build_desk(jury)
        config: RunnableConfig = {"callbacks": [listener], "configurable": {"thread_id": "1"}}
        desk.invoke(STATE, config)
        asyncio.run(desk.ainvoke(STATE, config))
    assert listener.custom.count("verdict") == 4
    assert listener.custom.count("reward") == 4
    assert not any(os.environ["SOME_API_KEY"] in text for text in listener.texts)
    assert len(inner) == 4
    for config in inner:
        assert listener not in getattr(config["callbacks"], "handlers", [])
        assert "thread_id" not in config.get("configurable", {})


def test_a_stream_that_is_left_early_ends_the_scoring() -> None:
    async def leave(runnable: Any) -> str:
        stream = runnable.astream({"task": TASK, "responses": LETTERS})
        first = await anext(stream)
        await stream.aclose()
        return str(first.event)

    with polite_jury() as jury:
        assert asyncio.run(leave(jury.as_runnable())) == "question"
        assert rewards(jury.score(TASK, LETTERS)) == [1.0, 0.0]


def test_a_streamed_chain_passes_traces_on_and_tells_callbacks_as_invoke_does() -> None:
    content = {"task": TASK, "responses": LETTERS}

    async def names(runnable: Any) -> list[str]:
        events = runnable.astream_events(content, version="v2")
        return [event["event"] async for event in events]

    with polite_jury() as jury:
        runnable = jury.as_runnable()
        assert list((runnable | RunnableLambda(rewards)).stream(content)) == [[1.0, 0.0]]
        listener = Listener()
        list(runnable.stream(content, {"callbacks": [listener]}))
        assert listener.custom == ["question"] * 2 + ["verdict"] * 2 + ["reward"] * 2
        events = asyncio.run(names(runnable))
        assert (events[0], events[-1]) == ("on_chain_start", "on_chain_end")
        assert events.count("on_custom_event") == 6


def test_a_message_is_judged_as_conversations_are() -> None:
    text = {"type": "text", "text": LETTERS[0]}
    with polite_jury() as jury:
        expected = jury.score(TASK, [LETTERS[0]])
        for message in (AIMessage(LETTERS[0]), AIMessage([text])):
            (trace,) = jury.as_runnable().invoke({"task": TASK, "responses": [message]})
            assert (trace.reward, trace.group) == (expected[0].reward, expected[0].group)
