"""Pairs of an answer and a reference, judged by hand: `pairs.jsonl`.

`missed` marks the equal ones that the parser cannot read, such as times of day and ranges: they get no credit.
"""

import asyncio
import contextlib
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph import Jury, Response, Task
from jurygraph.agents.maths.comparison import compare, comparison_pool, required_unit
from jurygraph.agents.worker_pool import WorkerPool
from jurygraph.errors import TimeLimitExceeded
from tests.rows import all_rows

PAIRS = [json.loads(line) for line in Path(__file__).with_name("pairs.jsonl").read_text("utf-8").splitlines()]


HOSTILE = (r"9^{9^{9^{9}}}", "10**10**10", "18 * 10^{999999999}", r"3 \times 10^{999} km", "(10^9)!", "18 cm**99999999")
"""Answers that are compared by a worker alone, since it takes seconds or never ends."""


def texts_of(pair: dict[str, Any]) -> tuple[str, str, str]:
    return pair["answer"], pair["reference"], required_unit(pair.get("question", ""))


def is_credited(pair: dict[str, Any]) -> bool:
    return pair["equal"] and "missed" not in pair


@pytest.mark.landing
@all_rows("topic", dict.fromkeys(pair["topic"] for pair in PAIRS))
def test_every_pair_is_judged_as_by_hand(topic: str) -> None:
    pairs = [pair for pair in PAIRS if pair["topic"] == topic and pair["answer"] not in HOSTILE]
    assert [pair for pair in pairs if (compare(*texts_of(pair)) == "equal") != is_credited(pair)] == []


@pytest.mark.exhaustive
def test_no_hostile_answer_equals_its_reference() -> None:
    with closing(comparison_pool(time_limit=3)) as pool:
        for pair in (pair for pair in PAIRS if pair["answer"] in HOSTILE):
            assert not pair["equal"]
            with contextlib.suppress(TimeLimitExceeded):
                assert asyncio.run(pool.call(*texts_of(pair))) != "equal"


def test_numbers_are_compared_without_a_worker_and_expressions_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    send = WorkerPool.call
    monkeypatch.setattr(
        WorkerPool, "call", lambda pool, answer, *rest: (sent.append(answer), send(pool, answer, *rest))[1]
    )
    texts = ["42", "42.0 apples", "41", "forty-two of them", "40 + 2", "42" + " " * 200 + "apples"]
    task = Task(id="sum", query="How much is it?", reference="A: 42")
    with Jury.from_config({"evaluators": ["maths.accuracy"]}) as jury:
        traces = jury.score(task, [f"<answer>{text}</answer>" for text in texts])
    assert [trace.verdicts[0].score for trace in traces] == [1.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    assert sorted(sent) == sorted(texts[-2:])


def test_the_unit_that_the_question_asks_for_decides_for_a_bare_reference() -> None:
    task = Task(id="eggs", query="Each egg is $0.08. How much in dollars are 100 eggs?", reference="A: 8")
    texts = {"dollars": "A: $8", "cents": "A: 800 cents", "number": "A: 8", "mistaken": "A: 8 cents"}
    with Jury.from_config({"evaluators": ["maths.accuracy"]}) as jury:
        traces = jury.score(task, [Response(id=name, text=text) for name, text in texts.items()])
    scores = {trace.response_id: trace.verdicts[0].score for trace in traces}
    assert scores == {"dollars": 1.0, "cents": 1.0, "number": 1.0, "mistaken": 0.0}
