"""DecompR's theory, and judges whose noise is known: Theorem 1, Propositions 1 and 2, Eq. 35, ensembles (B.3)."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from jurygraph.aggregation import stakeholders
from jurygraph.arrays import Floats
from jurygraph.studies.report import FigureRows, Figures, ReportSections, ReportTable
from jurygraph.studies.reward_noise import (
    estimate_variance_terms,
    exchangeable_aggregation,
    mean_sign_correctness,
    sign_correctness,
    variance_terms,
)
from jurygraph.studies.stability import variance, weight_shift

STAKEHOLDER_COUNTS = (2, 3, 5, 8)
GROUP_SIZES = (2, 4, 8, 16)
"""Numbers of responses in a group, all even; the paper's is 8."""
PUBLISHED_SIGN_SHARE_BY_SNR = {0.5: 0.78, 1.0: 0.86, 1.5: 0.90, 2.0: 0.93, 3.0: 0.97, 4.0: 0.98}
"""P(correct sign) by SNR at G = 8 (B.4.3)."""
PAPER_GROUP_SIZE = 8
VARIANT_COUNT = 1000
"""Scores of one response in an evaluation, and groups for each SNR."""
DRIFT_SD = 0.03
ESTIMATION_SD = 0.08
SHARED_ERROR_SD = 0.05
"""Standard deviations of η_i, δ_i and ε, for utilities from 0 to 1."""
GAP_SD = 0.1
UTILITY_DISPERSION_SD = 0.25
"""Standard deviations of the true gaps Δ_j* of a group, and of u_i* over stakeholders, whatever their number."""
DRIFT_VARIANCE_BY_REGIME: dict[str, Callable[[int], float]] = {
    "constant": lambda n: DRIFT_SD**2,
    "as 1/n": lambda n: DRIFT_SD**2 * 2 / n,
}
"""σ²_η by the number of stakeholders, equal for two: DecompR's two cases of B.4.2."""
ENSEMBLE_STAKEHOLDER_COUNT = 5
"""Number of stakeholders of the ensemble's task."""
ENSEMBLE_CALL_COUNTS = (1, 5, 25)
"""Numbers M of independent calls of an ensemble."""
MAX_MEAN_WEIGHT_ERROR = 0.1
"""How far the mean weights of the ensemble's judge are from the intended ones, at the first and the last person."""
_VARIANCE_TERM_TITLES = {
    "estimation": "I, estimation",
    "aggregation": "II, weights",
    "shared": "III, shared",
    "cross": "cross",
    "semantic": "σ²_Sem",
    "exchangeable": "II by Prop. 1",
    "shift": "Var[ΔR_w]",
}


def make_judge_with_known_noise(n: int) -> tuple[Floats, Floats, Floats]:
    """Return w* (Eq. 10 with d_i from 1 to 5 and τ = 5), u* from 0.2 to 0.9, and Cov(η): exchangeable, zero-sum."""
    weights = stakeholders.weights(np.linspace(1.0, 5.0, n))
    utilities = np.linspace(0.2, 0.9, n)
    covariance = DRIFT_SD**2 * n / (n - 1) * (np.eye(n) - 1.0 / n)
    return weights, utilities, covariance


def exact_variance_figures(n: int) -> dict[str, float]:
    """Return Theorem 1's terms of `make_judge_with_known_noise`, Term II by Proposition 1, σ²_Sem, and Var[ΔR_w], by
    their names."""
    weights, utilities, covariance = make_judge_with_known_noise(n)
    terms = variance_terms(
        weights, utilities, covariance, np.full(n, ESTIMATION_SD**2), SHARED_ERROR_SD**2
    )
    return {
        **terms._asdict(),
        "semantic": terms.total,
        "exchangeable": exchangeable_aggregation(utilities, DRIFT_SD**2),
        "shift": terms.aggregation + terms.cross,
    }


def simulate_known_noise_judge(n: int, seed: int) -> dict[str, float]:
    """Return what the studies measure on variants that `make_judge_with_known_noise` scored, by the names of
    `exact_variance_figures`."""
    rng = np.random.default_rng([seed, n])
    target, true_utilities, _ = make_judge_with_known_noise(n)
    weights, utilities, scores = _draw_judgements(rng, target, true_utilities)
    drift = float(np.mean(np.var(weights, axis=0, ddof=1)))
    terms = estimate_variance_terms(weights, utilities, scores)
    return {
        **terms._asdict(),
        "semantic": variance(scores),
        "exchangeable": exchangeable_aggregation(utilities.mean(axis=0), drift),
        "shift": variance(weight_shift(weights, weights.mean(axis=0), utilities)),
    }


def simulate_positive_advantage_share(snr: float, group: int, seed: int) -> float:
    """Return the share of groups in which a response one standard deviation above the mean has an advantage above 0.

    Half of the group is as far above the mean as the other half is below it; the noise has the variance 1.
    """
    rng = np.random.default_rng([seed, group, round(10 * snr)])
    signal = math.sqrt(snr) * np.resize([1.0, -1.0], group)
    rewards = signal + rng.normal(size=(VARIANT_COUNT, group))
    return float(np.mean(rewards[:, 0] > rewards.mean(axis=1)))


