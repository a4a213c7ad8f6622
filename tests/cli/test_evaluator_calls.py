"""Evaluators and derivers that make several calls: every call is listed with its verdict and on the bill, once."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command, run_command, traces, write_project
from tests.models.server import Answer, Server, reply_with, run_server, slow, status

EVALUATORS = '''\
import asyncio
from typing import TypedDict

from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from pydantic import BaseModel

import jurygraph as jg
from jurygraph.agents.roles import BatchEvaluator, share_client


class Mark(BaseModel):
    mark: float


class Marks(jg.Evaluator):
    """The mean of `times` marks, after a summary if there are two."""

    layer, uses_model = "model", True

    def __init__(self, times: int) -> None:
        self.times = times

    async def answer(self, inputs):
        client, text = inputs.client, inputs.client.fence.enclose(inputs.response.text, "response")

        async def mark(sample, purpose):
            message = jg.Message(role="user", content=f"{self.name}: give a mark to\\n{text}")
            request = client.chat_request([message], Mark, sample=sample)
            return (await client.judge(request, Mark, purpose=purpose)).value.mark

        if self.times == 2:
            message = jg.Message(role="user", content=f"{self.name}: sum up\\n{text}")
            await client.ask(client.chat_request([message]), purpose="sum up")
            return await mark(0, None)
        marks = await asyncio.gather(*(mark(n, None if self.times == 1 else f"mark {n}") for n in range(self.times)))
        return sum(marks) / len(marks)


class Together(BatchEvaluator):
    """One call about all responses, which each verdict lists."""

    layer, uses_model = "model", True

    async def answer_all(self, batch):
        client = share_client(batch)
        texts = "\\n".join(inputs.response.id for inputs in batch)
        request = client.chat_request([jg.Message(role="user", content=f"together: {texts}")], Mark)
        mark = (await client.judge(request, Mark)).value.mark
        return [mark] * len(batch)


class Careless(BatchEvaluator):
    """Send the call about all responses by the client of the first, and name it."""

    layer, uses_model = "model", True

    async def answer_all(self, batch):
        texts = "\\n".join(inputs.response.id for inputs in batch)
        request = batch[0].client.chat_request([jg.Message(role="user", content=f"careless: {texts}")], Mark)
        judged = await batch[0].client.judge(request, Mark)
        return [jg.Verdict(score=judged.value.mark, call=judged.call.id) for inputs in batch]


class Summary(jg.Deriver):
    gives, uses_model = "summary", True

    async def derive(self, inputs):
        model = inputs.client.chat_model
        first = await model.ainvoke(f"first: {inputs.response.text}")
        second = await model.bind(purpose="shorten", temperature=0.5).ainvoke([("human", f"second: {first.content}")])
        return jg.Material(name="summary", data=second.content)


@jg.evaluator(layer="check", needs=["summary"])
def short(task, response, summary):
    return len(summary.data) < 400


class Reading(TypedDict, total=False):
    text: str
    summary: str
    promises: str
    score: float


def summarise(state: Reading, runtime: Runtime[jg.EvaluatorInput]) -> Reading:
    return {"summary": runtime.context.client.chat_model.invoke(f"sum up: {state['text']}").content}


async def promise(state: Reading, config: RunnableConfig) -> Reading:
    return {"promises": (await config["configurable"]["chat_model"].ainvoke(f"promises: {state['text']}")).content}


async def mark(state: Reading, runtime: Runtime[jg.EvaluatorInput]) -> Reading:
    judge = runtime.context.client.chat_model.with_structured_output(Mark)
    return {"score": (await judge.ainvoke(f"mark: {state['summary']} {state['promises']} {state['text']}")).mark}


def build():
    graph = StateGraph(Reading, context_schema=jg.EvaluatorInput)
    for node in (summarise, promise, mark):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "summarise")
    graph.add_edge(START, "promise")
    graph.add_edge(["summarise", "promise"], "mark")
    graph.add_edge("mark", END)
    return graph.compile()


graph = jg.evaluator(build(), name="graph", own_model=False, version="1")


def model(prompt, config: RunnableConfig):
    return config["configurable"]["chat_model"]


chain = ChatPromptTemplate.from_template("chain: {text}") | model | (lambda message: len(message.content) / 1000)
chain = jg.evaluator(chain, name="chain", own_model=False, version="1")


async def stopped(state: Reading, runtime: Runtime[jg.EvaluatorInput]) -> Reading:
    await runtime.context.client.chat_model.ainvoke(f"stopped: {state['text']}")
    raise ValueError("the node cannot go on")


broken = StateGraph(Reading).add_node("stopped", stopped).add_edge(START, "stopped").add_edge("stopped", END).compile()
broken = jg.evaluator(broken, name="broken", own_model=False, version="1")


async def blocked(state: Reading, runtime: Runtime[jg.EvaluatorInput]) -> Reading:
    return {"score": float(runtime.context.client.chat_model.invoke("blocked").content)}


blocking_graph = StateGraph(Reading).add_node("b", blocked).add_edge(START, "b").add_edge("b", END).compile()
blocking = jg.evaluator(blocking_graph, name="blocking", own_model=False, version="1")


class Undeclared(Marks):
    layer, uses_model = "check", False

    def __init__(self) -> None:
        super().__init__(1)


class Rash(Summary):
    uses_model = False


undeclared = jg.evaluator(blocking_graph, name="undeclared", layer="check", version="1")


class Awaited(jg.Evaluator):
    """Two calls, of which the second is slow."""

    layer, uses_model, timeout = "model", True, 0.5

    def calls(self, inputs, second="slow"):
        text = inputs.response.text
        return [(f"{self.name} quick: {text}", "first"), (f"{self.name} {second}: {text}", "second")]

    async def answer(self, inputs):
        for text, purpose in self.calls(inputs):
            await inputs.client.chat_model.ainvoke(text, purpose=purpose)
        return 1.0


class InThread(Awaited):
    def answer(self, inputs):
        for text, purpose in self.calls(inputs):
            inputs.client.chat_model.invoke(text, purpose=purpose)
        return 1.0


class Background(Awaited):
    timeout, running = 30, []

    async def answer(self, inputs):
        first, second = (inputs.client.chat_model.ainvoke(t, purpose=p) for t, p in self.calls(inputs))
        self.running.append(asyncio.create_task(second))
        await first
        await asyncio.sleep(0.2)
        return 1.0


class Caught(Awaited):
    timeout = 30

    async def answer(self, inputs):
        (first, purpose), (second, other) = self.calls(inputs, "broken")
        await inputs.client.chat_model.ainvoke(first, purpose=purpose)
        try:
            await inputs.client.chat_model.ainvoke(second, purpose=other)
        except Exception:
            return 1.0


@jg.evaluator(layer="check")
async def waits(task, response):
    await asyncio.sleep(3)
    return 1.0
'''
TASKS = [
    {
        "id": name,
        "query": "Write a letter.",
        "responses": [{"id": f"{name}/{one}", "text": f"{name} {one}: dear all"} for one in "ab"],
    }
    for name in ("ann", "ben")
]
CALLS_OF = {
    "{use: manners.Marks, name: one, params: {times: 1}}": ["judge"],
    "{use: manners.Marks, name: two, params: {times: 2}}": ["sum up", "judge"],
    "{use: manners.Marks, name: five, params: {times: 5}}": [f"mark {number}" for number in range(5)],
    "manners.graph": ["promise", "summarise", "mark"],
    "manners.chain": ["judge"],
}


class Judge:
    """A model whose first structured reply to each prompt is malformed if it is `sloppy`."""

    def __init__(self) -> None:
        self.sloppy = False

    def __call__(self, body: dict[str, Any], number: int) -> Answer:
        if "response_format" not in body:
            return reply_with("a text")
        if self.sloppy and len(body["messages"]) == 1:
            return reply_with("no JSON")
        return reply_with(json.dumps({"mark": 0.5}))


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge()


@pytest.fixture(scope="module")
def server(judge: Judge, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch, run_server(judge) as running:
        patch.setenv("JURYGRAPH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield running


def name_of(use: str) -> str:
    return use.rpartition("name: ")[2].split(",")[0]


def write(folder: Path, server: Server, *uses: str, more: str = "") -> Path:
    config = f"model: openai-compatible:{server.url}#tiny\ncalls: {{prices: {{tiny: {{input: 1.0, output: 2.0}}}}}}\n"
    weights = "".join(f"  {name_of(use).split('.')[-1]}: 1.0\n" for use in uses)
    config += f"{more}evaluators:\n" + "".join(f"- {use}\n" for use in uses) + f"reward:\n{weights}"
    return write_project(folder, TASKS, config, EVALUATORS)


def bill(printed: str) -> dict[str, int]:
    """Return the number of calls by source, with the sum of their costs as it is on the bill."""
    calls = json.loads(printed)["calls"]
    assert not any(tally["unpriced"] for tally in calls.values())
    return {source: tally["number"] for source, tally in calls.items() if tally["number"]}


def listed(found: list[dict[str, Any]]) -> set[str]:
    """Return the ids of all calls that verdicts and material list; each trace holds those of its own."""
    for trace in found:
        users = [*trace["verdicts"], *trace["material"]]
        assert {use["id"] for user in users for use in user.get("calls", ())} == {one["id"] for one in trace["calls"]}
    return {call["id"] for trace in found for call in trace["calls"]}


@pytest.fixture(scope="module")
def scored(judge: Judge, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of all evaluators, whose structured replies are repaired; tests write beside it alone."""
    judge.sloppy = True
    project = tmp_path_factory.mktemp("calls") / "project"
    write(project, server, *CALLS_OF, "manners.short", more="derivers: [manners.Summary]\n")
    assert run_command("score", project / "tasks.jsonl", "--out", project / "run").code == 0
    judge.sloppy = False
    return project / "run"


