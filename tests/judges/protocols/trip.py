"""A trip of one to eight people, plans for it, and a judge's replies by each protocol."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jurygraph import Task, Trace
from jurygraph.judges.protocols import ASPECTS, ITEM_COUNT_BY_CATEGORY, WEIGHT_BY_DIMENSION
from tests.judges.criteria.scripted_judge import score_by_script
from tests.models.judge_scripts import items_of, responses
from tests.models.server import Answer, reply_with

Body = Mapping[str, Any]

NAMES = ("ann", "bob", "cyd", "dan", "eve", "fay", "gus", "hal")
PLAN = "Saturday: herring at the Fish Bar, 12 pounds each.\nSunday: tea at the Old Mill, step-free.\nHome at six."
HERE = ("herring at the Fish Bar",)
DIRECT, RUBRIC, CHECKLIST = "protocols.direct", "protocols.rubric", "protocols.checklist"
ADAPTIVE, UNIFORM = "protocols.decomposed-adaptive", "protocols.decomposed-uniform"
ALL = (DIRECT, RUBRIC, CHECKLIST, ADAPTIVE, UNIFORM)
HOMES = {DIRECT: "direct", RUBRIC: "protocols-rubric", CHECKLIST: "checklist"} | {
    name: name.removeprefix("protocols.") for name in (ADAPTIVE, UNIFORM)
}
"""The component of each."""


def trip(number: int, **fields: Any) -> Task:
    """Return the task with so many people, in no particular order."""
    people = [
        {
            "id": name,
            "profile": f"{name} is a friend of the others",
            "constraints": [
                {"id": "wish", "kind": "soft", "text": f"Something that {name} likes."},
                {
                    "id": "need",
                    "kind": "hard",
                    "text": f"What {name} can pay.",
                    "restrictiveness": 2.0,
                },
            ],
        }
        for name in reversed(NAMES[:number])
    ]
    return Task.model_validate(
        {"id": "letter", "query": "Plan a weekend.", "stakeholders": people} | fields
    )


# What a judge says


def grounds(*quotes: str, reason: str = "so it is") -> dict[str, Any]:
    return {"reason": reason, "quotes": list(quotes)}


def direct(value: Any, quotes: Sequence[str] = HERE) -> dict[str, Any]:
    """The last aspect alone held, and is quoted for, where there is a quotation."""
    aspects: dict[str, Any] = {
        aspect: {**grounds(reason=f"as to {aspect}"), "held": False} for aspect in ASPECTS
    }
    last = {**grounds(*quotes, reason="it can be done"), "held": bool(quotes)}
    return aspects | {ASPECTS[-1]: last, "value": value}


def rubric(values: Sequence[Any], quotes: Sequence[str] = HERE) -> dict[str, Any]:
    return {
        one: {**grounds(*quotes), "value": value}
        for one, value in zip(WEIGHT_BY_DIMENSION, values, strict=True)
    }


def item(met: Any, quotes: Sequence[str] = HERE) -> dict[str, Any]:
    return {**grounds(*(quotes if met else ())), "met": met}


def checklist(own: Sequence[Sequence[bool]], common: Callable[[str], Any]) -> dict[str, Any]:
    """Everybody's own items, and what is said of each of the others by its name, such as `B1`."""
    of_each = {
        f"person_{place}": {f"A{number}": item(met) for number, met in enumerate(mets, start=1)}
        for place, mets in enumerate(own, start=1)
    }
    names = [
        f"{category}{number}"
        for category in ("BCDE" if own else "BCE")
        for number in range(1, ITEM_COUNT_BY_CATEGORY[category] + 1)
    ]
    return of_each | {name: item(common(name)) for name in names}


def constraint(held: Any, *quotes: str, what: str = "to pay little") -> dict[str, Any]:
    return {"constraint": what, **grounds(*quotes), "held": held}


def person(
    utility: Any, quotes: Sequence[str] = HERE, hard: Sequence[Any] = (), soft: Sequence[Any] = ()
) -> dict[str, Any]:
    return {
        "hard": list(hard),
        "soft": list(soft),
        "credibility": grounds(*quotes),
        "utility": utility,
    }


def decomposed(utilities: Sequence[Any], weights: Sequence[Any]) -> dict[str, Any]:
    """A utility, or all that is said of somebody, and a weight for each."""
    people = [one if isinstance(one, dict) else person(one) for one in utilities]
    names = [f"person_{place}" for place in range(1, len(people) + 1)]
    shares = {"reason": "person_1 needs it most", **dict(zip(names, weights, strict=True))}
    return {**dict(zip(names, people, strict=True)), "weights": shares}


def fitting_reply(body: Body, found: bool = True) -> dict[str, Any]:
    """Return a valid reply to a request of any protocol: everything is found in the response, or nothing."""
    fields = items_of(body)
    number = sum(name.startswith("person_") for name in fields)
    value, first = (
        10.0 if found else 1.0,
        [line for line in _response_in(body) if line.strip()][:1] if found else [],
    )
    if "value" in fields:
        return direct(value, first)
    if "weights" in fields:
        people = [person(value, first, hard=[constraint(found, *first)]) for _ in range(number)]
        return decomposed(people, [1 / number] * number)
    if "fairness" in fields:
        return rubric([value] * len(WEIGHT_BY_DIMENSION), first)
    filled = checklist([[found] * 3] * number, lambda name: found)
    return json.loads(json.dumps(filled).replace(json.dumps(list(HERE)), json.dumps(first)))


def _response_in(body: Body) -> list[str]:
    shown = str(body["messages"][1]["content"]).split("\n# Response\n")[1]
    fence = shown.strip().partition("\n")[0].removeprefix("<<<")
    return shown.partition(f"<<<{fence}\n")[2].partition(f"\n{fence}>>>")[0].split("\n")


def find_everything(body: Body, number: int) -> Answer:
    """Reply as a judge who finds everything in every response."""
    return reply_with(json.dumps(fitting_reply(body)))


def finding_nothing(body: Body, number: int) -> Answer:
    """Reply as a judge who finds nothing in any response."""
    return reply_with(json.dumps(fitting_reply(body, found=False)))


# A jury before that judge


def score_protocol(
    reply: Any, use: Any, task: Task, *texts: str, **kwargs: Any
) -> tuple[Trace, list[dict[str, Any]]]:
    """The trace of the first response, and the bodies of all requests; `reply` is said each time, or is a script."""
    script = reply if callable(reply) else lambda body, number: reply_with(json.dumps(reply))
    traces, bodies = score_by_script(
        script, task, responses(*(texts or (PLAN,))), use=[use], **kwargs
    )
    return traces[0], bodies
