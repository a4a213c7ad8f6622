"""A hearing: evaluators before a model that says what a test scripts, over HTTP or in this process."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jurygraph import (
    Criterion,
    EvaluatorInput,
    Jury,
    Response,
    Task,
    TaskView,
    Trace,
    Verdict,
    testing,
)
from jurygraph.judges.criteria import Criteria, JudgeEvaluator
from jurygraph.models.gateway import Gateway
from jurygraph.models.judge_client import JudgeClient
from jurygraph.models.limits import RequestLimiter
from jurygraph.models.request import Request
from jurygraph.safety.gates import TextFence
from jurygraph.schema import CallsConfig, SafetyConfig
from tests.models.judge_scripts import Script, config, items_of, quotable, response_in
from tests.models.server import Answer, reply_with, run_server

Body = Mapping[str, Any]


# What a model says


def binary_reply(
    met: Any = True, probability: Any = None, reason: Any = "so it is", quotes: Any = ()
) -> dict[str, Any]:
    """A reply about something that is met or not; as likely as it is met, unless told."""
    likely = (0.9 if met else 0.1) if probability is None else probability
    return {"reason": reason, "quotes": list(quotes), "met": met, "probability": likely}


def scale_reply(value: Any, *quotes: str, reason: str = "so it is") -> dict[str, Any]:
    """A reply about something on a scale."""
    return {"reason": reason, "quotes": list(quotes), "value": value}


def parts_reply(*parts: Sequence[str] | None, reason: str = "so it is") -> dict[str, Any]:
    """A reply about something in parts: what is quoted for each that is met, None for one that is not."""
    told = [{"quotes": list(quotes or ()), "met": quotes is not None} for quotes in parts]
    return {"reason": reason, **{f"part_{place}": part for place, part in enumerate(told, start=1)}}


def reply_to_all(
    body: Body, found: bool = True, quotes: Sequence[str] | None = None
) -> dict[str, Any]:
    """What fits a request: everything is `found` in the response, wholly, or nothing is."""
    if found and quotes is None:
        quotes = quotable(response_in(body))
    return {
        name: _fitting(schema, found, list(quotes or [])) for name, schema in items_of(body).items()
    }


def _fitting(schema: Mapping[str, Any], found: bool, quotes: list[str]) -> dict[str, Any]:
    fields = schema["properties"]
    low, high = bounds_of(fields["value"]) if "value" in fields else (0, 0)
    values = {
        "reason": "so it is",
        "quotes": quotes,
        "met": found,
        "probability": 0.9 if found else 0.1,
        "value": high if found else low,
    }
    return {
        name: values[name] if name in values else _fitting(part, found, quotes)
        for name, part in fields.items()
    }


def bounds_of(schema: Mapping[str, Any]) -> tuple[float, float]:
    """The bounds of a number that may be null."""
    number, null = schema["anyOf"]
    assert null == {"type": "null"}
    return number["minimum"], number["maximum"]


def find_everything(body: dict[str, Any], number: int) -> Answer:
    """Everything is found in every response, and its first line quoted for it."""
    return reply_with(json.dumps(reply_to_all(body)))


def find_nothing(body: dict[str, Any], number: int) -> Answer:
    """Nothing is found in any response."""
    return reply_with(json.dumps(reply_to_all(body, found=False)))


def reply_in_turn(*answers: Any) -> Script:
    """These answers in turn, and the last one from then on; what is no answer is said as JSON, or as it is."""
    given = [
        one if callable(one) else reply_with(one if isinstance(one, str) else json.dumps(one))
        for one in answers
    ]
    return lambda body, number: given[min(number, len(given)) - 1]


def criterion_reply(**fields: Any) -> dict[str, Any]:
    """A reply to a request about one criterion that is met or not."""
    return {"criterion_1": binary_reply(**fields)}


# A jury before a server


def score_by_script(
    script: Script,
    task: Task,
    group: Sequence[Response],
    *,
    use: Sequence[Any] = ("criteria",),
    safety: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    **calls: Any,
) -> tuple[list[Trace], list[dict[str, Any]]]:
    """The traces of a group, and the bodies of all requests; `settings` are what else the config says."""
    with run_server(script) as server:
        said_so = {
            **config(server.url, **calls),
            "evaluators": list(use),
            "safety": dict(safety or {}),
        }
        with Jury.from_config(said_so | dict(settings or {})) as jury:
            traces = jury.score(task, group)
        return traces, [seen.body for seen in server.requests]


def user_message(body: Body) -> str:
    """What the user's message of a request says: the task, the response, and what is asked."""
    return str(body["messages"][1]["content"])


def fenced(text: str, name: str) -> str:
    """A text as it stands in prompts of a project without a key."""
    return TextFence().enclose(text, name)


# An evaluator before a model in this process


def answer_questions(
    evaluator: JudgeEvaluator,
    build: Callable[[JudgeClient], Sequence[EvaluatorInput]],
    answers: Mapping[str, testing.Answer] | Sequence[testing.Answer],
    safety: SafetyConfig | None = None,
) -> tuple[list[Verdict], list[Request]]:
    """Return the verdicts on all asks, in their order, and the requests that were made for them."""
    judge = testing.ScriptedJudge(answers)

    async def ask() -> list[Verdict]:
        gateway = Gateway(judge, RequestLimiter(32), CallsConfig())
        verdicts = await evaluator.answer_all(build(JudgeClient(gateway, safety or SafetyConfig())))
        await gateway.close()
        return verdicts

    return asyncio.run(ask()), judge.requests


def views(*names: str, **fields: Any) -> list[TaskView]:
    """Views of criteria of these names."""
    criteria = [Criterion(id=name, text=f"It is {name}.", weight=1.0) for name in names]
    return [view(about, **fields) for about in criteria]


def view(about: Any, **fields: Any) -> TaskView:
    audience = type(about).__name__.lower()
    given: dict[str, Any] = {
        "id": "letter",
        "query": "Write a letter.",
        "audience": audience,
    } | fields
    return TaskView(about=about, **given)


def evaluator_inputs(
    model: JudgeClient,
    about: Sequence[TaskView],
    group: Sequence[Response],
    samples: int = 1,
    evaluator: JudgeEvaluator | None = None,
) -> list[EvaluatorInput]:
    """Everything that is asked about these views and responses."""
    asking = evaluator or Criteria()
    return [
        EvaluatorInput(question, each, (response,), ({},), sample, model)
        for each in about
        for question in asking.questions(each)
        for response in group
        for sample in range(samples)
    ]
