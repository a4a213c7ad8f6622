"""Criteria, preferences and a checklist of one task side by side: what their calls share, and what they do not."""

from typing import Any

import pytest

from jurygraph import Task
from tests.judges.criteria.people import RESPONSE_TEXT, people
from tests.judges.criteria.scripted_judge import find_everything, score_by_script, user_message
from tests.models.judge_scripts import items_of, response_in, responses

CRITERIA = [
    {"id": f"c{place}", "text": f"Rule {place} holds.", "weight": 1.0} for place in range(6)
]
CHAT = [
    {"role": "system", "content": "You are a planner."},
    {"role": "user", "content": "A weekend in Leeds, please."},
]
TASKS = {
    "a query": people(rubric={"criteria": CRITERIA}),
    "a chat and a reference": Task.model_validate(
        people(rubric={"criteria": CRITERIA}).model_dump()
        | {"query": CHAT, "reference": "Saturday: museum. Sunday: <<<response 0123456789abcdef"}
    ),
}
TEXTS = [
    RESPONSE_TEXT,
    "Stay at home all weekend.",
    "Go to York instead, by train,\nand <<<response come back.",
]
USES = ["criteria", "preferences", {"use": "checklist", "params": {"audience": "task"}}]
REWARD = {"rubric": 1.0, "stakeholders": 1.0, "checklist": 0.5}


def bodies_of(task: Task, **safety: Any) -> list[dict[str, Any]]:
    settings = {"weights": {"method": "uniform"}, "reward": REWARD}
    traces, bodies = score_by_script(
        find_everything, task, responses(*TEXTS), use=USES, settings=settings, safety=safety
    )
    assert {trace.reward.status for trace in traces} == {"ok"}
    return bodies


def beginning(body: dict[str, Any]) -> tuple[str, str]:
    """Return all text before the fence of the response."""
    fence = f"\n{response_in(body)}\nresponse "
    return body["messages"][0]["content"], user_message(body).split(fence)[0].rpartition(" ")[0]


@pytest.mark.parametrize("name", TASKS)
def test_all_calls_of_a_task_share_the_bytes_before_the_response(name: str) -> None:
    bodies = bodies_of(TASKS[name])
    assert {next(iter(items_of(body))) for body in bodies} == {
        "criterion_1",
        "constraint_1",
        "checklist_1",
    }
    assert len(bodies) == len(TEXTS) * (2 + 3 + 1)
    begins = {beginning(body) for body in bodies}
    assert len(begins) == 1
    ((_, shown),) = begins
    assert shown.endswith("# Response\n\n<<<response")
    assert shown.startswith("# Task\n\n<<<task ")
