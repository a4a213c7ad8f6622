"""Judges whose w*, η, δ and ε are known: the reports give what DecompR's formulas give, within Monte-Carlo error."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import stats

from jurygraph.arrays import Floats
from jurygraph.studies.decompr_theory import (
    ESTIMATION_SD,
    SHARED_ERROR_SD,
    STAKEHOLDER_COUNTS,
    exact_variance_figures,
    make_judge_with_known_noise,
)
from jurygraph.studies.presentations import Presentations, PresentationScore
from jurygraph.studies.reward_noise import estimate_variance_terms, sign_correctness
from jurygraph.studies.stability import (
    measure_signal_to_noise,
    measure_stability,
    units_by_protocol,
)
from tests.studies.figures import Figures, figures_of

RESPONSES = 60
VARIANTS = 12
REPEATS = 6
CHANCE = 0.04
"""Standard deviation of exact repeats, which the variants have, too."""
SCALE = 81.0
GROUP = 8
GROUPS = 150
SNR = 4.0
WORDINGS = 2000
FIGURES = 6 * len(STAKEHOLDER_COUNTS) + 2
"""Number of figures of a report that are compared: their intervals hold together with 99 % (Bonferroni)."""

seeds = pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (1000, 2000))]
)


def draw(n: int, rng: np.random.Generator, drift: float = 1.0) -> tuple[Floats, Floats, float]:
    """Return the weights, utilities and score of one wording by `make_judge_with_known_noise`."""
    target, utilities, covariance = make_judge_with_known_noise(n)
    weights = target + drift * rng.multivariate_normal(np.zeros(n), covariance, method="eigh")
    estimated = utilities + ESTIMATION_SD * rng.normal(size=n)
    return (
        weights,
        estimated,
        float(weights @ estimated) + SHARED_ERROR_SD * rng.normal() + CHANCE * rng.normal(),
    )


def rows_of(n: int, rng: np.random.Generator) -> Iterator[PresentationScore]:
    names = [f"p{place}" for place in range(n)]
    for place in range(RESPONSES):
        common: dict[str, Any] = {"seed": f"{n}/{place}", "stakeholders": n, "task": f"{n}/{place}"}
        for version in range(VARIANTS):
            weights, utilities, score = draw(n, rng)
            own = {
                "weights": dict(zip(names, weights.tolist(), strict=True)),
                "utilities": dict(zip(names, (1 + 9 * utilities).tolist(), strict=True)),
            }
            yield PresentationScore(
                **common, family="wording", version=version, score=1 + 9 * score, **own
            )
        truth = 0.5
        for version in range(REPEATS):
            score = 1 + 9 * (truth + CHANCE * rng.normal())
            yield PresentationScore(**common, family="repeat", version=version, score=score)


def is_near(found: Figures, truth: float, on_logs: bool = False) -> bool:
    value = math.log(found.value / truth) if on_logs else found.value - truth
    quantile = stats.t.ppf(1.0 - 0.01 / (2 * FIGURES), found.clusters - 1)
    return abs(value) <= quantile * found.error


@seeds
def test_noise_ratios_and_terms_are_those_of_the_formulas(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = tuple(row for n in STAKEHOLDER_COUNTS for row in rows_of(n, rng))
    presentations = Presentations(sources=("known",), rows=rows)
    report = figures_of(measure_stability(presentations))
    semantic = {
        n: SCALE * (exact_variance_figures(n)["semantic"] + CHANCE**2) for n in STAKEHOLDER_COUNTS
    }
    repeat = SCALE * CHANCE**2
    for row in report.noise:
        assert is_near(row.semantic, semantic[row.stakeholders]), row
        assert is_near(row.repeat, repeat), row
    (ratios,) = report.ratios
    assert is_near(ratios.semantic_to_repeat, semantic[8] / repeat, on_logs=True)
    assert is_near(ratios.growth, semantic[8] / semantic[2], on_logs=True)
    assert [row.stakeholders for row in report.drift] == list(STAKEHOLDER_COUNTS)
    for row in report.drift:
        truth = exact_variance_figures(row.stakeholders)
        share = row.explained
        # a share of variances is skewed
        on_log_scale = Figures(share | {"error": share.error / share.value})
        assert is_near(
            on_log_scale, SCALE * truth["shift"] / semantic[row.stakeholders], on_logs=True
        )


def error_of(term: str, rows: tuple[PresentationScore, ...], n: int) -> float:
    """Return the standard error of the mean of a term over responses."""
    found = [
        unit.weights_utilities_and_scores()
        for unit in units_by_protocol(rows)["score"]
        if unit.stakeholders == n
    ]
    terms = [
        (estimate_variance_terms(*one[2]), np.var(one[2][2], ddof=1))
        for one in found
        if one is not None
    ]
    values = [variance if term == "variance" else getattr(one, term) for one, variance in terms]
    return float(np.std(values, ddof=1)) / math.sqrt(RESPONSES)


@seeds
def test_the_terms_of_theorem_1_are_estimated_without_bias(seed: int) -> None:
    rng = np.random.default_rng([seed, 1])
    rows = tuple(row for n in STAKEHOLDER_COUNTS for row in rows_of(n, rng))
    pairs = [
        row.model_copy(update={"task": f"{row.stakeholders}/{int(row.seed.split('/')[1]) // 2}"})
        for row in rows
    ]
    report = figures_of(
        measure_signal_to_noise(Presentations(sources=("known",), rows=tuple(pairs)))
    )
    assert [one.stakeholders for one in report.terms] == list(STAKEHOLDER_COUNTS)
    for one in report.terms:
        truth = exact_variance_figures(one.stakeholders)
        truth |= {"shared": truth["shared"] + CHANCE**2, "variance": truth["semantic"] + CHANCE**2}
        for term in ("estimation", "aggregation", "shared", "cross", "variance"):
            error = error_of(term, rows, one.stakeholders)
            quantile = stats.t.ppf(1.0 - 0.01 / (2 * FIGURES), RESPONSES - 1)
            assert abs(one[term] - SCALE * truth[term]) <= quantile * error, (
                one.stakeholders,
                term,
            )


@seeds
def test_snr_and_signs_are_those_of_the_signal_that_was_put_in(seed: int) -> None:
    """Groups without variants take the noise of the response that has `WORDINGS` of them."""
    rng = np.random.default_rng([seed, 2])
    noise = 0.3
    spread = noise * math.sqrt(SNR) * np.resize([1.0, -1.0], GROUP)

    def score(
        seed: str, task: str, mean: float, family: str, version: int = 0
    ) -> PresentationScore:
        scored = mean + noise * rng.normal()
        return PresentationScore(
            seed=seed, task=task, family=family, version=version, score=scored, stakeholders=2
        )

    rows = [score("noise", "other", 5.0, "wording", version) for version in range(WORDINGS)]
    for group in range(GROUPS):
        rows += [
            score(f"{group}/{place}", f"g{group}", 5.0 + spread[place], "original")
            for place in range(GROUP)
        ]
    report = figures_of(
        measure_signal_to_noise(Presentations(sources=("known",), rows=tuple(rows)))
    )
    found = np.array([group.snr for group in report.groups])
    assert len(found) == GROUPS
    of_groups = found.std(ddof=1) / math.sqrt(GROUPS)
    of_noise = (SNR + 1.0 - 1.0 / GROUP) * math.sqrt(2.0 / (WORDINGS - 1))  # the same in all groups
    assert abs(found.mean() - SNR) <= stats.norm.ppf(0.995) * math.hypot(of_groups, of_noise)
    assert [group.sign_correct for group in report.groups] == [
        sign_correctness(snr, GROUP) for snr in found
    ]
