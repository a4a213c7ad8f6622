"""The pairwise judge: its requests, verdicts and quotations."""

import json
from typing import Any

import pytest

from jurygraph import Response
from jurygraph.schema import RecordedVerdict
from tests.judges.pairwise.comparisons import (
    LONGER,
    constant_judge,
    judge_script,
    longest,
    reply,
    responses,
    responses_in,
    score_by_script,
    shown_order,
)
from tests.models.server import Answer, reply_with

TWO = responses("Dear Ann", "Dear Ann, come at nine")


def verdicts(traces: Any) -> dict[tuple[str, ...], RecordedVerdict]:
    """Return all verdicts by the responses shown."""
    return {verdict.responses: verdict for trace in traces for verdict in trace.verdicts}


def test_every_pair_is_judged_in_both_orders() -> None:
    traces, bodies = score_by_script(judge_script(longest))
    texts = {one.text: one.id for one in LONGER}
    asked = sorted("".join(texts[text] for text in responses_in(body).values()) for body in bodies)
    assert asked == ["ab", "ac", "ba", "bc", "ca", "cb"]
    assert sorted(verdicts(traces)) == [tuple(pair) for pair in asked]


def test_a_verdict_is_shown_from_the_side_of_the_first_response() -> None:
    traces, _ = score_by_script(judge_script(longest), TWO)
    found = verdicts(traces)
    one, other = found["a", "b"], found["b", "a"]
    assert (one.about, one.score, one.met, one.native) == ("a", 0.0, False, "second")
    assert (other.about, other.score, other.met, other.native) == ("b", 1.0, True, "first")
    assert {one.layer, other.layer} == {"model"}
    assert one.call is not None


def test_a_tie_is_half_for_both_and_needs_no_quotation() -> None:
    traces, bodies = score_by_script(constant_judge(preferred="tie", quotes=[]), TWO)
    assert {(one.score, one.native, one.evidence) for one in verdicts(traces).values()} == {
        (0.5, "tie", ())
    }
    assert len(bodies) == 2


# What is asked


def test_the_prompt_shows_both_responses_before_the_criterion() -> None:
    _, bodies = score_by_script(judge_script(longest), TWO, criterion="Which one is kinder?")
    (first, second) = sorted((str(body["messages"][1]["content"]) for body in bodies), key=len)
    for text in (first, second):
        places = [
            text.index(part)
            for part in ("Write a letter.", "# Response A", "# Response B", "is kinder?")
        ]
        assert places == sorted(places)
    assert bodies[0]["messages"][0] == bodies[1]["messages"][0]


def test_a_compact_profile_asks_for_the_preference_alone() -> None:
    traces, bodies = score_by_script(judge_script(longest), TWO, profile="compact")
    assert {
        tuple(body["response_format"]["json_schema"]["schema"]["properties"]) for body in bodies
    } == {("preferred",)}
    assert [one.reward.value for one in traces] == [0.0, 1.0]
    assert {(one.reason, one.evidence) for one in verdicts(traces).values()} == {("", ())}


# On what it rests


def test_a_quotation_is_evidence_for_the_response_that_contains_it() -> None:
    group = responses("Dear Ann, come", "Dear Ann, come at nine")
    traces, _ = score_by_script(constant_judge(quotes=["come at nine", "Dear Ann, come"]), group)
    of_b = verdicts(traces)["b", "a"].evidence
    assert [(one.source, one.quote, one.start, one.end) for one in of_b] == [
        ("response", "come at nine", 10, 22),
        ("response", "Dear Ann, come", 0, 14),
        ("opponent", "Dear Ann, come", 0, 14),
    ]
    assert [one.source for one in verdicts(traces)["a", "b"].evidence] == [
        "response",
        "opponent",
        "opponent",
    ]
    assert all(one.verified for verdict in verdicts(traces).values() for one in verdict.evidence)


def test_an_invented_quotation_is_a_tie_after_one_repair() -> None:
    traces, bodies = score_by_script(constant_judge(quotes=["never written"]), TWO)
    found = verdicts(traces)["a", "b"]
    assert (found.score, found.met, found.native, found.unsupported, found.evidence) == (
        0.5,
        False,
        "tie",
        "tie",
        (),
    )
    assert (
        "and quotes 'never written' (in no response, too short, or cut within a word"
        in found.reason
    )
    assert len(bodies) == 4
    assert (
        "a response is preferred, and quotes 'never written'"
        in bodies[-1]["messages"][-1]["content"]
    )


@pytest.mark.parametrize(("rule", "mark"), [("required", "tie"), ("preferred", "stands")])
def test_a_preference_without_a_quotation_is_a_tie_or_stands(rule: str, mark: str) -> None:
    def script(body: dict[str, Any], number: int) -> Answer:
        return reply_with(json.dumps(reply(body, longest) | {"quotes": []}))

    traces, _ = score_by_script(script, TWO, safety={"evidence": rule})
    said = {
        (one.unsupported, one.reason.partition(" [unsupported: ")[2])
        for one in verdicts(traces).values()
    }
    assert said == {(mark, "the judge prefers a response, and nothing is quoted for it]")}
    assert [trace.reward.value for trace in traces] == (
        [0.5, 0.5] if rule == "required" else [0.0, 1.0]
    )


def test_one_verified_quotation_is_enough_and_the_others_are_reported_as_lost() -> None:
    traces, bodies = score_by_script(constant_judge(quotes=["come at nine", "never written"]), TWO)
    found = verdicts(traces)["b", "a"]
    assert (found.score, [one.quote for one in found.evidence]) == (1.0, ["come at nine"])
    assert found.reason.startswith("so it is [lost: 'never written' (in no response")
    assert len(bodies) == 2


def test_equal_texts_are_a_tie() -> None:
    for order in (longest, shown_order):
        traces, bodies = score_by_script(
            judge_script(order), [Response(id=name, text="Dear Ann, come") for name in "ab"]
        )
        assert [trace.reward.value for trace in traces] == [0.5, 0.5]
        assert len(bodies) == 1  # the two requests are one