def make_dispersed_utilities(n: int) -> Floats:
    """Return u* of n stakeholders with a standard deviation of `UTILITY_DISPERSION_SD`, around a half, [n]."""
    spread = np.linspace(-1.0, 1.0, n)
    return 0.5 + UTILITY_DISPERSION_SD * spread / np.std(spread)


def snr_of_stakeholders(n: int, drift_variance: float) -> float:
    """Return SNR(n) = (n - 1) Var_j[Δ*] / (n² σ²_η Var_i[u*]) where Term II is all of the noise: Eq. 35.

    With a constant σ²_η it is O(1/n).
    """
    return GAP_SD**2 / exchangeable_aggregation(make_dispersed_utilities(n), drift_variance)


def measure_snr(n: int, drift_variance: float, seed: int) -> float:
    """Return the SNR of rewards whose noise is zero-sum drift of n weights alone, as a study measures it."""
    rng = np.random.default_rng([seed, n, round(1e6 * drift_variance)])
    drift = _sample_weight_drift(rng, n, math.sqrt(drift_variance))
    noise = np.sum(drift * make_dispersed_utilities(n), axis=1)
    # without the factor, the inverse of an estimated variance would be too large on average
    degrees_of_freedom = VARIANT_COUNT - 1
    return GAP_SD**2 / variance(noise) * (degrees_of_freedom - 2) / degrees_of_freedom


def _draw_judgements(
    rng: np.random.Generator, true_mean_weights: Floats, true_utilities: Floats
) -> tuple[Floats, Floats, Floats]:
    """Draw a judge's weights and utilities, each [VARIANTS, n], and the scores that it forms from them, [VARIANTS]."""
    n = len(true_mean_weights)
    weights = true_mean_weights + _sample_weight_drift(rng, n, DRIFT_SD)
    utilities = true_utilities + ESTIMATION_SD * rng.normal(size=(VARIANT_COUNT, n))
    scores = np.sum(weights * utilities, axis=1) + SHARED_ERROR_SD * rng.normal(size=VARIANT_COUNT)
    return weights, utilities, scores


def _sample_weight_drift(rng: np.random.Generator, n: int, deviation: float) -> Floats:
    """Draw exchangeable zero-sum drift whose weights have this standard deviation each, [VARIANTS, n]."""
    normal_draws = rng.normal(size=(VARIANT_COUNT, n))
    centered = normal_draws - normal_draws.mean(axis=1, keepdims=True)
    # centring leaves 1 - 1/n of the variance, which the root makes up for
    return np.asarray(deviation * math.sqrt(n / (n - 1)) * centered)


def mean_weight_errors(n: int) -> Floats:
    """Return E[ŵ] - w* of the ensemble's judge, which sums to 0, [n]."""
    return np.linspace(MAX_MEAN_WEIGHT_ERROR, -MAX_MEAN_WEIGHT_ERROR, n)


def ensemble_figures(n: int, calls: int) -> dict[str, float]:
    """Return Var[R̄_M] = Var[R̂] / M, and the bias Σ (E[ŵ_i] - w_i*) u_i* that no number of calls takes away (B.3)."""
    weights, utilities, covariance = make_judge_with_known_noise(n)
    errors_of_mean_weights = mean_weight_errors(n)
    terms = variance_terms(
        weights + errors_of_mean_weights,
        utilities,
        covariance,
        np.full(n, ESTIMATION_SD**2),
        SHARED_ERROR_SD**2,
    )
    return {"variance": terms.total / calls, "bias": float(errors_of_mean_weights @ utilities)}


def measure_ensemble(calls: int, seed: int) -> dict[str, float]:
    """Return the variance and the bias of the mean of so many calls of that judge, over `VARIANT_COUNT` ensembles."""
    n = ENSEMBLE_STAKEHOLDER_COUNT
    rng = np.random.default_rng([seed, n, calls])
    target, true_utilities, _ = make_judge_with_known_noise(n)
    biased_mean_weights = target + mean_weight_errors(n)
    means = np.zeros(VARIANT_COUNT)
    for _ in range(calls):
        _, _, scores = _draw_judgements(rng, biased_mean_weights, true_utilities)
        means += scores / calls
    return {"variance": variance(means), "bias": means.mean() - target @ true_utilities}


def simulate_correct_sign_share(snr: float, seed: int) -> float:
    """Return the share of right signs over all responses of groups of the paper's size whose true gaps are normal.

    The noise of a reward has the variance 1. A gap is the distance from the group's true mean.
    """
    rng = np.random.default_rng([seed, PAPER_GROUP_SIZE, round(10 * snr), 1])
    gaps = math.sqrt(snr) * rng.normal(size=VARIANT_COUNT)
    noise = math.sqrt(1.0 - 1.0 / PAPER_GROUP_SIZE) * rng.normal(size=VARIANT_COUNT)
    return float(np.mean(np.sign(gaps + noise) == np.sign(gaps)))


