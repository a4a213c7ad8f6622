"""Pairs of an answer and a reference (`pairs.jsonl`), and whole responses (`responses.jsonl`), judged by hand.

`missed` marks right ones that cannot be read, such as times of day and ranges: they get no credit.
"""

import asyncio
import contextlib
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph import Jury, Response, Task
from jurygraph.agents.maths.comparison import compare_answers, make_comparison_pool
from jurygraph.agents.maths.reading import find_required_unit
from jurygraph.agents.worker_pool import WorkerPool
from jurygraph.errors import TimeLimitExceeded
from tests.rows import all_rows


def read_lines(name: str) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in Path(__file__).with_name(name).read_text("utf-8").splitlines()
    ]


PAIRS = read_lines("pairs.jsonl")
RESPONSES = read_lines("responses.jsonl")

HOSTILE = (
    r"9^{9^{9^{9}}}",
    "10**10**10",
    "18 * 10^{999999999}",
    r"3 \times 10^{999} km",
    "(10^9)!",
    "18 cm**99999999",
)
"""Answers that are compared by a worker alone, since it takes seconds or never ends."""


def texts_of(pair: dict[str, Any]) -> tuple[str, str, str]:
    return pair["answer"], pair["reference"], find_required_unit(pair.get("question", ""))


def is_credited(pair: dict[str, Any]) -> bool:
    return pair["equal"] and "missed" not in pair


@pytest.mark.landing
@all_rows("topic", dict.fromkeys(pair["topic"] for pair in PAIRS))
def test_every_pair_is_judged_as_by_hand(topic: str) -> None:
    pairs = [pair for pair in PAIRS if pair["topic"] == topic and pair["answer"] not in HOSTILE]
    assert [
        pair for pair in pairs if (compare_answers(*texts_of(pair)) == "equal") != is_credited(pair)
    ] == []


@pytest.mark.parametrize("kind", dict.fromkeys(row["kind"] for row in RESPONSES))
def test_every_response_is_judged_as_by_hand(kind: str) -> None:
    rows = [row for row in RESPONSES if row["kind"] == kind]
    found = {}
    with Jury.from_config({"evaluators": ["maths.accuracy"]}) as jury:
        for reference in dict.fromkeys(row["reference"] for row in rows):
            texts = [row["text"] for row in rows if row["reference"] == reference]
            traces = jury.score(Task(id="t", query="?", reference=reference), texts)
            found |= {
                (reference, text): trace.verdicts[0].score
                for text, trace in zip(texts, traces, strict=True)
            }
    expected = {
        (row["reference"], row["text"]): 0.0 if "missed" in row else row["accuracy"] for row in rows
    }
    assert {pair: score for pair, score in found.items() if score != expected[pair]} == {}


UNREADABLE = (
    "3 to 5 hours",
    "18 in debt",
    r"2 \begin{pmatrix} 1 \\ 2 \end{pmatrix}",
    r"\frac{1",
    "1/0",
)


@all_rows("reference", UNREADABLE)
def test_a_reference_that_cannot_be_read_abstains_for_all_responses(reference: str) -> None:
    """Not only for those that differ: else right and wrong ones together would have a mean of 1."""
    texts = [f"\\boxed{{{reference}}}", "Answer: 18", "", reference]
    with Jury.from_config({"evaluators": ["maths.accuracy"]}) as jury:
        traces = jury.score(Task(id="t", query="?", reference=f"A: {reference}"), texts)
    assert [(trace.verdicts[0].status, trace.reward.value) for trace in traces] == [
        ("abstained", None)
    ] * len(texts)


@pytest.mark.exhaustive
def test_no_hostile_answer_equals_its_reference() -> None:
    with closing(make_comparison_pool(time_limit=3)) as pool:
        for pair in (pair for pair in PAIRS if pair["answer"] in HOSTILE):
            assert not pair["equal"]
            with contextlib.suppress(TimeLimitExceeded):
                assert asyncio.run(pool.call(*texts_of(pair))) != "equal"


def test_numbers_are_compared_without_a_worker_and_expressions_with_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[str] = []
    send = WorkerPool.call
    monkeypatch.setattr(
        WorkerPool,
        "call",
        lambda pool, answer, *rest: (sent.append(answer), send(pool, answer, *rest))[1],
    )
    texts = ["42", "42.0 apples", "41", "forty-two of them", "40 + 2", "42" + " " * 200 + "apples"]
    task = Task(id="sum", query="How much is it?", reference="A: 42")
    with Jury.from_config({"evaluators": ["maths.accuracy"]}) as jury:
        traces = jury.score(task, [f"<answer>{text}</answer>" for text in texts])
    assert [trace.verdicts[0].score for trace in traces] == [1.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    assert sorted(sent) == sorted(texts[-2:])


def test_the_unit_that_the_question_asks_for_decides_for_a_bare_reference() -> None:
    task = Task(
        id="eggs", query="Each egg is $0.08. How much in dollars are 100 eggs?", reference="A: 8"
    )
    texts = {
        "dollars": "A: $8",
        "cents": "A: 800 cents",
        "number": "A: 8",
        "mistaken": "A: 8 cents",
    }
    with Jury.from_config({"evaluators": ["maths.accuracy"]}) as jury:
        traces = jury.score(task, [Response(id=name, text=text) for name, text in texts.items()])
    scores = {trace.response_id: trace.verdicts[0].score for trace in traces}
    assert scores == {"dollars": 1.0, "cents": 1.0, "number": 1.0, "mistaken": 0.0}
