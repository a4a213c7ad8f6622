"""Estimated requests of a dry run."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jurygraph as jg
from jurygraph.errors import BudgetExceeded
from jurygraph.models.backend import Backend
from jurygraph.models.backends.openai_compatible import OpenAICompatibleBackend
from jurygraph.models.gateway import Gateway, Gateways
from jurygraph.models.limits import Price, RequestLimiter, highest_request_cost
from jurygraph.models.request import Request
from jurygraph.runs.reports.estimate import (
    CallCostEstimator,
    CallEstimate,
    ModelUsage,
    RemainingWork,
)
from jurygraph.runs.workflows.forecasting import RemainingWorkEstimator
from jurygraph.schema import CallsConfig, Message, Question
from jurygraph.sources import open_task_source
from tests.agents.graph_annotator.annotator_replies import annotator_script
from tests.models.judge_scripts import judge_reply
from tests.models.server import TOKENS_IN, TOKENS_OUT, Answer, Server, reply_with, run_server
from tests.runs.sample_runs import (
    REQUESTED,
    evaluator_config,
    open_job,
    plan_and_score,
    write_tasks,
)

NOBODY = "http://127.0.0.1:9/v1"
TEXTS = ("roses are red", "violets are blue")
FOLLOWS = f"{__name__}.Follows"
KINDS = {"c0": "core", "c1": "core", "c2": "additional"}


class Follows(jg.Evaluator):
    """Asks for a word, and then about that word."""

    layer = "model"
    uses_model = True

    async def answer(self, inputs: jg.EvaluatorInput) -> float:
        assert inputs.client is not None
        text = inputs.response.text
        for purpose in ("first", "second"):
            request = inputs.client.chat_request([jg.Message(role="user", content=text)])
            text = f"{text} {(await inputs.client.ask(request, purpose=purpose)).reply.text}"
        return 1.0


@pytest.fixture
def server() -> Iterator[Server]:
    with run_server(lambda body, number: judge_reply(body)) as server:
        yield server


def judge_config(url: str, *more: Any, when: Any = None, **calls: Any) -> dict[str, Any]:
    requested: dict[str, Any] = {"use": "criteria"} | ({} if when is None else {"when": when})
    weights = {"rubric": 1.0} | {one["name"]: 1.0 for one in more if one.get("use") != "criteria"}
    model = {"model": f"openai-compatible:{url}#tiny", "calls": calls, "reward": weights}
    return {"evaluators": [requested, *more], **model}


def make_task(name: str, *texts: str, criteria: int = 6, data: Any = None) -> dict[str, Any]:
    settings = [
        {"id": f"c{place}", "text": f"It is of the kind {place}.", "weight": 1.0}
        for place in range(criteria)
    ]
    given = [
        {"id": f"{name}/{place}", "text": text, "data": data} for place, text in enumerate(texts)
    ]
    return {
        "id": name,
        "query": f"Write a poem for {name}.",
        "rubric": {"criteria": settings},
        "responses": given,
    }


def forecast_work(*arguments: Any, **limits: Any) -> RemainingWork:
    with open_job(*arguments, **limits) as (job, stored):
        return asyncio.run(RemainingWorkEstimator(job, stored).forecast(lambda count: None))


def forecast(*arguments: Any, **limits: Any) -> CallEstimate:
    expected = forecast_work(*arguments, **limits).model
    assert expected is not None
    return expected


def score(*arguments: Any, **limits: Any) -> None:
    with open_job(*arguments, **limits) as (job, stored):
        asyncio.run(plan_and_score(job, stored))


def call_counts(estimate: CallEstimate) -> tuple[int, int, int]:
    return estimate.low.calls, estimate.expected.calls, estimate.worst.calls


class TestCalls:
    def test_estimated_calls_equal_those_of_scoring(self, tmp_path: Path, server: Server) -> None:
        tasks = write_tasks(tmp_path, [make_task("a", *TEXTS), make_task("b", *TEXTS, criteria=3)])
        estimate = forecast(tmp_path / "run", tasks, judge_config(server.url))
        assert server.count == 0
        score(tmp_path / "run", tasks, judge_config(server.url))
        assert call_counts(estimate) == (6, 6, 12)
        assert server.count == 6

    def test_python_has_the_same_estimate_before_a_run(self, tmp_path: Path) -> None:
        config = judge_config(NOBODY, prices={"tiny": {"input": 1.0, "output": 2.0}})
        tasks = write_tasks(tmp_path, [make_task("a", *TEXTS), make_task("b", *TEXTS, criteria=3)])
        with open_task_source(tasks) as source, jg.Jury.from_config(config) as jury:
            estimate = jg.estimate_costs(jury, source.pairs(0, None, ()))
        assert estimate == forecast(tmp_path / "run", tasks, config)
        assert estimate.expected.cost is not None

    def test_without_a_model_python_estimates_no_calls(self) -> None:
        with jg.Jury(evaluators=["criteria"]) as jury:
            assert jg.estimate_costs(jury, [(jg.Task(id="a", query="?"), ["x"])]) == CallEstimate()

    @pytest.mark.parametrize(("roles", "unknown"), [(True, 0), (False, 1)])
    def test_a_graph_to_be_annotated_is_estimated_except_pairs_that_depend_on_roles(
        self, tmp_path: Path, roles: bool, unknown: int
    ) -> None:
        def script(body: dict[str, Any], number: int) -> Answer:
            requested = body["response_format"]["json_schema"]["schema"]["properties"]
            return (
                annotator_script({}, KINDS)(body, number)
                if requested.keys() & {"roles", "pairs"}
                else judge_reply(body)
            )

        settings = make_task("a", *TEXTS, criteria=3)
        for criterion in settings["rubric"]["criteria"] if roles else ():
            criterion["role"] = KINDS[criterion["id"]]
        tasks = write_tasks(tmp_path, [settings])
        with run_server(script) as server:
            wanted = {**judge_config(server.url), "annotation": {"votes": 3}}
            estimate = forecast(tmp_path / "run", tasks, wanted)
            with jg.Jury.from_config(wanted) as jury, open_task_source(tasks) as work:
                ((task, group),) = work.pairs()
                assert (
                    len(asyncio.run(jg.Planner(jury).aestimate_requests(task, group)))
                    == estimate.expected.calls
                )
            score(tmp_path / "run", tasks, wanted)
            pairs = 3 * unknown
            assert estimate.expected.calls + pairs == server.count == 2 + 3 + unknown

    def test_tokens_follow_from_the_requests(self, tmp_path: Path, server: Server) -> None:
        tasks = write_tasks(tmp_path, [make_task("a", "roses: „rot“", criteria=2)])
        estimate = forecast(tmp_path / "run", tasks, judge_config(server.url, max_tokens=100))
        score(tmp_path / "run", tasks, judge_config(server.url, max_tokens=100))
        (sent,) = (seen.body for seen in server.requests)
        texts = sum(len(message["content"].encode()) for message in sent["messages"])
        schema = sent["response_format"]["json_schema"]["schema"]
        whole = texts + len(json.dumps(schema, separators=(",", ":"), ensure_ascii=False).encode())
        assert estimate.low == ModelUsage(1, -(-texts // 5), 40)
        assert estimate.expected == ModelUsage(1, -(-whole // 4), 100)
        assert estimate.worst.tokens_out == 200
        assert estimate.worst.tokens_in > 2 * whole

    def test_equal_requests_of_two_tasks_count_once(self, tmp_path: Path) -> None:
        one, other = (make_task(name, "the same", criteria=1) for name in "ab")
        tasks = write_tasks(tmp_path, [one, {**other, "query": one["query"]}])
        assert call_counts(forecast(tmp_path / "run", tasks, judge_config(NOBODY))) == (1, 1, 2)

    def test_cached_requests_are_not_counted(self, tmp_path: Path, server: Server) -> None:
        known = make_task("a", *TEXTS, criteria=1)
        score(tmp_path / "one", write_tasks(tmp_path, [known]), judge_config(server.url))
        tasks = write_tasks(tmp_path, [known, make_task("b", *TEXTS, criteria=1)])
        estimate = forecast(tmp_path / "other", tasks, judge_config(server.url))
        assert (call_counts(estimate), estimate.from_cache, estimate.from_run) == ((2, 2, 4), 2, 0)
        assert call_counts(
            forecast(tmp_path / "other", tasks, judge_config(server.url, cache=False))
        ) == (4, 4, 8)

    def test_calls_of_an_interrupted_run_are_not_counted(
        self, tmp_path: Path, server: Server
    ) -> None:
        tasks = write_tasks(tmp_path, [make_task(name, *TEXTS, criteria=1) for name in "ab"])
        with pytest.raises(BudgetExceeded):
            score(
                tmp_path / "run",
                tasks,
                judge_config(server.url, cache=False, concurrency=1),
                max_calls=3,
            )
        assert server.count == 3
        before = (tmp_path / "run" / "run.sqlite").read_bytes()
        estimate = forecast(tmp_path / "run", tasks, judge_config(server.url, cache=False))
        assert (call_counts(estimate), estimate.from_cache, estimate.from_run) == ((1, 1, 2), 0, 1)
        assert (tmp_path / "run" / "run.sqlite").read_bytes() == before
        score(tmp_path / "run", tasks, judge_config(server.url, cache=False))
        assert server.count == 4

    def test_a_request_that_follows_from_a_known_reply_is_counted(self, tmp_path: Path) -> None:
        tasks = write_tasks(tmp_path, [make_task("a", *TEXTS)])
        recorded = tmp_path / "calls.jsonl"
        with run_server(lambda body, number: reply_with("a word")) as server:
            model = {**judge_config(server.url, record=str(recorded)), "reward": {"Follows": 1.0}}
            wanted = {**model, "evaluators": [FOLLOWS]}
            assert call_counts(forecast(tmp_path / "run", tasks, wanted)) == (2, 2, 4)
            score(tmp_path / "run", tasks, wanted)
            assert server.count == 4
            recorded.unlink()
            estimate = forecast(tmp_path / "other", tasks, wanted)
        assert (call_counts(estimate), estimate.from_cache) == ((0, 0, 0), 4)
        assert not recorded.read_bytes()

    def test_carried_over_verdicts_are_not_counted(self, tmp_path: Path, server: Server) -> None:
        once = judge_config(server.url, cache=False)
        score(tmp_path / "old", write_tasks(tmp_path, [make_task("a", *TEXTS, criteria=1)]), once)
        tasks = write_tasks(tmp_path, [make_task("a", TEXTS[0], "another", criteria=1)])
        assert call_counts(forecast(tmp_path / "new", tasks, once, tmp_path / "old")) == (1, 1, 2)


GATED = {"rubric": {"if_skipped": "zero"}}


class TestScreening:
    def test_screening_by_a_rule_is_evaluated(self, tmp_path: Path) -> None:
        screened = (
            judge_config(
                NOBODY, evaluator_config("same"), when={"question": "same", "threshold": 0.5}
            )
            | GATED
        )
        lines = [
            make_task(name, "a text", criteria=1, data={"same": value})
            for name, value in (("a", 0.9), ("b", 0.1))
        ]
        estimate = forecast(tmp_path / "run", write_tasks(tmp_path, lines), screened)
        assert call_counts(estimate) == (1, 1, 2)

    def test_screening_by_a_model_is_assumed_to_pass(self, tmp_path: Path) -> None:
        when = {"question": "criteria@c0", "threshold": 1.0}
        both = (
            judge_config(NOBODY, {"use": "criteria", "name": "again", "samples": 2, "when": when})
            | GATED
        )
        tasks = write_tasks(tmp_path, [make_task("a", "a text", criteria=1)])
        assert call_counts(forecast(tmp_path / "run", tasks, both)) == (2, 2, 4)


class TestCost:
    def test_the_cost_follows_from_tokens_and_price(self, tmp_path: Path) -> None:
        tasks = write_tasks(tmp_path, [make_task("a", *TEXTS)])
        estimate = forecast(
            tmp_path / "run",
            tasks,
            judge_config(NOBODY, prices={"tiny": {"input": 2.0, "output": 8.0}}),
        )
        for load in (estimate.low, estimate.expected, estimate.worst):
            assert load.cost == pytest.approx((2 * load.tokens_in + 8 * load.tokens_out) / 1e6)

    def test_repaired_replies_stay_within_the_worst_case(self, tmp_path: Path) -> None:
        def script(body: dict[str, Any], number: int) -> Answer:
            return judge_reply(body) if len(body["messages"]) > 2 else reply_with("no " * 1000)

        prices = {"tiny": {"input": 1e6, "output": 0.0}}
        tasks = write_tasks(tmp_path, [make_task("a", *TEXTS)])
        with run_server(script) as server:
            estimate = forecast(
                tmp_path / "run", tasks, judge_config(server.url, prices=prices, max_tokens=3000)
            )
            score(tmp_path / "run", tasks, judge_config(server.url, prices=prices, max_tokens=3000))
            sent = [seen.body for seen in server.requests]
        assert len(sent) == estimate.worst.calls == 8
        read = sum(
            len(message["content"].encode()) + 16 for body in sent for message in body["messages"]
        )
        assert estimate.worst.tokens_in > read > estimate.expected.tokens_in
        assert estimate.worst.cost is not None
        assert estimate.worst.cost > estimate.worst.calls * (TOKENS_IN + TOKENS_OUT)


def test_without_a_model_there_is_no_estimate(tmp_path: Path) -> None:
    REQUESTED.clear()
    tasks = write_tasks(tmp_path, [make_task("a", *TEXTS, data={"same": 1.0, "tone": 1.0})])
    assert forecast_work(tmp_path / "run", tasks).model is None
    assert REQUESTED == []


@pytest.mark.parametrize(
    ("fields", "size", "requests"),
    [
        ({"scope": "pair"}, 1, 1),
        ({"scope": "group", "samples": 3}, 1, 1),
        ({"scope": "pair", "pairs": "unordered"}, 2, 1),
        ({"scope": "pair", "pairs": "unordered", "needs": ("x",)}, 2, 2),
        ({"scope": "pair", "pairs": "unordered"}, 3, 3),
        ({"samples": 2}, 3, 6),
        ({"scope": "turn", "samples": 2}, 3, 2 * (1 + 2 + 3)),
    ],
)
def test_verdicts_never_exceed_the_forecast(
    fields: dict[str, Any], size: int, requests: int
) -> None:
    with jg.Jury.from_config({"evaluators": [evaluator_config("own")]}) as jury:
        plan = jury.prepare(jg.Task(id="t", query="?"))
        question = Question.model_validate(plan.survey.questions[0].model_dump() | fields)
        survey = plan.survey.model_copy(update={"questions": (question,)})
        messages = [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Why?"}]
        responses = [jg.Response(id=f"r{n}", messages=messages * (n + 1)) for n in range(size)]
        expected = RemainingWork()
        expected.add_group(survey.questions, responses, jury.evaluators)
    assert expected.verdicts == requests


REQUESTS = st.builds(
    Request,
    provider=st.just("openai-compatible"),
    model=st.just("tiny"),
    messages=st.lists(st.text(max_size=50), min_size=1, max_size=3).map(
        lambda texts: tuple(Message(role="user", content=text) for text in texts)
    ),
    parameters=st.just({}) | st.integers(1, 5000).map(lambda most: {"max_tokens": most}),
    answer=st.none() | st.just({"type": "object"}),
)


@given(st.lists(REQUESTS, max_size=4), st.integers(1, 5000))
def test_low_is_at_most_expected_and_expected_at_most_worst(
    requests: list[Request], usual: int
) -> None:
    price = Price(input=3.0, output=7.0)
    backend: Backend = OpenAICompatibleBackend(NOBODY, "tiny")
    gateway = Gateway(backend, RequestLimiter(1), CallsConfig(max_tokens=usual), price=price)
    estimator = CallCostEstimator(Gateways({None: gateway}))
    estimator.add(requests)
    estimate = estimator.estimate()
    for less, more in ((estimate.low, estimate.expected), (estimate.expected, estimate.worst)):
        assert less.calls <= more.calls
        assert less.tokens_in <= more.tokens_in
        assert less.tokens_out <= more.tokens_out
        assert (less.cost or 0.0) <= (more.cost or 0.0)
    once = {request.digest: request for request in requests}.values()
    assert estimate.expected.calls == len(once)
    texts = [
        (sum(len(m.content.encode()) for m in one.messages), len(one.messages)) for one in once
    ]
    assert (estimate.worst.cost or 0.0) >= sum(
        highest_request_cost(price, size, number, 1) or 0.0 for size, number in texts
    )
