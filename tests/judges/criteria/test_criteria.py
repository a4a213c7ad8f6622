"""Criteria of a rubric: each is judged and measured in its own form."""

import json
from typing import Any

import pytest

from jurygraph import Task, conformance
from tests.judges.criteria.people import people
from tests.judges.criteria.scripted_judge import (
    fenced,
    find_everything,
    find_nothing,
    parts_reply,
    reply_in_turn,
    reply_to_all,
    score_by_script,
    user_message,
)
from tests.models.judge_scripts import Script, items_of, responses
from tests.models.server import Answer, reply_with, run_server

FORMS: list[dict[str, Any]] = [
    {"id": "a-clear", "text": "It is clear.", "weight": 1.0},
    {
        "id": "b-kind",
        "text": "How kind?",
        "weight": 1.0,
        "scale": [1, 10],
        "anchors": {"10": "very", "1-3": "rude", "4-9": "so so"},
    },
    {
        "id": "c-whole",
        "text": "It says what, and when.",
        "weight": 1.0,
        "parts": [{"text": "what is said"}, {"text": "a time is given", "weight": 3.0}],
    },
    {"id": "d-rude", "text": "It is rude.", "weight": -1.0},
]


def of(*criteria: dict[str, Any], **fields: Any) -> Task:
    return Task.model_validate(
        {"id": "letter", "query": "Write.", "rubric": {"criteria": criteria}} | fields
    )


TASK = of(*FORMS)


# The forms


def test_criteria_of_all_forms_are_judged_in_one_call() -> None:
    (trace,), (body,) = score_by_script(find_everything, TASK, responses("Dear Ann, at nine"))
    fields = [list(item["properties"]) for item in items_of(body).values()]
    assert fields == [
        ["reason", "quotes", "met", "probability"],
        ["reason", "quotes", "value"],
        ["reason", "part_1", "part_2"],
        ["reason", "quotes", "met", "probability"],
    ]
    found = [(one.subject, one.score, one.met, one.native, one.scale) for one in trace.verdicts]
    assert found == [
        ("a-clear", 0.9, True, "P(met) as stated", None),
        ("b-kind", 1.0, None, 10.0, (1.0, 10.0)),
        ("c-whole", 1.0, True, 4.0, (0.0, 4.0)),
        ("d-rude", 0.9, True, "P(met) as stated", None),
    ]
    assert all(
        [one.quote for one in verdict.evidence] == ["Dear Ann, at nine"]
        for verdict in trace.verdicts
    )


def test_anchors_are_shown_by_value_and_parts_in_the_order_of_the_file() -> None:
    _, (body,) = score_by_script(find_nothing, TASK, responses("Dear Ann"))
    assert fenced("How kind?\n1-3: rude\n4-9: so so\n10: very", "item") in user_message(body)
    assert fenced(
        "It says what, and when.\npart_1: what is said\npart_2: a time is given", "item"
    ) in user_message(body)
    assert "give as `value` a number from 1 (not at all) to 10 (wholly)" in user_message(body)


def test_weights_of_parts_count_and_are_not_shown_to_the_model() -> None:
    reply = {"criterion_1": parts_reply(["Dear Ann"], None)}
    light, heavy = (
        of({**FORMS[2], "parts": [{"text": "a", "weight": w}, {"text": "b"}]}) for w in (1.0, 3.0)
    )
    shown, scores = [], []
    for task in (light, heavy):
        (trace,), (body,) = score_by_script(reply_in_turn(reply), task, responses("Dear Ann"))
        shown.append(user_message(body))
        scores.append(trace.verdicts[0].score)
    assert shown[0] == shown[1]
    assert scores == [0.5, 0.75]


# The conformance suite


def by_what_is_shown(body: dict[str, Any], number: int) -> Answer:
    """Another verdict for another request, and the same for the same."""
    return reply_with(json.dumps(reply_to_all(body, found=len(user_message(body)) % 2 == 0)))


def unruly(body: dict[str, Any], number: int) -> Answer:
    """The same, and for some requests a reply that misquotes, or that is none."""
    reply = (
        reply_to_all(body, quotes=["what nobody said"])
        if len(user_message(body)) % 3
        else "Well, …"
    )
    return reply_with(reply if isinstance(reply, str) else json.dumps(reply))


@pytest.mark.parametrize("script", [by_what_is_shown, unruly])
@pytest.mark.parametrize("profile", ["full", "compact"])
@pytest.mark.parametrize(
    ("name", "questions"), [("criteria", len(FORMS)), ("preferences", 6), ("checklist", 1)]
)
def test_each_evaluator_of_items_passes_the_conformance_suite(
    name: str, questions: int, profile: str, script: Script
) -> None:
    task = people(rubric={"criteria": FORMS})
    use = {
        "use": name,
        "params": {"profile": profile, **({"audience": "task"} if name == "checklist" else {})},
    }
    with run_server(script) as server:
        model = f"openai-compatible:{server.url}#tiny"
        seen = conformance.check_evaluator(
            use, [(task, responses("Dear Ann", "Dear Bo, Dear Cy", "Go"))], model=model
        )
        assert seen == questions * (3 + len(conformance.ODD_RESPONSE_TEXTS))
        assert server.count > 0
