"""The listwise judge: its requests, verdicts and quotations."""

from typing import Any

import pytest

from jurygraph import Response
from jurygraph.schema import RecordedVerdict
from tests.judges.pairwise.comparisons import (
    LONGER,
    constant_judge,
    judge_script,
    longest,
    responses,
    responses_in,
    rewards,
    score_by_script,
)


def listwise(script: Any, group: Any = LONGER, **more: Any) -> Any:
    return score_by_script(script, group, "listwise", **more)


def by_sample(traces: Any) -> dict[tuple[str, int], RecordedVerdict]:
    return {(one.about, one.sample): one for trace in traces for one in trace.verdicts}


def test_a_group_is_shown_in_the_order_given_and_in_reverse() -> None:
    traces, bodies = listwise(judge_script(longest))
    one, other = ([*responses_in(body).values()] for body in bodies)
    assert one == other[::-1]
    assert sorted(one) == sorted(response.text for response in LONGER)
    shown = by_sample(traces)["a", 0].responses
    assert [next(r.text for r in LONGER if r.id == name) for name in shown] in (one, other)


def test_the_score_is_the_relative_rank() -> None:
    traces, _ = listwise(judge_script(longest))
    found = by_sample(traces)
    for sample in (0, 1):
        verdicts = [found[name, sample] for name in "abc"]
        assert [(one.score, one.native, one.scale) for one in verdicts] == [
            (0.0, 3.0, (3.0, 1.0)),
            (0.5, 2.0, (3.0, 1.0)),
            (1.0, 1.0, (3.0, 1.0)),
        ]
    assert rewards(traces) == [0.0, 0.5, 1.0]


def test_each_response_has_its_own_quotations() -> None:
    group = responses("Dear Ann, come", "Dear Bob, stay", "Dear Bob, stay, or come")
    traces, _ = listwise(constant_judge(quotes=["Dear Bob, stay", "or come"]), group)
    found = by_sample(traces)
    for sample in (0, 1):
        told = {
            name: [(one.quote, one.source, one.verified) for one in found[name, sample].evidence]
            for name in "abc"
        }
        assert told == {
            "a": [],
            "b": [("Dear Bob, stay", "response", True)],
            "c": [("Dear Bob, stay", "response", True)],
        }
        assert "[lost: 'or come'" in found["a", sample].reason


@pytest.mark.parametrize(
    ("ranking", "said"),
    [
        (["A", "B"], "ranking"),
        (["A", "B", "B"], "the ranking is A, B, B: name each of A, B, C once"),
    ],
)
def test_an_incomplete_ranking_is_an_invalid_reply(ranking: list[str], said: str) -> None:
    traces, bodies = listwise(constant_judge(ranking=ranking))
    assert {one.failure.kind for one in by_sample(traces).values() if one.failure} == {"malformed"}
    assert rewards(traces) == [None] * 3
    assert said in bodies[-1]["messages"][-1]["content"]


@pytest.mark.parametrize("quotes", [[], ["never written"]])
def test_a_ranking_needs_a_quotation_from_some_response(quotes: list[str]) -> None:
    traces, bodies = listwise(constant_judge(quotes=quotes))
    found = by_sample(traces).values()
    assert {(one.score, one.native, one.unsupported) for one in found} == {(0.5, 2.0, "tie")}
    assert (rewards(traces), len(bodies)) == ([0.5, 0.5, 0.5], 4)
    traces, _ = listwise(constant_judge(quotes=quotes), safety={"evidence": "off"})
    assert rewards(traces) == [0.0, 0.5, 1.0]


def test_twenty_are_ranked_and_twenty_one_are_not() -> None:
    many = [Response(id=f"r{place:02}", text="Dear Ann" + ", come" * place) for place in range(21)]
    traces, bodies = listwise(judge_script(longest), many[:20])
    assert rewards(traces) == pytest.approx([place / 19 for place in range(20)])
    assert len(bodies) == 2
    traces, bodies = listwise(judge_script(longest), many)
    assert bodies == []
    failure = traces[0].verdicts[0].failure
    assert failure is not None
    assert failure.message == (
        "listwise ranks 20 responses at most, not 21; score smaller groups, or compare by `pairwise`"
    )
    assert rewards(traces) == [None] * 21