WITHOUT_FORM = {"sum up", "promise", "summarise"}
"""Purposes of calls whose reply is a text, which is never repaired."""


@pytest.mark.parametrize("sloppy", [False, True], ids=["well-formed", "repaired"])
def test_the_calls_of_a_trace_are_those_that_the_server_counts(
    sloppy: bool, judge: Judge, server: Server, tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(judge, "sloppy", sloppy)
    project = write(tmp_path / "project", server, *CALLS_OF)
    sent_before = server.count
    ended = run("score", project / "tasks.jsonl", "--out", project / "run", "--json")
    assert ended.code == 0, ended.err
    found = traces(run, project / "run")
    sent = server.count - sent_before
    assert len(listed(found)) == sent
    assert bill(ended.out) == {"sent": sent}
    costs = {call["id"]: call["cost"] for trace in found for call in trace["calls"]}
    assert sum(costs.values()) == pytest.approx(json.loads(ended.out)["calls"]["sent"]["cost"])
    for trace in found:
        verdicts = {verdict["evaluator"]: verdict for verdict in trace["verdicts"]}
        assert len(verdicts) == len(CALLS_OF)
        for use, purposes in CALLS_OF.items():
            verdict = verdicts[name_of(use)]
            expected = []
            for purpose in purposes:
                has_form = purpose not in WITHOUT_FORM and use != "manners.chain"
                expected += [purpose, "repair"] if sloppy and has_form else [purpose]
            assert [one["purpose"] for one in verdict["calls"]] == expected
            assert len({one["id"] for one in verdict["calls"]}) == len(expected)
            is_clear = len(purposes) == 1
            assert verdict["call"] == (verdict["calls"][-1]["id"] if is_clear else None)

    again = run("score", project / "tasks.jsonl", "--out", project / "cached", "--json")
    assert (again.code, server.count - sent_before) == (0, sent)
    assert bill(again.out) == {"cached": sent}
    listed_again = [[verdict["calls"] for verdict in one["verdicts"]] for one in traces(run, project / "cached")]
    assert listed_again == [[verdict["calls"] for verdict in one["verdicts"]] for one in found]


def test_each_way_through_a_run_keeps_the_calls(scored: Path, server: Server, run: Command) -> None:
    count, found = server.count, traces(run, scored)
    number = len(listed(found))
    assert [use["purpose"] for use in found[0]["material"][0]["calls"]] == ["derive", "shorten"]

    verified = run("verify", scored, "--deep", "--json")
    assert verified.code == 0, verified.err
    deep = json.loads(verified.out)["deep"]
    assert (deep["recomputed"], deep["needing_model"]) == (sum(len(trace["verdicts"]) for trace in found), 0)

    resumed = run("score", scored.parent / "tasks.jsonl", "--out", scored, "--json")
    assert (resumed.code, bill(resumed.out)) == (0, {"sent": number})

    other = scored.with_name("rescored")
    assert run("rescore", scored, "--out", other, "--set", "reward.five=2").code == 0
    assert [one["verdicts"] for one in traces(run, other)] == [one["verdicts"] for one in found]

    branched = scored.with_name("branched")
    assert run("score", scored.parent / "tasks.jsonl", "--out", branched, "--branch", scored).code == 0
    assert [one["verdicts"] for one in traces(run, branched)] == [one["verdicts"] for one in found]
    assert run("verify", branched, "--deep").code == 0
    assert server.count == count


def test_show_prints_the_steps_of_a_graph_and_the_purposes_of_its_calls(scored: Path, run: Command) -> None:
    shown = run("show", scored, "--response", "ann/a").out.splitlines()
    at = next(number for number, line in enumerate(shown) if line.startswith("  manners.graph "))
    steps, calls = (line.strip() for line in shown[at + 1 : at + 3])
    names = [step.split()[0] for step in steps.removeprefix("steps: ").split(", ")]
    assert names == ["promise", "summarise", "mark"]
    assert all(step.endswith(" s") for step in steps.split(", "))
    assert calls == "4 calls: promise, summarise, mark, repair"


def test_no_digest_depends_on_the_durations_of_steps(scored: Path, server: Server, run: Command) -> None:
    (scored.parent / "tasks.jsonl").touch()
    assert run("score", scored.parent / "tasks.jsonl", "--out", scored.with_name("again")).code == 0
    again = scored.with_name("again2")
    assert run("score", scored.parent / "tasks.jsonl", "--out", again).code == 0
    first, second = traces(run, scored.with_name("again")), traces(run, again)
    assert [one["digest"] for one in first] == [one["digest"] for one in second]
    durations = [
        [s["duration"] for one in t for v in one["verdicts"] for s in v.get("steps", ())] for t in (first, second)
    ]
    assert durations[0] != durations[1]


def test_a_call_about_several_responses_is_listed_with_each(server: Server, tmp_path: Path, run: Command) -> None:
    sent_before = server.count
    project = write(tmp_path / "project", server, "manners.Together", "manners.Careless")
    assert run("score", project / "tasks.jsonl", "--out", project / "run").code == 0
    found = traces(run, project / "run")
    assert len(listed(found)) == server.count - sent_before == 4
    assert [len(trace["calls"]) for trace in found] == [2, 2, 2, 2]


def test_calls_of_a_node_that_fails_are_listed_and_billed(server: Server, tmp_path: Path, run: Command) -> None:
    sent_before = server.count
    project = write(tmp_path / "project", server, "manners.broken", "manners.blocking")
    ended = run("score", project / "tasks.jsonl", "--out", project / "run", "--json")
    assert bill(ended.out) == {"sent": server.count - sent_before} == {"sent": 4}
    blocking, broken = traces(run, project / "run")[0]["verdicts"]
    assert (broken["failure"]["kind"], [use["purpose"] for use in broken["calls"]]) == ("ValueError", ["stopped"])
    assert [step["name"] for step in broken["steps"]] == ["stopped"]
    assert "await `ainvoke` instead" in blocking["reason"]
    assert blocking["calls"] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "name",
    ["Awaited", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("InThread", "Background", "Caught"))],
)
def test_a_call_without_a_reply_is_listed_and_billed_whenever_its_reply_comes(
    name: str, tmp_path: Path, run: Command
) -> None:
    def script(body: dict[str, Any], number: int) -> Answer:
        text = body["messages"][-1]["content"]
        return status(500) if "broken" in text else slow(2.0 * ("slow" in text), reply_with("a text"))

    found = []
    with run_server(script) as server:
        for others in ((), ("manners.waits",)):  # with it, the slow replies arrive before the traces are made
            more, sent_before = "failure: {max_error_rate: 1}\n", server.count
            project = write(tmp_path / "project", server, f"manners.{name}", *others, more=more)
            config = project / "jury.yaml"
            limits = "calls: {cache: false, attempts: 2, outage: {after: 99}, "
            config.write_text(config.read_text().replace("calls: {", limits))
            folder = tmp_path / f"run{len(others)}"
            ended = run("score", project / "tasks.jsonl", "--out", folder, "--json")
            made = traces(run, folder)
            calls = {call["id"]: call for trace in made for call in trace["calls"]}
            assert len(listed(made)) == len(calls) == 8
            assert sum(call["attempts"] for call in calls.values()) == server.count - sent_before
            tallies = json.loads(ended.out)["calls"]
            assert {source: tallies[source]["number"] for source in ("sent", "unanswered")} == {
                "sent": 4,
                "unanswered": 4,
            }
            for trace in made:
                (verdict,) = (one for one in trace["verdicts"] if one["evaluator"].endswith(name))
                assert [use["purpose"] for use in verdict["calls"]] == ["first", "second"]
                if verdict["status"] == "failed":  # the response is not to blame for a slow model
                    assert (verdict["failure"]["cause"], verdict["failure"]["kind"]) == ("infrastructure", "time-limit")
                fault = "server" if name == "Caught" else "cut-off"
                assert [calls[use["id"]].get("fault") for use in verdict["calls"]] == [None, fault]
                found.append([verdict["calls"], verdict["status"], verdict["call"]])
            shown = run("show", folder, "--response", "ann/a", "--call", f"manners.{name}")
            assert "Caught broken: ann" in shown.out if name == "Caught" else "slow: ann" in shown.out
            assert run("verify", folder, "--deep").code == 0
    assert found[:4] == found[4:]


