"""A model that annotates rubrics: what it says is scripted by a test, and everything around it is real."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jurygraph.schema import Task
from tests.models.server import Answer, reply_with

Script = Callable[[dict[str, Any], int], Answer]
Edges = Mapping[tuple[str, str], str]


def rubric_task(
    criteria: Mapping[str, tuple[float, str | None]], name: str = "letter", **fields: Any
) -> Task:
    """A task with a criterion for each id, of this weight and role."""
    listed = [
        {
            "id": one,
            "text": f"It is about {one}.",
            "weight": weight,
            **({} if role is None else {"role": role}),
        }
        for one, (weight, role) in criteria.items()
    ]
    rubric = {"criteria": listed, **fields}
    return Task.model_validate(
        {"id": name, "query": "Write a letter to the landlord.", "rubric": rubric}
    )


def cores(*names: str) -> dict[str, tuple[float, str | None]]:
    return dict.fromkeys(names, (1.0, "core"))


def edge_reply(
    parent: str, child: str, relation: str, confidence: int = 75, reason: str = "it rests on it"
) -> dict:  # type: ignore[type-arg]
    """An answer about a pair as a model gives it."""
    return {
        "reason": reason,
        "parent": parent,
        "child": child,
        "relation": relation,
        "confidence": confidence,
    }


def edges_reply(*stated: Mapping[str, Any]) -> Answer:
    return reply_with(json.dumps({"pairs": stated}))


def roles_reply(**stated: str) -> Answer:
    listed = [
        {"reason": "so it is", "criterion": name, "role": role} for name, role in stated.items()
    ]
    return reply_with(json.dumps({"roles": listed}))


def asks_about_roles(body: Mapping[str, Any]) -> bool:
    return "roles" in body["response_format"]["json_schema"]["schema"]["properties"]


def requested_pairs(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The pairs that a request asks about."""
    return [(one["parent"], one["child"]) for one in lines(body, "pairs")]


def lines(body: Mapping[str, Any], name: str) -> list[Any]:
    """What stands within the fence of this name in a request: JSON, one a line."""
    shown = body["messages"][1]["content"]
    found = re.search(rf"<<<{name} ([0-9a-f]{{16}})\n(.*?)\n{name} \1>>>", shown, re.DOTALL)
    assert found is not None, shown
    return [json.loads(line) for line in found[2].splitlines()]


def annotator_script(
    found: Edges, given: Mapping[str, str] | None = None, beside: Iterable[Mapping[str, Any]] = ()
) -> Script:
    """A model that finds these edges and no other, gives these roles, and says this besides in every reply."""

    def script(body: dict[str, Any], number: int) -> Answer:
        if asks_about_roles(body):
            return roles_reply(**{name: (given or {})[name] for name in lines(body, "ids")})
        told = [edge_reply(*pair, found.get(pair, "none")) for pair in requested_pairs(body)]
        return edges_reply(*told, *beside)

    return script


def settings(url: str, **fields: Any) -> dict[str, Any]:
    """A config of which the model annotates."""
    calls = {"cache": False, "attempts": 1, **fields.pop("calls", {})}
    return {
        "model": f"openai-compatible:{url}#tiny",
        "evaluators": ["criteria"],
        "calls": calls,
        **fields,
    }


def triples(found: Sequence[Any]) -> list[tuple[str, str, str]]:
    return [(one.parent, one.child, one.kind) for one in found]
