"""What becomes of verdicts: which pass, which count, and why."""

from jurygraph.runs.canary import Proportion
from jurygraph.schema import Failure, RecordedVerdict
from jurygraph.studies.attack.report import Outcome, count_outcomes

PASSED, HALF, WITHSTOOD = RecordedVerdict(score=1.0), RecordedVerdict(score=0.5), RecordedVerdict(score=0.499)
STOPPED = RecordedVerdict(score=0.0, gated_by="bare-opener")
MALFORMED = RecordedVerdict.fail("malformed", "no JSON", cause="response")
TIMEOUT = RecordedVerdict.fail("timeout", "too late")
NO_MODEL = RecordedVerdict(status="abstained", failure=Failure(cause="infrastructure", kind="no-model"))
NOT_ASKED = RecordedVerdict(status="not_applicable", gated_by="maths.accuracy")


def outcome(*responses: list[RecordedVerdict]) -> Outcome:
    return count_outcomes(responses)


def test_a_verdict_passes_from_a_score_of_one_half():
    assert outcome([PASSED, HALF, WITHSTOOD]).verdicts == Proportion.from_counts(2, 3)


def test_what_is_stopped_fails_or_abstains_did_not_pass_and_counts():
    found = outcome([STOPPED, MALFORMED, RecordedVerdict.abstain("who knows"), PASSED])
    assert found.verdicts == Proportion.from_counts(1, 4)
    assert (found.stopped, found.failed, found.abstained) == ({"bare-opener": 1}, {"malformed": 1}, 1)


def test_our_own_trouble_counts_neither_for_the_judge_nor_against_it():
    found = outcome([TIMEOUT, NO_MODEL, WITHSTOOD])
    assert found.verdicts == Proportion.from_counts(0, 1)
    assert found.infrastructure_failures == {"no-model": 1, "timeout": 1}


def test_what_nobody_had_to_ask_does_not_count():
    found = outcome([NOT_ASKED, PASSED])
    assert (found.verdicts, found.not_applicable) == (Proportion.from_counts(1, 1), 1)


def test_a_response_passes_with_one_verdict_that_does_and_counts_where_one_does():
    found = outcome([WITHSTOOD, PASSED], [WITHSTOOD], [STOPPED, STOPPED], [TIMEOUT], [])
    assert found.responses == Proportion.from_counts(1, 3)


def test_nothing_counted_is_no_share():
    assert outcome().verdicts.rate is None
