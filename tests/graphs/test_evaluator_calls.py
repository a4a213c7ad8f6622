"""Evaluators and derivers that make several calls: each verdict and material lists its own, and a trace lists all."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, TypedDict

import pytest
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from pydantic import BaseModel

import jurygraph as jg
from jurygraph.agents.roles import BatchEvaluator, share_client
from tests.models.server import Answer, hang, reply_with, run_server, slow, status
from tests.virtual_time import HeldLoop, held_time

HERE = "tests.graphs.test_evaluator_calls"


class Mark(BaseModel):
    mark: float


MARK = '{"mark": 0.5}'
WELL_FORMED = {"mark": MARK, "": "a text"}
REPAIRED = {"That cannot be used": MARK, "mark": "no JSON", "": "a text"}
"""Rules of a judge by a word of the request; the second one's marks are repaired."""


class Marks(jg.Evaluator):
    """The mean of `times` marks, after a summary if there are two."""

    layer, uses_model = "model", True

    def __init__(self, times: int) -> None:
        self.times = times

    async def answer(self, inputs: jg.EvaluatorInput) -> float:
        client, text = inputs.client, inputs.client.fence.enclose(inputs.response.text, "response")

        async def mark(sample: int, purpose: str | None) -> float:
            message = jg.Message(role="user", content=f"{self.name}: give a mark to\n{text}")
            request = client.chat_request([message], Mark, sample=sample)
            return (await client.judge(request, Mark, purpose=purpose)).value.mark

        if self.times == 2:
            message = jg.Message(role="user", content=f"{self.name}: sum up\n{text}")
            await client.ask(client.chat_request([message]), purpose="sum up")
            return await mark(0, None)
        marks = await asyncio.gather(
            *(mark(n, None if self.times == 1 else f"mark {n}") for n in range(self.times))
        )
        return sum(marks) / len(marks)


class Together(BatchEvaluator):
    """One call about all responses, which each verdict lists."""

    layer, uses_model = "model", True

    async def answer_all(self, batch: Any) -> list[float]:
        client = share_client(batch)
        texts = "\n".join(inputs.response.id for inputs in batch)
        request = client.chat_request(
            [jg.Message(role="user", content=f"mark together: {texts}")], Mark
        )
        return [(await client.judge(request, Mark)).value.mark] * len(batch)


class Careless(BatchEvaluator):
    """Send the call about all responses by the client of the first, and name it."""

    layer, uses_model = "model", True

    async def answer_all(self, batch: Any) -> list[jg.Verdict]:
        texts = "\n".join(inputs.response.id for inputs in batch)
        request = batch[0].client.chat_request(
            [jg.Message(role="user", content=f"mark carelessly: {texts}")], Mark
        )
        judged = await batch[0].client.judge(request, Mark)
        return [jg.Verdict(score=judged.value.mark, call=judged.call.id) for inputs in batch]


class Summary(jg.Deriver):
    gives, uses_model = "summary", True

    async def derive(self, inputs: jg.DeriverInput) -> jg.Material:
        model = inputs.client.chat_model
        first = await model.ainvoke(f"first: {inputs.response.text}")
        second = await model.bind(purpose="shorten", temperature=0.5).ainvoke(
            [("human", f"second: {first.content}")]
        )
        return jg.Material(name="summary", data=second.content)


@jg.evaluator(layer="check", needs=["summary"], version="1")
def summary_is_short(task: jg.TaskView, response: jg.Response, summary: jg.Material) -> bool:
    return len(summary.data) < 400


class Reading(TypedDict, total=False):
    text: str
    summary: str
    promises: str
    score: float


def summarise(state: Reading, runtime: Runtime[jg.EvaluatorInput]) -> Reading:
    return {"summary": runtime.context.client.chat_model.invoke(f"sum up: {state['text']}").content}


async def promise(state: Reading, config: RunnableConfig) -> Reading:
    return {
        "promises": (
            await config["configurable"]["chat_model"].ainvoke(f"promises: {state['text']}")
        ).content
    }


async def mark(state: Reading, runtime: Runtime[jg.EvaluatorInput]) -> Reading:
    judge = runtime.context.client.chat_model.with_structured_output(Mark)
    return {
        "score": (
            await judge.ainvoke(f"mark: {state['summary']} {state['promises']} {state['text']}")
        ).mark
    }


