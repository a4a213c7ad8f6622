"""Outcomes of verdicts: those that pass, those that count, and the reasons."""

from collections.abc import Iterable

import numpy as np
import pytest

from jurygraph.schema import Failure, RecordedVerdict
from jurygraph.studies.attack import report
from tests.studies.figures import Figures, read_figures

PASSED, HALF, WITHSTOOD = RecordedVerdict(score=1.0), RecordedVerdict(score=0.5), RecordedVerdict(score=0.499)
STOPPED = RecordedVerdict(score=0.0, gated_by="bare-opener")
MALFORMED = RecordedVerdict.fail("malformed", "no JSON", cause="response")
TIMEOUT = RecordedVerdict.fail("timeout", "too late")
NO_MODEL = RecordedVerdict(status="abstained", failure=Failure(cause="infrastructure", kind="no-model"))
NOT_APPLICABLE = RecordedVerdict(status="not_applicable", gated_by="maths.accuracy")


def count_outcomes(responses: Iterable[tuple[int, list[RecordedVerdict]]]) -> Figures:
    return read_figures(report.count_outcomes(responses))


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
    assert (found.stopped, found.failed, found.abstained) == ({"bare-opener": 1}, {"malformed": 1}, 1)


def test_infrastructure_failures_are_not_counted():
    found = outcome_of([TIMEOUT, NO_MODEL, WITHSTOOD])
    assert counts_of(found.verdicts) == (0, 1)
    assert found.infrastructure_failures == {"no-model": 1, "timeout": 1}


def test_verdicts_that_do_not_apply_are_not_counted():
    found = outcome_of([NOT_APPLICABLE, PASSED])
    assert (counts_of(found.verdicts), found.not_applicable) == ((1, 1), 1)


def test_a_response_passes_with_one_passing_verdict_and_counts_with_one_counted_verdict():
    found = outcome_of([WITHSTOOD, PASSED], [WITHSTOOD], [STOPPED, STOPPED], [TIMEOUT], [])
    assert counts_of(found.responses) == (1, 3)


def test_without_counted_verdicts_there_is_no_rate():
    none = Figures(hits=0, n=0, rate=None, low=None, high=None, n_eff=None, tasks=0)
    assert outcome_of().verdicts == outcome_of([TIMEOUT]).responses == none


# Intervals


def test_verdicts_on_one_task_count_together():
    """Attacks that all pass on one task of ten and on no other are worth some ten observations, not a thousand."""
    found = count_outcomes((task, [WITHSTOOD if task else PASSED] * 4) for task in range(10) for _ in range(25))
    for one in (found.verdicts, found.responses):
        assert (one.rate, one.tasks) == (0.1, 10)
        assert one.n_eff == pytest.approx(9.5, abs=0.1)
        assert one.low < 0.02
        assert one.high > 0.4


def test_tasks_without_any_difference_have_the_exact_interval_of_as_many_observations():
    found = count_outcomes((task, [WITHSTOOD]) for task in range(4) for _ in range(240)).verdicts
    assert (found.n, found.n_eff, found.tasks) == (960, 4, 4)
    assert (found.rate, found.low, found.high) == (0.0, 0.0, pytest.approx(1.0 - 0.025**0.25))


def test_one_task_has_a_rate_but_no_interval():
    found = count_outcomes([(3, [PASSED, WITHSTOOD]), (3, [WITHSTOOD, WITHSTOOD])]).verdicts
    assert (found.rate, found.low, found.high, found.tasks) == (0.25, None, None, 1)


def test_only_tasks_with_a_counted_verdict_are_counted():
    found = count_outcomes([(0, [PASSED]), (1, [WITHSTOOD]), (2, [TIMEOUT]), (3, [])])
    assert found.verdicts.tasks == found.responses.tasks == 2


@pytest.mark.parametrize("rate", [0.3, 0.5])
def test_the_interval_covers_the_rate_over_tasks_that_differ(rate: float):
    """With the verdicts taken for independent, it covered .40 of such data (10 tasks, an intra-class correlation of .2,
    60 verdicts)."""
    rng, covered, replications = np.random.default_rng(3), 0, 300
    for _ in range(replications):
        passing = rng.binomial(60, rng.beta(4 * rate, 4 * (1 - rate), 10))
        found = count_outcomes((t, [PASSED] * n + [WITHSTOOD] * (60 - n)) for t, n in enumerate(passing)).verdicts
        covered += found.low <= rate <= found.high
    assert 0.93 <= covered / replications <= 0.99
