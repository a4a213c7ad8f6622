"""The digest of a trace detects every change of its content."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from jurygraph.errors import TraceMismatch
from jurygraph.schema import Plan, Trace
from tests.examples import at_most
from tests.rows import all_rows
from tests.schema.samples import CALL, TRACE
from tests.schema.strategies import made

MADE = Trace.model_validate(TRACE)
LINE = MADE.model_dump_json()


def content(trace: Trace) -> dict[str, Any]:
    """All that the digest is of."""
    dumped = trace.model_dump(mode="json", exclude={"previous", "digest"})
    for call in dumped["calls"]:
        del call["latency"]
    return dumped


def test_a_trace_survives_json() -> None:
    assert Trace.model_validate_json(LINE) == MADE
    assert json.loads(LINE)["digest"] == MADE.digest


@settings(max_examples=at_most(300), deadline=None)
@given(st.integers(0, len(LINE) - 1), st.characters(min_codepoint=32, max_codepoint=126))
def test_a_changed_character_is_detected(place: int, character: str) -> None:
    changed = LINE[:place] + character + LINE[place + 1 :]
    try:
        read = Trace.model_validate_json(changed)
    except (TraceMismatch, ValidationError):
        return
    assert content(read) == content(MADE)


LEAVES = [
    ("reward", "value", 0.76),
    ("reward", "status", "ok"),
    ("reward", "coverage", 1.0),
    ("reward", "notes", []),
]


@pytest.mark.parametrize(("where", "name", "value"), LEAVES)
def test_a_changed_reward_is_a_mismatch(where: str, name: str, value: Any) -> None:
    line = json.loads(LINE)
    line[where][name] = value
    with pytest.raises(
        TraceMismatch, match=r"trace of response 'trip-1/a' has digest \w{64}, not \w{64}"
    ):
        Trace.model_validate(line)


@all_rows("name", sorted(TRACE.keys() - {"previous"}))
def test_a_field_of_another_trace_is_a_mismatch(name: str) -> None:
    other = {
        "task_id": "x",
        "response_id": "x",
        "agent": "x",
        "group": "x",
        "labels": {},
        "plan_digest": "x",
        "reward": TRACE["reward"] | {"value": 0.0},
        "verdicts": [],
        "calls": [],
        "material": [],
        "statistics": {},
    }
    with pytest.raises(TraceMismatch):
        Trace.model_validate(json.loads(LINE) | {name: other[name]})


@pytest.mark.parametrize("stored", ["", "0" * 64, None, 7])
def test_a_wrong_digest_is_a_mismatch(stored: Any) -> None:
    with pytest.raises(TraceMismatch):
        Trace.model_validate(json.loads(LINE) | {"digest": stored})


@settings(max_examples=25, deadline=None)
@given(made(Trace), st.none() | st.text(max_size=5))
def test_the_digest_does_not_cover_the_place_in_a_run(trace: Trace, previous: str | None) -> None:
    assert trace.model_copy(update={"previous": previous}).digest == trace.digest


@settings(max_examples=25, deadline=None)
@given(made(Trace), made(Plan))
def test_the_plan_is_not_part_of_the_digest_or_the_line(trace: Trace, other: Any) -> None:
    with_plan = trace.model_copy(update={"plan": other})
    assert (with_plan.digest, with_plan.model_dump_json()) == (
        trace.digest,
        trace.model_dump_json(),
    )


def test_the_digest_covers_all_of_a_call_but_its_latency() -> None:
    def digest(**change: Any) -> str:
        return Trace.model_validate(TRACE | {"calls": [CALL | change]}).digest

    assert digest(latency=99.0) == digest(latency=None) == MADE.digest
    others = {
        "id": "call-2",
        "provider": "x",
        "model": "x",
        "served": "x",
        "endpoint": "x",
        "parameters": {},
        "prompt": "x",
        "prompt_version": "4",
        "tokens_in": 1,
        "tokens_out": 1,
        "cost": 0.1,
        "cache_hit": True,
        "attempts": 2,
    }
    assert others.keys() == CALL.keys() - {"latency"}
    for name, value in others.items():
        assert digest(**{name: value}) != MADE.digest, name


def test_the_counts_add_up_to_their_total() -> None:
    counts = MADE.reward.counts
    assert (
        counts.total
        == counts.judged + counts.abstained + counts.failed + counts.not_applicable
        == 2
    )