def simulate_decompr_theory(seeds: Sequence[int]) -> dict[str, list[Figures]]:
    """Return the rows of `terms`, `signs`, `scaling`, `ensembles`: the `formula`, and what each seed `simulated`."""
    rows: dict[str, list[Figures]] = {"terms": [], "signs": [], "scaling": [], "ensembles": []}
    by_seed: Sequence[Mapping[Any, float]]
    formulas: Mapping[Any, float]
    for n in STAKEHOLDER_COUNTS:
        by_seed = [simulate_known_noise_judge(n, seed) for seed in seeds]
        rows["terms"] += _compare_with_formulas(exact_variance_figures(n), by_seed, stakeholders=n)
    for snr, group in product(PUBLISHED_SIGN_SHARE_BY_SNR, GROUP_SIZES):
        by_seed = [{snr: simulate_positive_advantage_share(snr, group, seed)} for seed in seeds]
        formulas = {snr: sign_correctness(snr, group)}
        rows["signs"] += _compare_with_formulas(formulas, by_seed, group=group)
    for snr in PUBLISHED_SIGN_SHARE_BY_SNR:
        by_seed = [{snr: simulate_correct_sign_share(snr, seed)} for seed in seeds]
        formulas = {snr: mean_sign_correctness(snr, PAPER_GROUP_SIZE)}
        rows["signs"] += _compare_with_formulas(formulas, by_seed, group="all")
    for (name, drift), n in product(DRIFT_VARIANCE_BY_REGIME.items(), STAKEHOLDER_COUNTS):
        by_seed = [{name: measure_snr(n, drift(n), seed)} for seed in seeds]
        formulas = {name: snr_of_stakeholders(n, drift(n))}
        rows["scaling"] += _compare_with_formulas(formulas, by_seed, stakeholders=n)
    for calls in ENSEMBLE_CALL_COUNTS:
        by_seed = [measure_ensemble(calls, seed) for seed in seeds]
        formulas = ensemble_figures(ENSEMBLE_STAKEHOLDER_COUNT, calls)
        rows["ensembles"] += _compare_with_formulas(formulas, by_seed, calls=calls)
    return rows


def _compare_with_formulas(
    formulas: Mapping[Any, float], figures_by_seed: Sequence[Mapping[Any, float]], **setting: object
) -> Iterator[Figures]:
    """Yield a row for each figure by its name, in a setting: its formula, and what each seed simulated."""
    for name, formula in formulas.items():
        simulated = [figures[name] for figures in figures_by_seed]
        yield {"name": name, **setting, "formula": formula, "simulated": simulated}


def decompr_sections(decompr: dict[str, list[Figures]]) -> ReportSections:
    """Yield the tables of `simulate_decompr_theory`: formulas and simulated means, and the paper's numbers."""
    if not decompr:
        return
    yield (
        f"DecompR: sd of η {DRIFT_SD:g}, of δ {ESTIMATION_SD:g}, of ε {SHARED_ERROR_SD:g}; {VARIANT_COUNT} variants "
        "for each seed"
    )
    people = [f"n={n}" for n in STAKEHOLDER_COUNTS]
    groups = [*(f"G={group}" for group in GROUP_SIZES), "all, G=8"]
    calls = [f"M={count}" for count in ENSEMBLE_CALL_COUNTS]
    snrs = {snr: f"{snr:g}" for snr in PUBLISHED_SIGN_SHARE_BY_SNR}
    regimes = {name: name for name in DRIFT_VARIANCE_BY_REGIME}
    errors = {"variance": "variance", "bias": "bias"}
    parts = (
        ("terms", "Theorem 1, Proposition 1", people, _VARIANCE_TERM_TITLES, 5),
        ("signs", "Proposition 2: SNR", groups, snrs, 3),
        ("scaling", "Eq. 35: SNR if σ²_η is", people, regimes, 2),
        ("ensembles", f"B.3: mean of M calls, n={ENSEMBLE_STAKEHOLDER_COUNT}", calls, errors, 5),
    )
    for part, title, settings, titles, digits in parts:
        header = [title]
        for setting in settings:
            header += [setting, "simulated"]
        rows = [[text, *_column_cells(decompr[part], name)] for name, text in titles.items()]
        if part == "signs":
            header.append("paper, G=8")
            for row, share in zip(rows, PUBLISHED_SIGN_SHARE_BY_SNR.values(), strict=True):
                row.append(f"{share:.2f}")
        yield ReportTable(header, rows, digits=digits)


def _column_cells(rows: FigureRows, name: object) -> list[object]:
    cells = []
    for row in rows:
        if row["name"] == name:
            cells += [row["formula"], float(np.mean(row["simulated"]))]
    return cells
