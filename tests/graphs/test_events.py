"""The events of scoring: a verdict's comes as its answer arrives, and what is stored does not depend on a listener."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.models.request import Reply, Request
from jurygraph.safety.evidence import LONG_TEXT_LENGTH
from jurygraph.testing import ScriptedJudge
from tests.rows import all_rows
from tests.virtual_time import run_held

TASK = jg.Task(id="letter", query="Write to Ann.")
HELD = "The slow one."
"""The text of a response about which nothing is answered until the test releases it."""
SECRET = "sk-abcdefghijklmnop0123456789"


class Gate:
    """Lets answers about the held response through, once it is open."""

    released = asyncio.Event()


async def wait_for_release(text: str) -> None:
    if text.startswith(HELD):
        await Gate.released.wait()


class SlowJudge(ScriptedJudge):
    async def complete(self, request: Request, timeout: float) -> Reply:
        await wait_for_release(HELD * any(HELD in message.content for message in request.messages))
        return await super().complete(request, timeout)


class OneByOne(jg.Evaluator):
    bounds_its_time = True

    async def answer(self, inputs: jg.EvaluatorInput) -> jg.Verdict:
        await wait_for_release(inputs.response.text)
        return jg.Verdict(score=0.5, reason=SECRET)


class Batch(OneByOne):
    batched = True

    async def answer_all(self, batch: Sequence[jg.EvaluatorInput]) -> list[jg.Verdict]:
        for inputs in sorted(batch, key=lambda inputs: inputs.response.text.startswith(HELD)):
            inputs.report(await self.answer(inputs))
        return [jg.Verdict(score=0.5, reason=SECRET)] * len(batch)


class FailsLater(Batch):
    async def answer_all(self, batch: Sequence[jg.EvaluatorInput]) -> list[jg.Verdict]:
        await super().answer_all(batch)
        raise OSError("the disk is full")


class FindsSecret(OneByOne):
    async def answer(self, inputs: jg.EvaluatorInput) -> jg.Verdict:
        verdict = await super().answer(inputs)
        if inputs.response.text.startswith(HELD):
            os.environ["SOME_API_KEY"] = SECRET
        return verdict


class Code(jg.Evaluator):
    runs_inline = True

    def answer(self, inputs: jg.EvaluatorInput) -> float:
        return 0.25


def open_jury(judge: dict[str, Any]) -> jg.Jury:
    model = SlowJudge({"": True})
    evaluators = [judge | {"name": "judge"}, {"use": Code(), "name": "code"}]
    return jg.Jury(model=model, evaluators=evaluators, reward={"judge": 1.0, "code": 0.5})


async def stream_until_released(
    jury: jg.Jury, texts: Sequence[str], expected: int
) -> list[jg.JuryEvent]:
    """Return all events; a reply stays open until so many verdicts came."""
    events: list[jg.JuryEvent] = []
    stream = jury.as_runnable().astream({"task": TASK, "responses": texts})
    async with aclosing(stream) as streamed:  # type: ignore[type-var]
        async for event in streamed:
            events.append(event)
            if sum(event.event == "verdict" for event in events) == expected:
                Gate.released.set()
    return events


def last_verdicts(events: Sequence[jg.JuryEvent]) -> list[jg.RecordedVerdict]:
    by_key = {
        event.verdict.key: event.verdict for event in events if isinstance(event, jg.VerdictGiven)
    }
    return sorted(by_key.values(), key=lambda verdict: verdict.key.sort_key)


@pytest.fixture(autouse=True)
def without_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "")


@all_rows(
    "judge, length, repeated",
    [
        (jg.criteria(["It is polite.", "It is short."]), 0, 0),
        (jg.criteria(["It is polite."]), LONG_TEXT_LENGTH, 0),
        ({"use": OneByOne()}, 0, 0),
        ({"use": OneByOne()}, LONG_TEXT_LENGTH, 0),
        ({"use": Batch()}, 0, 0),
        ({"use": FailsLater()}, 0, 2),
        ({"use": FindsSecret()}, 0, 1),
    ],
)
def test_a_verdict_comes_while_another_reply_of_its_group_is_open(
    judge: dict[str, Any], length: int, repeated: int
) -> None:
    """Those of the quick response, and of code, come first; one that is different in the end comes again."""
    Gate.released = asyncio.Event()
    texts = ["Quick.".ljust(length, "."), HELD.ljust(length, ".")]
    with open_jury(judge) as jury:
        questions = len(jury.prepare(TASK).survey.questions)
        early = questions + 1  # all about the quick response, and the code's about the other
        events = run_held(stream_until_released(jury, texts, early))
    with open_jury(judge) as jury:
        expected = jury.score(TASK, texts)
    traces = [event.trace for event in events if event.event == "reward"]
    assert [trace.digest for trace in traces] == [trace.digest for trace in expected]
    stored = [verdict for trace in traces for verdict in trace.verdicts]
    assert last_verdicts(events) == sorted(stored, key=lambda verdict: verdict.key.sort_key)
    assert [event.event for event in events].count("verdict") == 2 * questions + repeated


def test_the_error_of_a_listener_is_that_of_the_scoring() -> None:
    Gate.released = asyncio.Event()

    def listen(event: jg.JuryEvent) -> None:
        if event.event == "verdict":
            Gate.released.set()
            raise RuntimeError("the display is closed")

    with (
        open_jury({"use": OneByOne()}) as jury,
        pytest.raises(RuntimeError, match="the display is closed"),
    ):
        run_held(jury._score_group(jg.Group(TASK, ["Quick.", HELD]), listen))
