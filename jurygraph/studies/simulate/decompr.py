"""DecompR's theory under its own model, with known parameters: Theorem 1, Propositions 1 and 2 (sections 4 and B)."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from jurygraph.aggregation import stakeholders
from jurygraph.arrays import Floats
from jurygraph.studies.report import ReportTable
from jurygraph.studies.stability.measures import variance, weight_shift
from jurygraph.studies.stability.theory import (
    VarianceTerms,
    estimate_terms,
    exchangeable_aggregation,
    sign_correctness,
    variance_terms,
)

STAKEHOLDERS = (2, 3, 5, 8)
GROUPS = (2, 4, 8, 16)
"""Numbers of responses in a group; the paper's is 8."""
PAPER = {0.5: 0.78, 1.0: 0.86, 1.5: 0.90, 2.0: 0.93, 3.0: 0.97, 4.0: 0.98}
"""P(correct sign) by SNR at G = 8 (B.4.3)."""
PAPER_GROUP = 8
VARIANTS = 1000
"""Scores of one response in an evaluation, and groups for each SNR."""
DRIFT = 0.03
ESTIMATION = 0.08
SHARED = 0.05
"""Standard deviations of η_i, δ_i and ε, for utilities from 0 to 1."""
Row = dict[str, Any]


def known_judge(n: int) -> tuple[Floats, Floats, Floats]:
    """Return w* (Eq. 10 with d_i from 1 to 5 and τ = 5), u* from 0.2 to 0.9, and Cov(η): exchangeable, zero-sum."""
    weights = stakeholders.weights(np.linspace(1.0, 5.0, n))
    utilities = np.linspace(0.2, 0.9, n)
    covariance = DRIFT**2 * n / (n - 1) * (np.eye(n) - 1.0 / n)
    return weights, utilities, covariance


def true_figures(n: int) -> dict[str, float]:
    """Return Theorem 1's terms and their sum for `known_judge`, with Term II by Proposition 1 and by Eq. 21."""
    weights, utilities, covariance = known_judge(n)
    terms = variance_terms(weights, utilities, covariance, np.full(n, ESTIMATION**2), SHARED**2)
    figures = terms._asdict() | {"semantic": terms.total}
    return figures | {
        "exchangeable": exchangeable_aggregation(utilities, DRIFT**2),
        "shift": terms.aggregation + terms.cross,
    }


def simulate_judge(n: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Return weights [V, n], utilities [V, n] and scores [V] of V variants by `known_judge`."""
    target, utilities, _ = known_judge(n)
    drawn = rng.normal(size=(VARIANTS, n))
    drift = DRIFT * math.sqrt(n / (n - 1)) * (drawn - drawn.mean(axis=1, keepdims=True))
    weights = target + drift
    estimates = utilities + ESTIMATION * rng.normal(size=(VARIANTS, n))
    return weights, estimates, np.sum(weights * estimates, axis=1) + SHARED * rng.normal(size=VARIANTS)


def measure_judge(n: int, seed: int) -> dict[str, float]:
    """Return what the stability study measures on simulated variants, by the names of `true_figures`.

    `semantic` is σ²_Sem, and `shift` the variance of ΔR_w. Variances have the divisor V - 1 here.
    """
    weights, utilities, scores = simulate_judge(n, np.random.default_rng([seed, n]))
    terms: VarianceTerms = estimate_terms(weights, utilities, scores)
    drift = float(np.mean(np.var(weights, axis=0, ddof=1)))
    return terms._asdict() | {
        "semantic": variance(scores, ddof=1),
        "exchangeable": exchangeable_aggregation(utilities.mean(axis=0), drift),
        "shift": variance(weight_shift(weights, weights.mean(axis=0), utilities), ddof=1),
    }


def measure_signs(snr: float, group: int, seed: int) -> float:
    """Return the share of groups in which a response one standard deviation above the mean has an advantage above 0.

    Half of an even group is as far above the mean as the other half is below it; the noise has the variance 1.
    """
    rng = np.random.default_rng([seed, group, round(10 * snr)])
    gaps = np.resize([1.0, -1.0], group)
    rewards = math.sqrt(snr) * gaps + rng.normal(size=(VARIANTS, group))
    return float(np.mean(rewards[:, 0] > rewards.mean(axis=1)))


def simulate_decompr(seeds: Sequence[int]) -> Row:
    """Return the figures of each quantity: `formula`, and `simulated` [seeds] by number of stakeholders or group."""
    terms = []
    for n in STAKEHOLDERS:
        found = [measure_judge(n, seed) for seed in seeds]
        for name, value in true_figures(n).items():
            terms.append(
                {"stakeholders": n, "quantity": name, "formula": value, "simulated": [one[name] for one in found]}
            )
    signs = []
    for snr, paper in PAPER.items():
        for group in GROUPS:
            shares = [measure_signs(snr, group, seed) for seed in seeds]
            row = {"snr": snr, "group": group, "formula": sign_correctness(snr, group), "simulated": shares}
            signs.append({**row, "paper": paper if group == PAPER_GROUP else None})
    return {"terms": terms, "signs": signs}


_NAMES = {
    "estimation": "I, estimation",
    "aggregation": "II, weights",
    "shared": "III, shared",
    "cross": "cross",
    "semantic": "σ²_Sem",
    "exchangeable": "II by Prop. 1",
    "shift": "Var[ΔR_w]",
}


def decompr_sections(found: Row) -> Iterator[str | ReportTable]:
    """Yield the tables of `simulate_decompr`: formulas and simulated means, and the paper's numbers."""
    yield f"DecompR: sd of η {DRIFT:g}, of δ {ESTIMATION:g}, of ε {SHARED:g}; {VARIANTS} variants for each seed"
    header = [title for n in STAKEHOLDERS for title in (f"n={n}", "simulated")]
    rows = []
    for name, title in _NAMES.items():
        own = [one for one in found["terms"] if one["quantity"] == name]
        rows.append([title, *(cell for one in own for cell in (one["formula"], float(np.mean(one["simulated"]))))])
    yield ReportTable(["Theorem 1, Proposition 1", *header], rows, digits=5)
    header = [title for group in GROUPS for title in (f"G={group}", "simulated")]
    rows = []
    for snr, paper in PAPER.items():
        own = [one for one in found["signs"] if one["snr"] == snr]
        cells = [cell for one in own for cell in (one["formula"], float(np.mean(one["simulated"])))]
        rows.append([f"{snr:g}", *cells, f"{paper:.2f}"])
    yield ReportTable(["Proposition 2: SNR", *header, f"paper, G={PAPER_GROUP}"], rows, digits=3)
