"""Outcomes of verdicts: those that pass, those that count, and the reasons."""

from jurygraph.runs.canary import Proportion
from jurygraph.schema import Failure, RecordedVerdict
from jurygraph.studies.attack.report import Outcome, count_outcomes

PASSED, HALF, WITHSTOOD = RecordedVerdict(score=1.0), RecordedVerdict(score=0.5), RecordedVerdict(score=0.499)
STOPPED = RecordedVerdict(score=0.0, gated_by="bare-opener")
MALFORMED = RecordedVerdict.fail("malformed", "no JSON", cause="response")
TIMEOUT = RecordedVerdict.fail("timeout", "too late")
NO_MODEL = RecordedVerdict(status="abstained", failure=Failure(cause="infrastructure", kind="no-model"))
NOT_APPLICABLE = RecordedVerdict(status="not_applicable", gated_by="maths.accuracy")


def outcome_of(*responses: list[RecordedVerdict]) -> Outcome:
    return count_outcomes(responses)


def test_a_verdict_passes_from_a_score_of_one_half():
    assert outcome_of([PASSED, HALF, WITHSTOOD]).verdicts == Proportion.from_counts(2, 3)


def test_stopped_failed_and_abstained_verdicts_count_as_not_passed():
    found = outcome_of([STOPPED, MALFORMED, RecordedVerdict.abstain("who knows"), PASSED])
    assert found.verdicts == Proportion.from_counts(1, 4)
    assert (found.stopped, found.failed, found.abstained) == ({"bare-opener": 1}, {"malformed": 1}, 1)


def test_infrastructure_failures_are_not_counted():
    found = outcome_of([TIMEOUT, NO_MODEL, WITHSTOOD])
    assert found.verdicts == Proportion.from_counts(0, 1)
    assert found.infrastructure_failures == {"no-model": 1, "timeout": 1}


def test_verdicts_that_do_not_apply_are_not_counted():
    found = outcome_of([NOT_APPLICABLE, PASSED])
    assert (found.verdicts, found.not_applicable) == (Proportion.from_counts(1, 1), 1)


def test_a_response_passes_with_one_passing_verdict_and_counts_with_one_counted_verdict():
    found = outcome_of([WITHSTOOD, PASSED], [WITHSTOOD], [STOPPED, STOPPED], [TIMEOUT], [])
    assert found.responses == Proportion.from_counts(1, 3)


def test_without_counted_verdicts_there_is_no_rate():
    assert outcome_of().verdicts.rate is None
