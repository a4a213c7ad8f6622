"""Verdicts and material: an estimate, or the reason why there is none; never both and never neither."""

from typing import Any

import pytest
from pydantic import ValidationError

from jurygraph.errors import InputError
from jurygraph.schema import Evidence, Failure, Material, Verdict
from tests.rows import all_rows

WHY = Failure(cause="response", kind="refused")


def test_a_reply_that_could_not_be_used_is_called_that_and_a_time_limit_after_it_is_none() -> None:
    late = Failure(cause="response", kind="time-limit")
    named = [
        failure.describe_cause(has_calls) for failure in (WHY, late) for has_calls in (True, False)
    ]
    assert named == ["unusable reply", *["response failure"] * 3]


@all_rows("score", [None, 0.5])
@all_rows("status", ["ok", "abstained", "failed", "not_applicable"])
def test_there_is_a_score_exactly_when_the_status_is_ok(status: Any, score: float | None) -> None:
    fields = {"status": status, "score": score, "failure": WHY if status == "failed" else None}
    if (status == "ok") == (score is not None):
        assert Verdict(**fields).score == score
    else:
        with pytest.raises(
            InputError, match=r"^Verdict\.score: is (missing; give one|0\.5; leave it out)"
        ):
            Verdict(**fields)


def test_a_failed_verdict_needs_a_failure() -> None:
    with pytest.raises(InputError, match="a failed verdict needs a `failure`"):
        Verdict(status="failed")
    assert Verdict.fail("timeout", "60 s").failure == Failure(
        cause="infrastructure", kind="timeout", message="60 s"
    )


def test_an_abstained_verdict_gives_its_reason_and_no_score() -> None:
    abstained = Verdict.abstain("the reference is missing")
    assert (abstained.status, abstained.score, abstained.reason) == (
        "abstained",
        None,
        "the reference is missing",
    )


def test_a_verdict_that_is_not_applicable_gives_its_reason_and_no_score() -> None:
    left_out = Verdict.not_applicable("no table is needed")
    assert (left_out.status, left_out.score, left_out.reason) == (
        "not_applicable",
        None,
        "no table is needed",
    )


@pytest.mark.parametrize("native", [True, 7.5, "B+", None])
def test_the_native_value_is_kept_as_the_judge_gave_it(native: Any) -> None:
    verdict = Verdict.model_validate_json(Verdict(score=1.0, native=native).model_dump_json())
    assert verdict.native == native
    assert type(verdict.native) is type(native)


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        (Evidence(quote="a"), "Verdict.evidence: is an Evidence; write a list"),
        (["a"], "Verdict.evidence[0]: is the text 'a'; write Evidence(…)"),
        ({"a"}, "Verdict.evidence: is a set; write a list"),
    ],
)
def test_evidence_is_a_list_of_it(evidence: Any, message: str) -> None:
    with pytest.raises(InputError) as refused:
        Verdict(score=1.0, evidence=evidence)
    assert str(refused.value) == message


@pytest.mark.parametrize(("status", "failure"), [("ok", WHY), ("failed", None)])
def test_material_has_a_failure_exactly_when_it_failed(
    status: Any, failure: Failure | None
) -> None:
    with pytest.raises(InputError, match="exactly when its status is failed"):
        Material(name="steps", status=status, failure=failure)


def test_code_may_score_with_true_or_false_and_a_stored_verdict_may_not() -> None:
    assert [Verdict(score=all(found)).score for found in ([True], [False])] == [1.0, 0.0]
    with pytest.raises(ValidationError):
        Verdict.model_validate_json('{"score": true}')
