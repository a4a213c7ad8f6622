"""A judge that quotes in its own words: what its findings count under each rule of `safety.evidence`."""

import json
import re
from typing import Any

import pytest

from jurygraph import Task, Trace
from tests.judges.criteria.scripted_judge import binary_reply, scale_reply, score_by_script
from tests.models.judge_scripts import response_in, responses
from tests.models.server import Answer, reply_with

CRITERIA = [
    {"id": "good", "text": "How good?", "weight": 1.0, "scale": [0, 30]},
    {"id": "rude", "text": "It is rude.", "weight": -0.5},
]
TASK = Task.model_validate({"id": "letter", "query": "Write.", "rubric": {"criteria": CRITERIA}})
TEXTS = [f"Dear Ann, this letter is of quality {number}." for number in range(1, 31)]


def score_all(rule: str, *, quotes_when_asked: bool = False, is_rude: bool = False) -> list[Trace]:
    """Return the traces of 30 responses, each better than the one before, by a judge that paraphrases."""

    def judge(body: dict[str, Any], number: int) -> Answer:
        text = response_in(body)
        value = int(re.findall(r"quality (\d+)", text)[0])
        is_right = quotes_when_asked and len(body["messages"]) > 2
        quote = f"of quality {value}." if is_right else "a letter to her of some quality"
        rude = binary_reply(is_rude, quotes=[quote])
        return reply_with(
            json.dumps({"criterion_1": scale_reply(value, quote), "criterion_2": rude})
        )

    traces, _ = score_by_script(judge, TASK, responses(*TEXTS), safety={"evidence": rule})
    assert {trace.reward.status for trace in traces} == {"ok"}
    assert {trace.reward.coverage for trace in traces} == {1.0}
    return list(traces)


def rewards(traces: list[Trace]) -> list[float]:
    return [trace.reward.value for trace in traces if trace.reward.value is not None]


def test_under_preferred_all_responses_keep_their_true_order() -> None:
    values = rewards(score_all("preferred"))
    assert len(set(values)) == 30
    assert values == sorted(values)
    assert values == rewards(score_all("off"))


def test_under_required_none_fails_and_none_gains() -> None:
    stands = rewards(score_all("preferred"))
    worst = score_all("required")
    assert all(low <= high for low, high in zip(rewards(worst), stands, strict=True))
    assert {
        one.unsupported for trace in worst for one in trace.verdicts if one.subject == "good"
    } == {"worst-case"}
    rude = score_all("required", is_rude=True)
    assert {one.score for trace in rude for one in trace.verdicts if one.subject == "rude"} == {1.0}
    assert all(low <= high for low, high in zip(rewards(rude), rewards(worst), strict=True))
    assert "Unsupported (2): " in "\n".join(str(rude[0].explain()).splitlines())


@pytest.mark.parametrize("rule", ["required", "preferred"])
def test_a_judge_that_quotes_when_asked_again_loses_nothing(rule: str) -> None:
    traces = score_all(rule, quotes_when_asked=True)
    assert rewards(traces) == rewards(score_all("off"))
    assert not any(one.unsupported for trace in traces for one in trace.verdicts)
