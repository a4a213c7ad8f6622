"""A model that reads profiles: what it says of each is scripted by a test, and everything around it is real."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jurygraph.schema import Task
from tests.models.server import Answer, said

Script = Callable[[dict[str, Any], int], Answer]

ANN, BEN, ZOE = (
    "I am allergic to nuts, and I would love to be near the sea.",
    "I cannot pay more than 90 euros a night.",
    "Ich brauche ein ruhiges Zimmer – Lärm über 40 dB macht mich krank. 静かな部屋がいいです。",
)


def need(quote: str, text: str = "", kind: str = "hard", restrictiveness: str = "usual") -> dict[str, Any]:
    """A constraint as a model states it."""
    return {"quote": quote, "text": text or f"It is so: {quote}", "kind": kind, "restrictiveness": restrictiveness}


def pull(one: int, other: int, strength: str = "usual", reason: str = "both cannot be had") -> dict[str, Any]:
    """A tension as a model states it."""
    return {"reason": reason, "one": f"stakeholder_{one}", "other": f"stakeholder_{other}", "strength": strength}


NEEDS: Mapping[str, Sequence[dict[str, Any]]] = {
    ANN: [
        need("I am allergic to nuts", "No nuts are served.", restrictiveness="high"),
        need("I would love to be near the sea", "It is near the sea.", kind="soft"),
    ],
    BEN: [need("cannot pay more than 90 euros a night", "A night costs 90 euros at most.")],
    ZOE: [
        need("ein ruhiges Zimmer", "The room is quiet."),
        need("静かな部屋がいいです", "静かな部屋である。", kind="soft", restrictiveness="low"),
    ],
}
"""What a model that reads well says of the profiles."""


def needs(*stated: Mapping[str, Any]) -> Answer:
    return said(json.dumps({"constraints": stated}))


def pulls(*stated: Mapping[str, Any]) -> Answer:
    return said(json.dumps({"tensions": stated}))


def parsing(
    known: Mapping[str, Sequence[Mapping[str, Any]]] = NEEDS, tensions: Sequence[Mapping[str, Any]] = ()
) -> Script:
    """A model that says of each profile what is known, and of all together these tensions."""

    def script(body: dict[str, Any], number: int) -> Answer:
        return pulls(*tensions) if asks_about_tensions(body) else needs(*known[fenced(body, "profile")])

    return script


def asks_about_tensions(body: Mapping[str, Any]) -> bool:
    return "tensions" in body["response_format"]["json_schema"]["schema"]["properties"]


def fenced(body: Mapping[str, Any], name: str) -> str:
    """What stands within the fence of this name in a request."""
    found = re.search(rf"<<<{name} ([0-9a-f]{{16}})\n(.*?)\n{name} \1>>>", shown(body), re.DOTALL)
    assert found is not None, shown(body)
    return found[2]


def shown(body: Mapping[str, Any]) -> str:
    """The first question of a request."""
    return str(body["messages"][1]["content"])


def trip(*profiles: str, name: str = "trip", **fields: Any) -> Task:
    """A task with a stakeholder for each profile: ann, ben, zoe."""
    people = [{"id": one, "profile": profile} for one, profile in zip(("ann", "ben", "zoe"), profiles, strict=False)]
    return Task.model_validate({"id": name, "query": "Plan a weekend in Brest.", "stakeholders": people, **fields})


def settings(url: str, **fields: Any) -> dict[str, Any]:
    """A config of which the model reads profiles, and somebody else judges what the stakeholders get."""
    calls = {"cache": False, "attempts": 1, **fields.pop("calls", {})}
    judge = {"use": "tests.graphs.cast:Told", "name": "kind", "params": {"audience": "stakeholder"}}
    return {"model": f"openai-compatible:{url}#tiny", "evaluators": [judge], "calls": calls, **fields}
