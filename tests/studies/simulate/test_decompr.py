"""Judges with known noise: what the stability study measures is what DecompR's formulas give."""

import numpy as np
import pytest
from scipy import stats

from jurygraph.studies.decompr_theory import (
    ENSEMBLE_CALL_COUNTS,
    GROUP_SIZES,
    PUBLISHED_SIGN_SHARE_BY_SNR,
    STAKEHOLDER_COUNTS,
    ensemble_figures,
    exact_variance_figures,
    make_judge_with_known_noise,
    simulate_decompr_theory,
    snr_of_stakeholders,
)
from jurygraph.studies.reward_noise import (
    exchangeable_aggregation,
    mean_sign_correctness,
    sign_correctness,
)

EVALUATIONS = 25


@pytest.mark.parametrize("seed", [0, 1000, 2000])
def test_every_quantity_is_within_its_monte_carlo_interval_of_the_formula(seed: int) -> None:
    """The intervals hold together with 99 % (Bonferroni)."""
    found = simulate_decompr_theory(range(seed, seed + EVALUATIONS))
    rows = [row for part in found.values() for row in part]
    assert len(found["terms"]) == 7 * len(STAKEHOLDER_COUNTS)
    quantile = stats.t.ppf(1.0 - 0.01 / (2 * len(rows)), EVALUATIONS - 1)
    for row in rows:
        simulated = np.array(row["simulated"])
        error = simulated.std(ddof=1) / np.sqrt(EVALUATIONS)
        assert abs(simulated.mean() - row["formula"]) <= quantile * error, row


@pytest.mark.parametrize("n", STAKEHOLDER_COUNTS)
def test_proposition_1_is_term_ii_of_exchangeable_drift_exactly(n: int) -> None:
    _, utilities, covariance = make_judge_with_known_noise(n)
    assert covariance.sum(axis=0) == pytest.approx(np.zeros(n), abs=1e-15)
    found = exact_variance_figures(n)
    assert found["exchangeable"] == pytest.approx(found["aggregation"], rel=1e-12)
    assert exchangeable_aggregation(utilities, covariance[0, 0]) == pytest.approx(
        found["aggregation"], rel=1e-12
    )
    assert exchangeable_aggregation(np.full(n, 0.4), 1.0) == pytest.approx(0.0, abs=1e-15)


def test_proposition_2_has_the_papers_numbers_and_falls_with_the_size_of_the_group() -> None:
    exact = [sign_correctness(snr, 8) for snr in PUBLISHED_SIGN_SHARE_BY_SNR]
    assert exact == pytest.approx([0.775, 0.857, 0.905, 0.935, 0.968, 0.984], abs=0.0005)
    assert exact == pytest.approx(list(PUBLISHED_SIGN_SHARE_BY_SNR.values()), abs=0.0055)
    for snr in PUBLISHED_SIGN_SHARE_BY_SNR:
        by_group = [sign_correctness(snr, group) for group in GROUP_SIZES]
        assert by_group == sorted(by_group, reverse=True)


def test_the_snr_falls_as_one_by_n_with_constant_drift_and_not_with_shrinking_drift() -> None:
    """Eq. 35: (n - 1) / n² times what does not depend on n."""
    constant = [snr_of_stakeholders(n, 0.01) for n in (8, 80, 800)]
    assert constant[0] / constant[1] == pytest.approx(10 * (7 / 8) / (79 / 80))
    assert constant[1] / constant[2] == pytest.approx(10, rel=0.02)
    shrinking = [snr_of_stakeholders(n, 0.01 / n) for n in (8, 80, 800)]
    assert shrinking == pytest.approx([shrinking[0]] * 3, rel=0.15)


def test_more_calls_divide_the_variance_and_leave_the_bias() -> None:
    one, *others = [ensemble_figures(5, calls) for calls in ENSEMBLE_CALL_COUNTS]
    for calls, figures in zip(ENSEMBLE_CALL_COUNTS[1:], others, strict=True):
        assert figures["variance"] == pytest.approx(one["variance"] / calls)
        assert figures["bias"] == one["bias"] != 0.0


def test_all_responses_have_the_right_sign_less_often_than_one_a_standard_deviation_off() -> None:
    assert mean_sign_correctness(1.0, 8) == pytest.approx(0.7605, abs=0.0005)
    for snr in PUBLISHED_SIGN_SHARE_BY_SNR:
        assert 0.5 < mean_sign_correctness(snr, 8) < sign_correctness(snr, 8)