def build() -> Any:
    made = StateGraph(Reading, context_schema=jg.EvaluatorInput)
    for node in (summarise, promise, mark):
        made.add_node(node.__name__, node)
    made.add_edge(START, "summarise")
    made.add_edge(START, "promise")
    made.add_edge(["summarise", "promise"], "mark")
    made.add_edge("mark", END)
    return made.compile()


graph = jg.evaluator(build(), name="graph", own_model=False, version="1")


def model(prompt: Any, config: RunnableConfig) -> Any:
    return config["configurable"]["chat_model"]


chain = (
    ChatPromptTemplate.from_template("chain: {text}")
    | model
    | (lambda message: len(message.content) / 1000)
)
chain = jg.evaluator(chain, name="chain", own_model=False, version="1")


async def stopped(state: Reading, runtime: Runtime[jg.EvaluatorInput]) -> Reading:
    await runtime.context.client.chat_model.ainvoke(f"stopped: {state['text']}")
    raise ValueError("the node cannot go on")


async def blocked(state: Reading, runtime: Runtime[jg.EvaluatorInput]) -> Reading:
    return {"score": float(runtime.context.client.chat_model.invoke("blocked").content)}


def graph_of(node: Any, name: str, **settings: Any) -> Any:
    made = (
        StateGraph(Reading)
        .add_node("node", node)
        .add_edge(START, "node")
        .add_edge("node", END)
        .compile()
    )
    return jg.evaluator(made, name=name, version="1", **settings)


broken = graph_of(stopped, "broken", own_model=False)
blocking = graph_of(blocked, "blocking", own_model=False)
undeclared = graph_of(blocked, "undeclared", layer="check")


class Undeclared(Marks):
    layer, uses_model = "check", False

    def __init__(self) -> None:
        super().__init__(1)


class Rash(Summary):
    uses_model = False


def group(name: str) -> jg.Group:
    responses = [jg.Response(id=f"{name}/{one}", text=f"{name} {one}: dear all") for one in "ab"]
    return jg.Group(jg.Task(id=name, query="Write a letter."), responses)


GROUPS = [group("ann"), group("ben")]


def config(*uses: Mapping[str, Any] | str, **more: Any) -> dict[str, Any]:
    """Return a config of evaluators of this module, all of weight 1."""
    named = [
        {"name": one, "use": f"{HERE}:{one}"} if isinstance(one, str) else dict(one) for one in uses
    ]
    return {"evaluators": named, "reward": {use["name"]: 1.0 for use in named}, **more}


def marks(name: str, times: int) -> dict[str, Any]:
    return {"use": f"{HERE}:Marks", "name": name, "params": {"times": times}}


CALLS_OF = {
    "one": ["judge"],
    "two": ["sum up", "judge"],
    "five": [f"mark {number}" for number in range(5)],
    "graph": ["promise", "summarise", "mark"],
    "chain": ["judge"],
}
CONFIG = config(marks("one", 1), marks("two", 2), marks("five", 5), "graph", "chain")
WITH_SUMMARY = config(*CONFIG["evaluators"], "summary_is_short", derivers=[f"{HERE}:Summary"])


def score(settings: Mapping[str, Any], judge: Any = None) -> list[jg.Trace]:
    with jg.Jury.from_config(settings, model=judge) as jury:
        return [trace for traces in jury.score_many(GROUPS) for trace in traces]


def listed(found: Iterable[jg.Trace]) -> set[str]:
    """Return the ids of all calls that verdicts and material list; each trace holds those of its own."""
    for trace in found:
        users = [*trace.verdicts, *trace.material]
        assert {use.id for user in users for use in user.calls} == {call.id for call in trace.calls}
    return {call.id for trace in found for call in trace.calls}


