"""No finding is credited without a quotation that occurs in the response."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph import Response, Task, Verdict
from jurygraph.judges.criteria import Criteria
from jurygraph.schema import SafetyConfig
from jurygraph.schema.config import EvidencePolicy
from tests.examples import at_most
from tests.judges.criteria.scripted_judge import (
    answer_questions,
    binary_reply,
    criterion_reply,
    evaluator_inputs,
    parts_reply,
    reply_in_turn,
    scale_reply,
    score_by_script,
    views,
)
from tests.models.judge_scripts import responses, rubric
from tests.models.server import TOKENS_OUT, reply_with
from tests.rows import all_rows

LETTER = (
    "Liebe Ann,\n\nwir treffen uns um 9\u00a0Uhr im Café “Zur Post” –\nder Ofﬁce-Raum ist frei.   Bring\tbitte Kuchen "
    "mit.\n\nDein Bo"
)
"""With a blank that does not break, a ligature, typographic signs, and white space of many kinds."""

TASK = rubric("kind", query="Write to Ann that the meeting is moved.").model_copy(
    update={"reference": "Dear Ann, the meeting is moved to nine o'clock."}
)


def verdict_with_quotes(
    quotes: list[str], met: bool = True, text: str = LETTER, **kwargs: Any
) -> Verdict:
    """The verdict of a model that insists on its quotations."""
    (trace,), _ = score_by_script(
        reply_in_turn(criterion_reply(met=met, quotes=quotes)), TASK, responses(text), **kwargs
    )
    (verdict,) = trace.verdicts
    return verdict


def verified_quotes(verdict: Verdict, text: str = LETTER) -> list[str]:
    """Return the quotations of a verdict, after checking each at its offsets."""
    for evidence in verdict.evidence:
        assert evidence.verified
        assert evidence.source == "response"
        assert text[evidence.start : evidence.end] == evidence.quote
    return [evidence.quote for evidence in verdict.evidence]


# Quotations from the response


@all_rows(
    ("quote", "passage"),
    [
        ("wir treffen uns um 9\u00a0Uhr", "wir treffen uns um 9\u00a0Uhr"),
        ("wir treffen uns um 9 Uhr", "wir treffen uns um 9\u00a0Uhr"),
        ("im Cafe\u0301 “Zur Post”", "im Café “Zur Post”"),
        ('im Café "Zur Post" - der', "im Café “Zur Post” –\nder"),
        ("... der Ofﬁce-Raum ist frei …", "der Ofﬁce-Raum ist frei"),
    ],
)
def test_a_quotation_is_found_despite_white_space_and_unicode_forms_with_its_offsets(
    quote: str, passage: str
) -> None:
    verdict = verdict_with_quotes([quote])
    assert (verdict.status, verdict.score, verdict.reason) == ("ok", 0.9, "so it is")
    assert verified_quotes(verdict) == [passage]


# Other quotations

ELSEWHERE = {
    "the query": "that the meeting is moved",
    "the reference": "the meeting is moved to nine o'clock",
    "the criterion": "It is kind.",
    "one changed word": "wir treffen uns um 8 Uhr im Café",
    "two passages run together": "Liebe Ann, Bring bitte Kuchen mit.",
    "words left out in the middle": "wir treffen uns ... im Café",
    "nothing but a part of words": "reffen un",
    "too little to say anything": "um 9",
    "nothing": "",
    "dots": "…",
}


@all_rows("quote", ELSEWHERE.values())
def test_a_verdict_with_an_invented_quotation_gives_no_credit(quote: str) -> None:
    verdict = verdict_with_quotes([quote])
    assert (verdict.score, verdict.met, verdict.unsupported, verdict.evidence) == (
        0.0,
        False,
        "worst-case",
        (),
    )
    assert "[unsupported: the judge says met, and " in verdict.reason
    assert quote[:80].strip() in verdict.reason


def test_an_unverified_quotation_is_reported_and_the_verdict_keeps_the_others() -> None:
    verdict = verdict_with_quotes(["wir treffen uns um 8 Uhr", "Bring bitte Kuchen mit."])
    assert (verdict.status, verdict.score) == ("ok", 0.9)
    assert verified_quotes(verdict) == ["Bring\tbitte Kuchen mit."]
    assert verdict.reason == "so it is [lost: 'wir treffen uns um 8 Uhr' (not in the response)]"


def test_a_penalty_without_a_quotation_counts_in_full() -> None:
    """No judge is talked out of one by what makes it misquote."""
    criteria = [
        {"id": "kind", "text": "kind", "weight": 1.0},
        {"id": "rude", "text": "rude", "weight": -1.0},
    ]
    task = Task.model_validate(
        {"id": "letter", "query": "Write.", "rubric": {"criteria": criteria}}
    )
    found = {
        "criterion_1": binary_reply(True, 1.0, quotes=["Liebe Ann"]),
        "criterion_2": binary_reply(True, quotes=["You fool"]),
    }
    (trace,), _ = score_by_script(reply_in_turn(found), task, responses(LETTER))
    assert [(verdict.score, verdict.met, verdict.unsupported) for verdict in trace.verdicts] == [
        (1.0, True, None),
        (1.0, True, "worst-case"),
    ]
    assert (trace.reward.value, trace.reward.status, trace.reward.coverage) == (0.0, "ok", 1.0)


# The round of repair


def repair_message(body: dict[str, Any]) -> str:
    """Return the message that asks the model to repair its first reply."""
    assert [message["role"] for message in body["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    return str(body["messages"][-1]["content"])


def test_one_repair_request_names_the_missing_quotation_and_a_better_answer_is_used() -> None:
    wrong, right = (
        criterion_reply(quotes=["we meet at nine", "and bring cake"]),
        criterion_reply(probability=0.7, quotes=["wir treffen uns"]),
    )
    (trace,), (first, second) = score_by_script(
        reply_in_turn(wrong, right), TASK, responses(LETTER)
    )
    assert second["messages"][:2] == first["messages"]
    assert json.loads(second["messages"][2]["content"]) == wrong
    assert repair_message(second).startswith(
        "That cannot be used: criterion_1: met, and quotes 'we meet at nine', "
        "'and bring cake' (not in the response); quote from the response letter by letter, eight letters or more, "
        "or decide anew."
    )
    (verdict,) = trace.verdicts
    assert (verdict.score, verified_quotes(verdict)) == (0.7, ["wir treffen uns"])
    assert [use.purpose for use in verdict.calls] == ["judge", "repair"]
    assert verdict.call == verdict.calls[-1].id
    assert sum(call.tokens_out or 0 for call in trace.calls) == 2 * TOKENS_OUT


MISTAKEN = {
    "criterion_1": binary_reply(quotes=["wir treffen uns"]),
    "criterion_2": binary_reply(quotes=["bring cake"]),
}
"""Of two criteria one is supported."""


def verdicts_on_two(*answers: Any, **kwargs: Any) -> tuple[list[Verdict], list[dict[str, Any]]]:
    (trace,), bodies = score_by_script(
        reply_in_turn(MISTAKEN, *answers), rubric("kind", "short"), responses(LETTER), **kwargs
    )
    assert all(
        verdict.call in {None, *(call.id for call in trace.calls)} for verdict in trace.verdicts
    )
    return list(trace.verdicts), bodies


@pytest.mark.parametrize(
    "second",
    [
        "Sorry!",
        reply_with(None, refusal="I will not."),
    ],
    ids=["prose", "refused"],
)
def test_an_unusable_second_reply_leaves_the_first(second: Any) -> None:
    (kind, short), bodies = verdicts_on_two(second)
    assert (kind.status, verified_quotes(kind)) == ("ok", ["wir treffen uns"])
    assert (short.score, short.unsupported) == (0.0, "worst-case")
    assert (len(bodies), kind.call) == (2, short.call)


# Scales and parts


def task_with_criterion(fields: dict[str, Any]) -> Task:
    criterion = {"id": "tone", "text": "How kind?", "weight": 1.0, **fields}
    return Task.model_validate(
        {"id": "letter", "query": "Write.", "rubric": {"criteria": [criterion]}}
    )


SCALE = task_with_criterion({"scale": [1, 10]})
PARTS = task_with_criterion({"parts": [{"text": "a greeting"}, {"text": "a time", "weight": 3}]})


@pytest.mark.parametrize(
    ("task", "reply", "message"),
    [
        (
            SCALE,
            scale_reply(7, "we meet"),
            "a value of 7, and quotes 'we meet' (not in the response)",
        ),
        (SCALE, scale_reply(1.5), "a value of 1.5, and nothing is quoted for it"),
        (
            PARTS,
            parts_reply(["Liebe Ann"], ["at nine"]),
            "part_2 met, and quotes 'at nine' (not in the response)",
        ),
        (
            PARTS,
            parts_reply([], []),
            "part_1 met, and nothing is quoted for it; part_2 met, and nothing is quoted for it",
        ),
    ],
)
def test_scale_values_and_parts_need_quotations_too(
    task: Task, reply: dict[str, Any], message: str
) -> None:
    stated = {}
    for rule, mark in {"required": "worst-case", "preferred": "stands", "off": None}.items():
        (trace,), bodies = score_by_script(
            reply_in_turn({"criterion_1": reply}),
            task,
            responses(LETTER),
            safety={"evidence": rule},
        )
        (verdict,) = trace.verdicts
        assert (verdict.status, verdict.unsupported, len(bodies)) == (
            "ok",
            mark,
            1 if rule == "off" else 2,
        )
        assert verdict.reason.endswith(f"[unsupported: the judge says {message}]") is (
            rule != "off"
        )
        stated[rule] = (verdict.score, trace.reward.value)
        assert (trace.reward.status, trace.reward.coverage) == ("ok", 1.0)
    assert stated["required"] == (0.0, 0.0)
    assert stated["preferred"] == stated["off"] > (0.0, 0.0)


# For any reply

QUOTES = st.sampled_from(["Liebe Ann", "wir treffen uns", "we meet at nine", "um 9", "", "Dein Bo"])
REPLIES = st.fixed_dictionaries(
    {
        "criterion_1": st.builds(binary_reply, st.booleans(), quotes=st.lists(QUOTES, max_size=3)),
        "criterion_2": st.builds(binary_reply, st.booleans(), quotes=st.lists(QUOTES, max_size=3)),
    }
)


@given(
    st.lists(REPLIES | st.just("malformed"), min_size=2, max_size=2),
    st.sampled_from(get_args(EvidencePolicy)),
)
@settings(max_examples=at_most(150))
def test_no_reply_earns_credit_without_evidence_that_is_required(
    replies: list[Any], rule: EvidencePolicy
) -> None:
    verdicts, requests = answer_questions(
        Criteria(),
        lambda model: evaluator_inputs(
            model, views("kind", "short"), [Response(id="r", text=LETTER)]
        ),
        [json.dumps(reply) for reply in replies],
        SafetyConfig(evidence=rule),
    )
    assert len(requests) <= 2
    for verdict in verdicts:
        has_evidence = any(one.verified for one in verdict.evidence)
        if rule != "off":
            assert (verdict.unsupported is not None) == ("unsupported: the judge" in verdict.reason)
            assert bool(verdict.met) <= (has_evidence or verdict.unsupported == "stands")
            verified_quotes(verdict)
        if verdict.unsupported is not None:
            assert (verdict.score, verdict.unsupported) == (
                (0.0, "worst-case") if rule == "required" else (0.9, "stands")
            )
        if verdict.status == "failed":
            assert verdict.failure is not None
            assert (verdict.score, verdict.failure.cause, verdict.failure.kind) == (
                None,
                "response",
                "malformed",
            )
