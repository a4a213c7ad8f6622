"""A jury with the evaluator `criteria` before a server whose replies a test scripts."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from jurygraph import Jury, Response, Task
from tests.models.server import Answer, reply_with

Script = Callable[[dict[str, Any], int], Answer]


def rubric(*criteria: str, name: str = "letter", query: str = "Write a letter.") -> Task:
    """Return a task with a rubric of these criteria, each of weight 1."""
    stated = [{"id": one, "text": f"It is {one}.", "weight": 1.0} for one in criteria]
    return Task.model_validate({"id": name, "query": query, "rubric": {"criteria": stated}})


def responses(*texts: str, task: str = "letter") -> list[Response]:
    return [Response(id=f"{task}/{place}", text=text) for place, text in enumerate(texts)]


def config(url: str, **calls: Any) -> dict[str, Any]:
    """Return the config of such a jury; retries follow at once unless `calls` differ."""
    return {"model": f"openai-compatible:{url}#tiny", "evaluators": ["criteria"], "calls": calls}


def jury(url: str, **calls: Any) -> Jury:
    return Jury.from_config(config(url, **calls))


def items_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of each item that a request asks for, by its name."""
    schema: dict[str, Any] = body["response_format"]["json_schema"]["schema"]["properties"]
    return schema


def requested_items(body: Mapping[str, Any]) -> list[str]:
    """Return the names of the items that a request asks for."""
    return list(items_of(body))


def response_in(body: Mapping[str, Any]) -> str:
    """Return the response that a request shows, within its fence."""
    shown = str(body["messages"][1]["content"])
    found = _FENCE.search(shown)
    assert found is not None, shown
    return found["inside"]


_FENCE = re.compile(
    r"<<<response (?P<mark>[0-9a-f]{16})\n(?P<inside>.*)\nresponse (?P=mark)>>>", re.DOTALL
)


def quotable(text: str) -> list[str]:
    """Return a quotation of a text: its first line that is not blank."""
    return [line for line in text.split("\n") if line.strip()][:1]


def judge_reply(
    body: Mapping[str, Any],
    met: bool = True,
    probability: float = 0.9,
    reason: str = "so it is",
    served: str = "tiny-1",
) -> Answer:
    """Return a valid reply: the same for every criterion, with a quotation of the response if it is met."""
    quotes = quotable(response_in(body)) if met else []
    one = {"reason": reason, "quotes": quotes, "met": met, "probability": probability}
    return reply_with(json.dumps(dict.fromkeys(requested_items(body), one)), served=served)