@pytest.mark.parametrize("rules", [WELL_FORMED, REPAIRED], ids=["well-formed", "repaired"])
def test_a_verdict_lists_its_calls_in_their_order_with_their_purposes(
    rules: dict[str, str],
) -> None:
    judge = jg.testing.ScriptedJudge(rules)
    found = score(CONFIG, judge)
    assert len(listed(found)) == len(judge.requests)
    texts = {"sum up", "promise", "summarise"}  # replies that are texts are never repaired
    for trace in found:
        verdicts = {verdict.question: verdict for verdict in trace.verdicts}
        assert verdicts.keys() == CALLS_OF.keys()
        for name, purposes in CALLS_OF.items():
            verdict, expected = verdicts[name], []
            for purpose in purposes:
                is_repaired = rules is REPAIRED and purpose not in texts and name != "chain"
                expected += [purpose, "repair"] if is_repaired else [purpose]
            assert [use.purpose for use in verdict.calls] == expected
            assert len({use.id for use in verdict.calls}) == len(expected)
            is_clear = len(purposes) == 1
            assert verdict.call == (verdict.calls[-1].id if is_clear else None)


def test_material_lists_its_calls_too() -> None:
    (material,) = score(WITH_SUMMARY, jg.testing.ScriptedJudge(WELL_FORMED))[0].material
    assert [use.purpose for use in material.calls] == ["derive", "shorten"]


def test_steps_have_durations_on_which_no_digest_depends() -> None:
    first, second = (
        score(config("graph"), jg.testing.ScriptedJudge(WELL_FORMED)) for _ in range(2)
    )
    steps = [
        [step for trace in found for step in trace.verdicts[0].steps] for found in (first, second)
    ]
    assert [step.name for step in steps[0]] == ["promise", "summarise", "mark"] * 4
    assert [step.duration for step in steps[0]] != [step.duration for step in steps[1]]
    assert [trace.digest for trace in first] == [trace.digest for trace in second]


def test_a_call_about_several_responses_is_listed_with_each() -> None:
    judge = jg.testing.ScriptedJudge(WELL_FORMED)
    found = score(config("Together", "Careless"), judge)
    assert len(listed(found)) == len(judge.requests) == 4
    assert [len(trace.calls) for trace in found] == [2, 2, 2, 2]


def test_calls_of_a_node_that_fails_are_listed() -> None:
    judge = jg.testing.ScriptedJudge(WELL_FORMED)
    found = score(config("broken", "blocking"), judge)
    assert len(listed(found)) == len(judge.requests) == 4
    waiting, failing = found[0].verdicts
    assert (failing.failure.kind, [use.purpose for use in failing.calls]) == (
        "ValueError",
        ["node"],
    )
    assert [step.name for step in failing.steps] == ["node"]
    assert "await `ainvoke` instead" in waiting.reason
    assert waiting.calls == ()


def test_without_a_model_an_evaluator_with_the_configs_model_abstains() -> None:
    verdicts = [verdict for trace in score(config("graph", "chain")) for verdict in trace.verdicts]
    assert [(one.status, one.calls, one.steps) for one in verdicts] == [
        ("abstained", (), ())
    ] * len(verdicts)


@pytest.mark.parametrize("judge", [jg.testing.ScriptedJudge({}), None], ids=["a model", "none"])
def test_an_evaluator_that_does_not_declare_the_model_cannot_use_it(judge: Any) -> None:
    settings = config(
        "Undeclared",
        "undeclared",
        "summary_is_short",
        derivers=[{"use": f"{HERE}:Rash", "name": "rash"}],
    )
    found = score(settings, judge)
    users = [user for trace in found for user in (*trace.verdicts, *trace.material)]
    problem = (
        "uses the config's model and does not declare it: write `uses_model = True` in its class"
    )
    owners = ("'Undeclared'", "'undeclared'", "'rash'", "material 'summary' is missing: 'rash'")
    assert {user.failure.message.partition(", or ")[0] for user in users} == {
        f"{owner} {problem}" for owner in owners
    }
    assert judge is None or judge.requests == []


class Awaited(jg.Evaluator):
    """Two calls, of which the second is slow."""

    layer, uses_model, timeout = "model", True, 0.5

    def calls(self, inputs: jg.EvaluatorInput, second: str = "slow") -> list[tuple[str, str]]:
        text = inputs.response.text
        return [(f"quick: {text}", "first"), (f"{second}: {text}", "second")]

    async def answer(self, inputs: jg.EvaluatorInput) -> float:
        for text, purpose in self.calls(inputs):
            await inputs.client.chat_model.ainvoke(text, purpose=purpose)
        return 1.0


