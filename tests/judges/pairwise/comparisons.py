"""Judges that compare responses, before a server that scripts what they say."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jurygraph import Jury, Response, Task, Trace
from tests.models.judge_scripts import config, quotable
from tests.models.server import Answer, Script, reply_with, run_server

Body = Mapping[str, Any]
Order = Callable[[Mapping[str, str]], Sequence[str]]
"""From the responses by their letters to the letters, the best first."""

TASK = Task(id="letter", query="Write a letter.")
_SHOWN = re.compile(r"# Response (?P<name>[A-Z])\n\n<<<response (?P<mark>\w{16})\n(?P<text>.*?)\nresponse (?P=mark)>>>", re.DOTALL)  # fmt: skip  # noqa: E501


def responses_in(body: Body) -> dict[str, str]:
    """The responses that a request shows, by their letters."""
    return {
        found["name"]: found["text"]
        for found in _SHOWN.finditer(str(body["messages"][1]["content"]))
    }


def longest(shown: Mapping[str, str]) -> list[str]:
    """Whoever is longer is better, wherever it stands."""
    return sorted(shown, key=lambda name: -len(shown[name]))


def shown_order(shown: Mapping[str, str]) -> list[str]:
    """Whoever stands first is best: pure position bias."""
    return list(shown)


def reply(body: Body, order: Order) -> dict[str, Any]:
    """What fits a request: the best first, and its first line quoted."""
    shown = responses_in(body)
    ranked = list(order(shown))
    values = {
        "reason": "so it is",
        "quotes": quotable(shown[ranked[0]]),
        "preferred": ranked[0],
        "ranking": ranked,
    }
    return {
        name: values[name]
        for name in body["response_format"]["json_schema"]["schema"]["properties"]
    }


def judge_script(order: Order) -> Script:
    """A judge that prefers by an order."""
    return lambda body, number: reply_with(json.dumps(reply(body, order)))


def constant_judge(**stated: Any) -> Script:
    """A judge that says the same of everything, but for what it is told to say."""
    return lambda body, number: reply_with(json.dumps(reply(body, longest) | stated))


def failing_judge(fails: Callable[[Mapping[str, str]], bool], order: Order = longest) -> Script:
    """A judge whose replies are of no use where it is shown such responses."""

    def script(body: Body, number: int) -> Answer:
        return reply_with(
            "no idea" if fails(responses_in(body)) else json.dumps(reply(body, order))
        )

    return script


def responses(*texts: str) -> list[Response]:
    """Responses a, b and so on."""
    return [Response(id=chr(ord("a") + place), text=text) for place, text in enumerate(texts)]


LONGER = responses("Dear Ann", "Dear Ann, come", "Dear Ann, do come at nine")
"""Each is longer than the one before."""


def score_by_script(
    script: Script,
    group: Sequence[Response] = LONGER,
    use: str = "pairwise",
    task: Task = TASK,
    safety: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    **params: Any,
) -> tuple[list[Trace], list[dict[str, Any]]]:
    """The traces of a group under one judge, and the bodies of all requests; `settings` are the rest of the config."""
    with run_server(script) as server:
        said_so = {
            **config(server.url),
            "evaluators": [{"use": use, "params": params}],
            "safety": dict(safety or {}),
        }
        with Jury.from_config(said_so | dict(settings or {})) as jury:
            traces = jury.score(task, group)
        return traces, [seen.body for seen in server.requests]


def rewards(traces: Sequence[Trace]) -> list[float | None]:
    return [trace.reward.value for trace in traces]
