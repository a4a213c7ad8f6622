"""A long response with long quotations does not delay the others of its group."""

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest

from tests.models.judge_scripts import jury, requested_items, response_in, responses, rubric
from tests.models.server import Answer, reply_with, run_server, slow

CRITERIA = ("kind", "short", "clear", "warm")
HONEST = "The letter is kind, and it names a day and an hour to meet."
HOSTILE = "a" * 100_000
DEADLINE = 12.0


def echo(body: dict[str, Any], number: int) -> Answer:
    """Everything is met, with quotations as long and as many as a reply may hold."""
    text = response_in(body)
    quotes = [text[: 999 - place] for place in range(3)] if len(text) > 1_000 else [text]
    met = {"reason": "as it reads", "quotes": quotes, "met": True, "probability": 0.9}
    reply = reply_with(json.dumps(dict.fromkeys(requested_items(body), met)))
    return reply if len(text) > 1_000 else slow(2.0, reply)


@pytest.mark.exhaustive
def test_honest_responses_meet_their_deadline_next_to_one_with_long_quotations() -> None:
    """Each quotation overlaps itself everywhere, so that to look for it once took a second of the event loop.

    Honest replies come while the long ones are checked; on a busy loop they would be read too late.
    """

    async def scored(url: str) -> list[list[str]]:
        async with aclosing(jury(url, deadline=DEADLINE)) as judges:
            groups = [(rubric(*CRITERIA, name=f"task-{place}"), HONEST) for place in range(30)]
            hostile = judges.ascore(rubric(*CRITERIA, name="hostile"), responses(HOSTILE))
            honest = [judges.ascore(task, responses(text, task=task.id)) for task, text in groups]
            traces = await asyncio.gather(hostile, *honest)
        return [[verdict.status for trace in of_one for verdict in trace.verdicts] for of_one in traces]

    with run_server(echo) as server:
        hostile, *honest = asyncio.run(scored(server.url))
    assert hostile == ["failed"] * len(CRITERIA)
    assert honest == [["ok"] * len(CRITERIA)] * 30
