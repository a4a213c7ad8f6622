"""Pairs of an answer and a reference, judged by hand: `pairs.jsonl`."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph import Jury, Response, Task
from jurygraph.agents.maths.comparison import compare_numbers
from jurygraph.agents.maths.pool import EquivalencePool
from jurygraph.agents.maths.question import required_unit
from jurygraph.errors import TimeLimitExceeded

PAIRS = [json.loads(line) for line in Path(__file__).with_name("pairs.jsonl").read_text("utf-8").splitlines()]
PATIENCE = 60


@pytest.fixture(scope="module")
def pool() -> Iterator[EquivalencePool]:
    with closing(EquivalencePool(time_limit=3).open()) as opened:
        yield opened


def is_equal(pool: EquivalencePool, pair: dict[str, Any]) -> bool:
    future = pool.compare(pair["answer"], pair["reference"], required_unit(pair.get("question", "")))
    try:
        return future.result(PATIENCE).status == "equal"
    except TimeLimitExceeded:
        return False


def test_there_are_enough_pairs_of_both_kinds() -> None:
    keys = {(pair.get("question"), pair["answer"], pair["reference"]) for pair in PAIRS}
    assert len(keys) == len(PAIRS) >= 400
    assert min(sum(pair["equal"] for pair in PAIRS), sum(not pair["equal"] for pair in PAIRS)) >= 150


@pytest.mark.parametrize("topic", dict.fromkeys(pair["topic"] for pair in PAIRS))
def test_every_pair_is_judged_as_by_hand(pool: EquivalencePool, topic: str) -> None:
    pairs = [pair for pair in PAIRS if pair["topic"] == topic]
    assert [pair for pair in pairs if is_equal(pool, pair) != pair["equal"]] == []


def test_a_pair_that_needs_no_worker_is_judged_as_by_hand() -> None:
    asked = [(pair["answer"], pair["reference"], required_unit(pair.get("question", ""))) for pair in PAIRS]
    known = {place: result for place, texts in enumerate(asked) if (result := compare_numbers(*texts)) is not None}
    assert len(known) > len(PAIRS) / 2
    assert [PAIRS[place] for place, (status, _) in known.items() if (status == "equal") != PAIRS[place]["equal"]] == []


def test_numbers_are_compared_without_a_worker_and_expressions_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    compare = EquivalencePool.compare
    monkeypatch.setattr(
        EquivalencePool, "compare", lambda pool, answer, *rest: (sent.append(answer), compare(pool, answer, *rest))[1]
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
