"""A judge may say that it cannot tell: the verdict abstains with the reason, and is never credit."""

import json
import math
from typing import Any

import pytest

from jurygraph import Task, Trace
from jurygraph.judges.criteria import AnswerForm, Binary, PartialCredit, Scale
from tests.judges.criteria.scripted_judge import (
    binary_reply,
    parts_reply,
    reply_in_turn,
    score_by_script,
)
from tests.models.judge_scripts import responses
from tests.models.server import reply_with

LETTER = "Dear Ann, we meet at nine.\nBring cake."
OPEN = "The letter may be kind or mocking; the tone of earlier ones would show."
UNKNOWN = {"reason": OPEN, "quotes": [], "met": None, "probability": None}
SCALED = {"reason": OPEN, "quotes": [], "value": None}
HALF = {
    **parts_reply(["we meet at nine"], None, reason=OPEN),
    "part_2": {"quotes": [], "met": None},
}
FORMS: dict[str, tuple[AnswerForm, dict[str, Any], dict[str, Any]]] = {
    "met or not": (Binary(), {}, UNKNOWN),
    "scale": (Scale(1, 10), {"scale": [1, 10]}, SCALED),
    "parts": (PartialCredit((1.0, 1.0)), {"parts": [{"text": "when"}, {"text": "where"}]}, HALF),
}
REASONS = {"met or not": OPEN, "scale": OPEN, "parts": f"the judge cannot tell part_2: {OPEN}"}
every_form = pytest.mark.parametrize("form", FORMS)


def rubric_of(*criteria: dict[str, Any]) -> Task:
    texts = ("It is kind.", "It is clear.", "It is short.")
    stated = [
        {"id": f"c{place}", "text": texts[place], "weight": 1.0} | one
        for place, one in enumerate(criteria)
    ]
    return Task.model_validate({"id": "letter", "query": "Write.", "rubric": {"criteria": stated}})


def judge(
    task: Task, *replies: dict[str, Any], **kwargs: Any
) -> tuple[Trace, list[dict[str, Any]]]:
    """Return the trace of the letter, and the requests; `replies` are about its criteria, in their order."""
    script = reply_in_turn(
        {f"criterion_{place}": reply for place, reply in enumerate(replies, start=1)}
    )
    settings = {"failure": {"min_coverage": 0.0}} | kwargs.pop("settings", {})
    (trace,), bodies = score_by_script(script, task, responses(LETTER), settings=settings, **kwargs)
    return trace, bodies


# The verdict


@every_form
def test_null_is_an_abstention_with_the_reason_of_the_judge_and_needs_no_quotation(
    form: str,
) -> None:
    _, fields, reply = FORMS[form]
    trace, bodies = judge(rubric_of(fields), reply)
    (verdict,) = trace.verdicts
    assert (verdict.status, verdict.score, verdict.met, verdict.failure) == (
        "abstained",
        None,
        None,
        None,
    )
    assert verdict.reason == REASONS[form]
    assert (verdict.call, len(bodies)) == (trace.calls[0].id, 1)
    assert (trace.reward.counts.abstained, trace.reward.coverage) == (1, 0.0)


def test_quotations_of_what_leaves_it_open_are_kept_and_others_are_lost() -> None:
    trace, bodies = judge(rubric_of({}), {**UNKNOWN, "quotes": ["Bring cake.", "and flowers"]})
    (verdict,) = trace.verdicts
    assert [(one.quote, one.verified) for one in verdict.evidence] == [("Bring cake.", True)]
    assert verdict.reason == f"{OPEN} [lost: 'and flowers' (not in the response)]"
    assert (verdict.status, len(bodies)) == ("abstained", 1)


# The reward


def test_an_unknown_gain_counts_nothing_and_an_unknown_penalty_in_full() -> None:
    met = binary_reply(True, 1.0, quotes=["we meet at nine"])
    gain, _ = judge(rubric_of({}, {}), met, UNKNOWN)
    assert (gain.reward.value, gain.reward.range, gain.reward.status) == (
        0.5,
        (0.5, 1.0),
        "degraded",
    )
    penalty, _ = judge(rubric_of({"weight": 2.0}, {"weight": -1.0}), met, UNKNOWN)
    assert (penalty.reward.value, penalty.reward.range) == (0.5, (0.5, 1.0))


# The reply


@pytest.mark.parametrize("probability", [0.0, 0.5, 1.0])
def test_a_probability_given_with_a_null_decides_nothing(probability: float) -> None:
    trace, bodies = judge(rubric_of({}), UNKNOWN | {"probability": probability})
    (verdict,) = trace.verdicts
    assert (verdict.status, verdict.score, verdict.met, len(bodies)) == ("abstained", None, None, 1)


def test_log_probabilities_give_no_score_to_a_null_and_a_null_takes_none_from_a_score() -> None:
    tokens: list[tuple[str, float, dict[str, float]]] = [
        (f'{{"criterion_1":{{"reason":{json.dumps(OPEN)},"quotes":[],"met":', 0.0, {}),
        ("null", math.log(0.5), {"true": math.log(0.4), "false": math.log(0.1)}),
        (
            ',"probability":null},"criterion_2":{"reason":"so","quotes":["Bring cake."],"met":',
            0.0,
            {},
        ),
        ("true", math.log(0.6), {"null": math.log(0.2), "false": math.log(0.2)}),
        (',"probability":0.99}}', 0.0, {}),
    ]
    text = "".join(token for token, _, _ in tokens)
    (trace,), _ = score_by_script(
        lambda *_: reply_with(text, logprobs=tokens), rubric_of({}, {}), responses(LETTER)
    )
    unknown, known = trace.verdicts
    assert (unknown.status, unknown.score) == ("abstained", None)
    assert (known.score, known.native) == (pytest.approx(0.75), "P(met) from log probabilities")
