"""Outcomes of verdicts: those that pass, those that count, and the reasons."""

from collections.abc import Iterable

import pytest

from jurygraph.schema import Failure, RecordedVerdict
from jurygraph.studies import attack
from jurygraph.studies.report import Report
from tests.studies.figures import Figures, read_figures

PASSED, HALF, WITHSTOOD = (
    RecordedVerdict(score=1.0),
    RecordedVerdict(score=0.5),
    RecordedVerdict(score=0.499),
)
STOPPED = RecordedVerdict(score=0.0, gated_by="bare-opener")
MALFORMED = RecordedVerdict.fail("malformed", "no JSON", cause="response")
TIMEOUT = RecordedVerdict.fail("timeout", "too late")
NO_MODEL = RecordedVerdict(
    status="abstained", failure=Failure(cause="infrastructure", kind="no-model")
)
NOT_APPLICABLE = RecordedVerdict(status="not_applicable", gated_by="maths.accuracy")


def count_outcomes(responses: Iterable[tuple[int, list[RecordedVerdict]]]) -> Figures:
    return read_figures(attack.attack_outcome_figures(responses))


def outcome_of(*responses: list[RecordedVerdict]) -> Figures:
    """Return the outcome of responses to one task each."""
    return count_outcomes(enumerate(responses))


def counts_of(proportion: Figures) -> tuple[int, int]:
    return proportion.hits, proportion.n


def test_a_verdict_passes_from_a_score_of_one_half():
    assert outcome_of([PASSED, HALF, WITHSTOOD]).verdicts.rate == 2 / 3


def test_stopped_failed_and_abstained_verdicts_count_as_not_passed():
    found = outcome_of([STOPPED, MALFORMED, RecordedVerdict.abstain("who knows"), PASSED])
    assert counts_of(found.verdicts) == (1, 4)
    assert (found.stopped, found.failed, found.abstained) == (
        {"bare-opener": 1},
        {"malformed": 1},
        1,
    )


def test_infrastructure_failures_are_not_counted():
    found = outcome_of([TIMEOUT, NO_MODEL, WITHSTOOD])
    assert counts_of(found.verdicts) == (0, 1)
    assert found.infrastructure_failures == {"no-model": 1, "timeout": 1}


def test_a_response_passes_with_one_passing_verdict_and_counts_with_one_counted_verdict():
    found = outcome_of([WITHSTOOD, PASSED], [WITHSTOOD], [STOPPED, STOPPED], [TIMEOUT], [])
    assert counts_of(found.responses) == (1, 3)


def test_without_counted_verdicts_there_is_no_rate():
    none = Figures(hits=0, n=0, rate=None, low=None, high=None, n_eff=None, tasks=0)
    assert outcome_of().verdicts == outcome_of([TIMEOUT]).responses == none


@pytest.mark.parametrize(
    ("attacked", "honest", "rate"),
    [
        ([MALFORMED, MALFORMED], [MALFORMED], None),
        ([STOPPED, MALFORMED], [MALFORMED], None),  # a gate alone shows nothing of the judge
        ([MALFORMED, MALFORMED], [PASSED], 0.0),
        ([STOPPED, STOPPED], [], 0.0),  # it was asked nothing, and failed at nothing
    ],
)
def test_a_judge_that_answers_nothing_meets_no_threshold(
    attacked: list, honest: list, rate: float | None
):
    arm = {
        "attacks": attack.attack_outcome_figures([(0, attacked)]),
        "honest": attack.attack_outcome_figures([(0, honest)]),
    }
    report = Report(figures={"arms": {"all": arm}, "configured": "all"}, sections=[])
    figures = attack.figures_by_threshold_name(report)
    assert [figures[name] for name in ("hits", "rate", "responses_rate")] == (
        [None] * 3 if rate is None else [0, 0.0, 0.0]
    )
    assert figures["n"] == 2


# Intervals


def test_verdicts_on_one_task_count_together():
    """Attacks that all pass on one task of ten and on no other are worth some ten observations, not a thousand."""
    found = count_outcomes(
        (task, [WITHSTOOD if task else PASSED] * 4) for task in range(10) for _ in range(25)
    )
    for one in (found.verdicts, found.responses):
        assert (one.rate, one.tasks) == (0.1, 10)
        assert one.n_eff == pytest.approx(9.5, abs=0.1)
        assert one.low < 0.02
        assert one.high > 0.4


def test_one_task_has_a_rate_but_no_interval():
    found = count_outcomes([(3, [PASSED, WITHSTOOD]), (3, [WITHSTOOD, WITHSTOOD])]).verdicts
    assert (found.rate, found.low, found.high, found.tasks) == (0.25, None, None, 1)