@pytest.mark.exhaustive
def test_what_a_slow_model_cut_off_is_requested_in_a_branch(tmp_path: Path, run: Command) -> None:
    seconds = 2.0
    with run_server(lambda body, number: slow(seconds, reply_with("a text"))) as server:
        project = write(tmp_path / "project", server, "manners.Awaited")
        given, folder = ("score", project / "tasks.jsonl", "--out"), project / "run"
        ended = run(*given, folder)
        assert (ended.code, "inconclusive: 100.0%" in ended.err) == (3, True)
        assert "while it waited for the model; raise its `timeout`" in ended.err
        assert "not repeated: 4 transient failures" in run("verify", folder, "--deep").out
        for again in ("0 reused", "4 reused"):
            old, folder = folder, folder.with_name(f"{folder.name}-2")
            command = f"to repeat the 4 failures that may succeed now:  jurygraph score {given[1]} --branch {old}"
            assert (command in run(*given, old).err) == (again == "0 reused")
            seconds = 0.0
            branched = run(*given, folder, "--branch", old)
            assert f"verdicts: {again} from {old}, {4 - int(again[0])} requested\n" in branched.err
    assert branched.code == 0


def test_an_evaluator_with_the_configs_model_abstains_without_one(server: Server, tmp_path: Path, run: Command) -> None:
    sent_before = server.count
    project = write(tmp_path / "project", server, "manners.graph", "manners.chain")
    run("score", project / "tasks.jsonl", "--out", project / "run", "--model", "none")
    verdicts = [verdict for trace in traces(run, project / "run") for verdict in trace["verdicts"]]
    assert [(v["status"], v["calls"], v["steps"]) for v in verdicts] == [("abstained", [], [])] * len(verdicts)
    assert server.count == sent_before


@pytest.mark.parametrize("model", [[], ["--model", "none"]], ids=["a model", "none"])
def test_an_evaluator_that_does_not_declare_the_model_cannot_use_it(
    model: list[str], server: Server, tmp_path: Path, run: Command
) -> None:
    sent_before = server.count
    names = ("Undeclared", "undeclared", "short")
    project = write(
        tmp_path / "project", server, *(f"manners.{name}" for name in names), more="derivers: [manners.Rash]\n"
    )
    ended = run("score", project / "tasks.jsonl", "--out", project / "run", *model)
    assert (ended.code, server.count) == (3, sent_before)
    problem = "uses the config's model and does not declare it: write `uses_model = True` in its class"
    messages = {
        user["failure"]["message"].partition(", or ")[0]
        for trace in traces(run, project / "run")
        for user in (*trace["verdicts"], *trace["material"])
    }
    owners = (
        "'manners.Undeclared'",
        "'manners.undeclared'",
        "'manners.Rash'",
        "material 'summary' is missing: 'manners.Rash'",
    )
    assert messages == {f"{owner} {problem}" for owner in owners}
    assert problem in ended.err
