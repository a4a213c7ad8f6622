"""A jury with the evaluator `criteria` before a server whose replies a test scripts."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from jurygraph import Jury, Response, Task
from tests.models.server import Answer, said

Script = Callable[[dict[str, Any], int], Answer]


def rubric(*criteria: str, name: str = "letter", query: str = "Write a letter.") -> Task:
    """A task with a rubric of these criteria, each of weight 1."""
    stated = [{"id": one, "text": f"It is {one}.", "weight": 1.0} for one in criteria]
    return Task.model_validate({"id": name, "query": query, "rubric": {"criteria": stated}})


def responses(*texts: str, task: str = "letter") -> list[Response]:
    return [Response(id=f"{task}/{place}", text=text) for place, text in enumerate(texts)]


def config(url: str, **calls: Any) -> dict[str, Any]:
    """The config of such a jury; attempts follow each other at once unless `calls` say otherwise."""
    return {"model": f"openai-compatible:{url}#tiny", "evaluators": ["criteria"], "calls": calls}


def jury(url: str, **calls: Any) -> Jury:
    return Jury.from_config(config(url, **calls))


def asked_for(body: Mapping[str, Any]) -> list[str]:
    """The names of what a request wants to be answered."""
    return list(body["response_format"]["json_schema"]["schema"]["properties"])


def judged(body: Mapping[str, Any], met: bool = True, probability: float = 0.9, reason: str = "so it is") -> Answer:
    """A right reply to a request: the same of every criterion."""
    one = {"reason": reason, "met": met, "probability": probability}
    return said(json.dumps(dict.fromkeys(asked_for(body), one)))
