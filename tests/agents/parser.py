"""A model that reads profiles: what it says of each is scripted by a test, and everything around it is real."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jurygraph.schema import Task
from tests.models.server import Answer, reply_with

Script = Callable[[dict[str, Any], int], Answer]

ANN, BEN, ZOE = (
    "I am allergic to nuts, and I would love to be near the sea.",
    "I cannot pay more than 90 euros a night.",
    "Ich brauche ein ruhiges Zimmer – Lärm über 40 dB macht mich krank. 静かな部屋がいいです。",
)


def constraint(
    quote: str, text: str = "", kind: str = "hard", restrictiveness: str = "usual"
) -> dict[str, Any]:
    """A constraint as a model states it."""
    return {
        "quote": quote,
        "text": text or f"It is so: {quote}",
        "kind": kind,
        "restrictiveness": restrictiveness,
    }


def tension(
    one: int, other: int, strength: str = "usual", reason: str = "both cannot be had"
) -> dict[str, Any]:
    """A tension as a model states it."""
    return {
        "reason": reason,
        "one": f"stakeholder_{one}",
        "other": f"stakeholder_{other}",
        "strength": strength,
    }


NEEDS: Mapping[str, Sequence[dict[str, Any]]] = {
    ANN: [
        constraint("I am allergic to nuts", "No nuts are served.", restrictiveness="high"),
        constraint("I would love to be near the sea", "It is near the sea.", kind="soft"),
    ],
    BEN: [constraint("cannot pay more than 90 euros a night", "A night costs 90 euros at most.")],
    ZOE: [
        constraint("ein ruhiges Zimmer", "The room is quiet."),
        constraint(
            "静かな部屋がいいです", "静かな部屋である。", kind="soft", restrictiveness="low"
        ),
    ],
}
"""What a model that reads well says of the profiles."""


def constraints_reply(*stated: Mapping[str, Any]) -> Answer:
    return reply_with(json.dumps({"constraints": stated}))


def tensions_reply(*stated: Mapping[str, Any]) -> Answer:
    return reply_with(json.dumps({"tensions": stated}))


def parser_script(
    known: Mapping[str, Sequence[Mapping[str, Any]]] = NEEDS,
    tensions: Sequence[Mapping[str, Any]] = (),
) -> Script:
    """A model that says of each profile what is known, and of all together these tensions."""

    def script(body: dict[str, Any], number: int) -> Answer:
        return (
            tensions_reply(*tensions)
            if asks_about_tensions(body)
            else constraints_reply(*known[fenced_text(body, "profile")])
        )

    return script


def asks_about_tensions(body: Mapping[str, Any]) -> bool:
    return "tensions" in body["response_format"]["json_schema"]["schema"]["properties"]


def fenced_text(body: Mapping[str, Any], name: str) -> str:
    """What stands within the fence of this name in a request."""
    found = re.search(
        rf"<<<{name} ([0-9a-f]{{16}})\n(.*?)\n{name} \1>>>", first_question(body), re.DOTALL
    )
    assert found is not None, first_question(body)
    return found[2]


def first_question(body: Mapping[str, Any]) -> str:
    """The first question of a request."""
    return str(body["messages"][1]["content"])


def trip(*profiles: str, name: str = "trip", **fields: Any) -> Task:
    """A task with a stakeholder for each profile: ann, ben, zoe."""
    people = [
        {"id": one, "profile": profile}
        for one, profile in zip(("ann", "ben", "zoe"), profiles, strict=False)
    ]
    return Task.model_validate(
        {"id": name, "query": "Plan a weekend in Brest.", "stakeholders": people, **fields}
    )


def settings(url: str, **fields: Any) -> dict[str, Any]:
    """A config of which the model reads profiles, and somebody else judges what the stakeholders get."""
    calls = {"cache": False, "attempts": 1, **fields.pop("calls", {})}
    judge = {
        "use": "tests.graphs.scripted:ScriptedEvaluator",
        "name": "kind",
        "params": {"audience": "stakeholder"},
    }
    return {
        "model": f"openai-compatible:{url}#tiny",
        "evaluators": [judge],
        "calls": calls,
        **fields,
    }
