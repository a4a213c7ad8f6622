"""A pair is judged in both orders: what its reviewer prefers counts, and no preference of the model for a position."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jurygraph import Response, Trace
from jurygraph.errors import ConfigError
from jurygraph.judges.examples import ReviewerHistory, swap_texts
from jurygraph.judges.reviewers import combine_order_verdicts
from jurygraph.schema import Verdict
from tests.judges.criteria import scripted_judge
from tests.judges.few_shot.reviewers import (
    KINDS,
    WITH_EXAMPLES,
    examples_in,
    examples_shown,
    judge,
    judge_use,
    prediction_reply,
    prose,
    score_with,
    task,
    write_history,
)
from tests.models.judge_scripts import Script, response_in
from tests.models.server import Answer, status
from tests.rows import all_rows

PREFERENCE: Mapping[str, Any] = {"preference": {"text": "Which is better.", "scale": [-1, 1]}}
LONG, SHORT = prose(1001, 20), prose(1002, 6)


def lay_out(first: str, second: str) -> str:
    return f"Response 1:\n{first}\n\nResponse 2:\n{second}"


def pair(first: str = LONG, second: str = SHORT, **fields: Any) -> Response:
    known: dict[str, Any] = {
        "id": "r",
        "text": lay_out(first, second),
        "data": {"first": first, "second": second},
    }
    return Response.model_validate(known | fields)


class Shelf(NamedTuple):
    """A history of pairs: the paths of RATINGS and TEXTS, and the two texts of each item."""

    history: str
    texts: str
    pairs: Mapping[str, tuple[str, str]]

    @property
    def params(self) -> dict[str, Any]:
        return {"history": self.history, "texts": self.texts}


def write_pairs(tmp_path: Path, scores: Mapping[str, Sequence[float]], **fields: Any) -> Shelf:
    """Write what reviewers gave pairs of a long and a short text: `i0`, `i1`, …"""
    number = max(map(len, scores.values()))
    pairs = {f"i{n}": (prose(2 * n, 20), prose(2 * n + 1, 6)) for n in range(number)}
    texts = [
        {"item": item, "text": lay_out(*both), "first": both[0], "second": both[1]}
        for item, both in pairs.items()
    ]
    path = write_history(tmp_path, texts, "texts.jsonl")
    said = [
        {"reviewer": who, "item": f"i{n}", "score": score, **fields}
        for who, given in scores.items()
        for n, score in enumerate(given)
    ]
    return Shelf(write_history(tmp_path, said), path, pairs)


def score_pair(
    script: Script, kind: str, shown: Response, **params: Any
) -> tuple[Trace, list[dict[str, Any]]]:
    """Return the trace of a pair that is judged in both orders, and the requests."""
    stated = judge_use(kind, **{"dimensions": PREFERENCE, "both_orders": True, **params})
    (trace,), bodies = score_with(script, stated, task("ann"), shown)
    return trace, bodies


def saying(
    given: Answer | float, swapped: Answer | float, confidence: Sequence[float] = (90, 90)
) -> Script:
    """A model that says one thing of the pair as it is, and another of it with its texts swapped."""

    def script(body: dict[str, Any], number: int) -> Answer:
        place = 0 if response_in(body) == lay_out(LONG, SHORT) else 1
        told = (given, swapped)[place]
        return (
            told
            if callable(told)
            else prediction_reply(body, told, confidence[place], quotes=[SHORT])
        )  # type: ignore[arg-type]

    return script


# Two texts change places

parts = st.text(st.sampled_from("ab \n"), max_size=12)


@given(parts, parts)
def test_two_texts_that_are_swapped_twice_are_where_they_were(first: str, second: str) -> None:
    # Where a part begins with an empty line, that line may as well be the place of an empty part, or of its end.
    assume(not first.startswith("\n") and not second.startswith("\n"))
    text = lay_out(first, second)
    swapped = swap_texts(text, first, second)
    assert swapped == lay_out(second, first)
    assert swap_texts(swapped, second, first) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yes\n\nA:\nyes\nB:\nno", "yes\n\nA:\nno\nB:\nyes"),
        ("Say yes or no.\nyes\nno\n", "Say yes or no.\nno\nyes\n"),
        ("no\nyes", None),
        ("A: yes\nB: no", None),
    ],
)
def test_the_last_places_on_lines_of_their_own_count(text: str, expected: str | None) -> None:
    assert swap_texts(text, "yes", "no") == expected


# The arithmetic

units = st.integers(0, 64).map(lambda n: n / 64)


def verdict(score: float, confidence: float = 0.9, call: str = "c") -> Verdict:
    return Verdict(
        score=score,
        native=2 * score - 1,
        scale=(-1, 1),
        confidence=confidence,
        reason=call,
        call=call,
    )


@given(units, units, st.integers(-32, 32).map(lambda n: n / 64))
def test_what_favours_a_position_in_both_orders_cancels_out(
    own: float, confidence: float, bias: float
) -> None:
    """A judge whose scores lean by so much toward the place that comes first, or second, says what it would without."""
    if 0.0 <= own + bias <= 1.0 and 0.0 <= 1.0 - own + bias <= 1.0:
        found = combine_order_verdicts(
            verdict(own + bias, confidence, "a"), verdict(1.0 - own + bias, 1.0, "b")
        )
        assert (found.score, found.native, found.confidence) == (own, 2 * own - 1, confidence)
        assert (found.call, found.swap and found.swap.call) == ("a", "b")


# What a model is asked


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_prefers_a_place_says_neither(tmp_path: Path, kind: str) -> None:
    known = (
        {} if kind == "zero-shot" else write_pairs(tmp_path, {"ann": (1, 0), "bob": (1, 0)}).params
    )
    for place in (-1, 1):
        trace, bodies = score_pair(saying(place, place), kind, pair(), **known)
        (found,) = trace.verdicts
        assert (len(bodies), found.status, found.score, found.native) == (2, "ok", 0.5, 0.0)
    assert trace.reward.value == 0.5


def prefer_the_longer(body: dict[str, Any], number: int) -> Answer:
    first, second = response_in(body).removeprefix("Response 1:\n").split("\n\nResponse 2:\n")
    return prediction_reply(body, -1 if len(first) > len(second) else 1, quotes=[second])


def test_both_calls_are_listed_and_the_trace_shows_the_arithmetic() -> None:
    trace, _ = score_pair(saying(1, 0, confidence=(80, 95)), "zero-shot", pair())
    (found,) = trace.verdicts
    assert found.swap is not None
    assert (found.swap.given, found.swap.swapped, found.score) == (1.0, 0.5, 0.75)
    assert (found.native, found.confidence, found.scale) == (0.5, 0.8, (-1, 1))
    assert {use.id: use.purpose for use in found.calls_with_purpose} == {
        found.call: "judge",
        found.swap.call: "swapped order",
    }
    assert {call.id for call in trace.calls} == {found.call, found.swap.call}
    assert found.reason == "so it is [swapped: so it is]"
    (evidence,) = found.evidence  # both quote the same passage, which is where the response has it
    assert pair().text[evidence.start : evidence.end] == SHORT


@pytest.mark.parametrize("kind", WITH_EXAMPLES)
def test_the_second_prompt_mirrors_the_examples_with_their_scores(
    tmp_path: Path, kind: str
) -> None:
    """What a reviewer prefers, even a position, says the same in both."""
    shelf = write_pairs(
        tmp_path, {"ann": (1, 1, 0), "bob": (1, 1, 0)}, reason="The first is too long."
    )
    _, bodies = score_pair(saying(1, -1), kind, pair(), **shelf.params, shots=3)
    given, swapped = sorted(bodies, key=lambda body: response_in(body) != pair().text)
    assert response_in(swapped) == lay_out(SHORT, LONG)
    assert [score for _, score in examples_shown(swapped)] == [
        0.0 - score for _, score in examples_shown(given)
    ]
    for item, (first, second) in shelf.pairs.items():
        assert lay_out(first, second) in examples_in(given), item
        assert lay_out(second, first) in examples_in(swapped), item
    # a reason may name a position, and cannot be mirrored
    assert "too long" not in json.dumps(bodies)


def test_a_pair_of_the_same_texts_in_the_other_order_is_not_shown(tmp_path: Path) -> None:
    """Too short to be near in one order, they are the judged pair in the other."""
    yes, no = "Yes, at noon.", "Not before two, and then by boat."
    texts = [
        {"item": item, "text": lay_out(*both), "first": both[0], "second": both[1]}
        for item, both in {"same": (no, yes), "other": (prose(1), prose(2))}.items()
    ]
    said = [
        {"reviewer": who, "item": item, "score": 1}
        for who in ("ann", "bob")
        for item in ("same", "other")
    ]
    known = {
        "history": write_history(tmp_path, said),
        "texts": write_history(tmp_path, texts, "texts.jsonl"),
    }
    trace, _ = score_pair(prefer_the_longer, "personalized", pair(yes, no), **known)
    (found,) = trace.verdicts
    assert {one.item: one.dropped for one in found.examples} == {
        "same": "it says nearly the same as the judged item",
        "other": None,
    }


# No half credit


@pytest.mark.parametrize("failing", [0, 1], ids=["as it is", "swapped"])
def test_if_one_order_fails_so_does_the_verdict(failing: int) -> None:
    told: list[Any] = [1, 1]
    told[failing] = status(400)
    trace, _ = score_pair(saying(*told), "zero-shot", pair())
    (found,) = trace.verdicts
    assert (found.status, found.score, found.swap) == ("failed", None, None)
    assert (len(found.calls), trace.reward.value) == (2, None)


@pytest.mark.parametrize("other", [1, status(400)], ids=["a score", "a failure"])
def test_if_one_order_cannot_be_told_the_verdict_abstains_unless_the_other_fails(
    other: Any,
) -> None:
    def script(body: dict[str, Any], number: int) -> Answer:
        if response_in(body) == pair().text:
            return other if callable(other) else prediction_reply(body, other)
        said = {"reason": "both are alike", "quotes": [], "value": None, "confidence": None}
        return scripted_judge.reply_with(json.dumps({"score": said}))

    trace, _ = score_pair(script, "zero-shot", pair())
    expected = ("failed", "abstained")[other == 1]
    assert [(one.status, one.score) for one in trace.verdicts] == [(expected, None)]
    assert other != 1 or trace.verdicts[0].reason == "both are alike"


UNKNOWN: Mapping[str, Mapping[str, Any]] = {
    "no data": {"data": None},
    "no second": {"data": {"first": LONG}},
    "another order": {"data": {"first": SHORT, "second": LONG}},
    "another text": {"data": {"first": LONG, "second": "another"}},
}


@pytest.mark.parametrize("fields", UNKNOWN.values(), ids=UNKNOWN)
def test_a_response_whose_two_texts_are_unknown_fails_before_any_call(
    fields: Mapping[str, Any],
) -> None:
    trace, bodies = score_pair(saying(1, 1), "zero-shot", pair(**fields))
    (found,) = trace.verdicts
    assert bodies == []
    assert found.failure is not None
    assert (found.failure.cause, found.failure.kind, found.score) == ("response", "no-pair", None)
    assert "give data.first and data.second, in this order" in found.failure.message


# Configs and histories that do not fit


@all_rows("scale", [[0, 1], [-1, 2]])
def test_a_scale_that_is_not_symmetric_is_refused(scale: list[float]) -> None:
    low, high = scale
    said = f"dimensions.quality.scale: goes from {low} to {high}, which is not symmetric about 0"
    with pytest.raises(ConfigError, match=said):
        judge("zero-shot", dimensions={"quality": {"text": "x", "scale": scale}}, both_orders=True)


def test_a_pair_that_cannot_be_swapped_is_left_out_and_counted(tmp_path: Path) -> None:
    texts = [
        {"item": "a", "text": lay_out("one", "two"), "first": "one", "second": "two"},
        {"item": "b", "text": "one, two", "first": "one", "second": "two"},
    ]
    said = [{"reviewer": "ann", "item": item, "score": 1} for item in "ab"]
    read: Any = {
        "texts": write_history(tmp_path, texts, "texts.jsonl"),
        "scales": {"preference": (-1.0, 1.0)},
    }
    history = ReviewerHistory.read(write_history(tmp_path, said), **read, has_pairs=True)
    assert [one.item for one in history.examples] == ["a"]
    assert (
        "Left out: 1 rating of an item whose text does not hold a `first` and a `second`, each on lines of its own; "
        "the first is history.jsonl, line 2." in history.notes()
    )
    assert len(ReviewerHistory.read(write_history(tmp_path, said), **read).examples) == 2