class InThread(Awaited):
    def answer(self, inputs: jg.EvaluatorInput) -> Any:
        for text, purpose in self.calls(inputs):
            inputs.client.chat_model.invoke(text, purpose=purpose)
        return 1.0


RUNNING: list[Any] = []  # so that no task is collected before its end


class Background(Awaited):
    timeout = 30

    async def answer(self, inputs: jg.EvaluatorInput) -> float:
        first, second = (
            inputs.client.chat_model.ainvoke(text, purpose=why) for text, why in self.calls(inputs)
        )
        RUNNING.append(asyncio.create_task(self.ignore_end(second)))
        await first
        await asyncio.sleep(0.2)
        return 1.0

    async def ignore_end(self, call: Any) -> None:
        """Await a call that the end of the jury cancels."""
        with suppress(Exception):
            await call


class Caught(Awaited):
    timeout = 30

    async def answer(self, inputs: jg.EvaluatorInput) -> float:
        (first, purpose), (second, other) = self.calls(inputs, "broken")
        await inputs.client.chat_model.ainvoke(first, purpose=purpose)
        with suppress(Exception):
            await inputs.client.chat_model.ainvoke(second, purpose=other)
        return 1.0


@jg.evaluator(layer="check", version="1")
async def waits(task: jg.TaskView, response: jg.Response) -> float:
    await asyncio.sleep(3)
    return 1.0


@pytest.mark.parametrize("name", ["Awaited", "InThread"])
def test_a_model_that_is_too_slow_fails_the_verdict_and_the_response_is_not_to_blame(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jurygraph.concurrency.new_event_loop", HeldLoop)
    for module in ("graphs.time_limits", "concurrency"):
        monkeypatch.setattr(f"jurygraph.{module}.monotonic", held_time)

    def script(body: dict[str, Any], number: int) -> Answer:
        return (
            hang(passing=1.0) if "slow" in body["messages"][-1]["content"] else reply_with("a text")
        )

    with run_server(script) as server:
        settings = config(
            name, calls={"cache": False}, model=f"openai-compatible:{server.url}#tiny"
        )
        with jg.Jury.from_config(settings) as jury:
            (trace,) = jury.score(GROUPS[0].task, GROUPS[0].responses[:1])
    (verdict,) = trace.verdicts
    assert (verdict.failure.cause, verdict.failure.kind) == ("infrastructure", "time-limit")
    assert "while it waited for the model; raise its `timeout`" in verdict.failure.message
    faults = {call.id: call.fault for call in trace.calls}
    assert [(use.purpose, faults[use.id]) for use in verdict.calls] == [
        ("first", None),
        ("second", "cut-off"),
    ]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["Awaited", "InThread", "Background", "Caught"])
def test_a_call_without_a_reply_is_listed_whenever_its_reply_comes(name: str) -> None:
    def script(body: dict[str, Any], number: int) -> Answer:
        text = body["messages"][-1]["content"]
        return (
            status(500) if "broken" in text else slow(2.0 * ("slow" in text), reply_with("a text"))
        )

    outcomes = []
    calls = {"cache": False, "attempts": 2, "outage": {"after": 99}}
    with run_server(script) as server:
        # with it, the slow replies arrive before the traces are made
        for others in ((), ("waits",)):
            sent_before = server.count
            found = score(
                config(name, *others, calls=calls, model=f"openai-compatible:{server.url}#tiny")
            )
            sent = {call.id: call for trace in found for call in trace.calls}
            assert len(listed(found)) == len(sent) == 8
            assert sum(call.attempts for call in sent.values()) == server.count - sent_before
            for trace in found:
                (verdict,) = (one for one in trace.verdicts if one.question == name)
                assert [use.purpose for use in verdict.calls] == ["first", "second"]
                fault = "server" if name == "Caught" else "cut-off"
                assert [sent[use.id].fault for use in verdict.calls] == [None, fault]
                if verdict.status == "failed":  # the response is not to blame for a slow model
                    assert (verdict.failure.cause, verdict.failure.kind) == (
                        "infrastructure",
                        "time-limit",
                    )
                outcomes.append([verdict.calls, verdict.status, verdict.call])
    assert outcomes[:4] == outcomes[4:]
