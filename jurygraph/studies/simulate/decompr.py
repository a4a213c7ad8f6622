"""DecompR's theory for judges whose noise is known: Theorem 1, Propositions 1 and 2 (sections 4 and B)."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from jurygraph.aggregation import stakeholders
from jurygraph.arrays import Floats
from jurygraph.studies.report import ReportTable
from jurygraph.studies.stability.measures import variance, weight_shift
from jurygraph.studies.stability.theory import (
    estimate_terms,
    exchangeable_aggregation,
    sign_correctness,
    variance_terms,
)

STAKEHOLDERS = (2, 3, 5, 8)
GROUPS = (2, 4, 8, 16)
"""Numbers of responses in a group, all even; the paper's is 8."""
PAPER = {0.5: 0.78, 1.0: 0.86, 1.5: 0.90, 2.0: 0.93, 3.0: 0.97, 4.0: 0.98}
"""P(correct sign) by SNR at G = 8 (B.4.3)."""
VARIANTS = 1000
"""Scores of one response in an evaluation, and groups for each SNR."""
DRIFT = 0.03
ESTIMATION = 0.08
SHARED = 0.05
"""Standard deviations of η_i, δ_i and ε, for utilities from 0 to 1."""
_TITLES = {
    "estimation": "I, estimation",
    "aggregation": "II, weights",
    "shared": "III, shared",
    "cross": "cross",
    "semantic": "σ²_Sem",
    "exchangeable": "II by Prop. 1",
    "shift": "Var[ΔR_w]",
}


def known_judge(n: int) -> tuple[Floats, Floats, Floats]:
    """Return w* (Eq. 10 with d_i from 1 to 5 and τ = 5), u* from 0.2 to 0.9, and Cov(η): exchangeable, zero-sum."""
    covariance = DRIFT**2 * n / (n - 1) * (np.eye(n) - 1.0 / n)
    return stakeholders.weights(np.linspace(1.0, 5.0, n)), np.linspace(0.2, 0.9, n), covariance


def true_figures(n: int) -> dict[str, float]:
    """Return Theorem 1's terms of `known_judge`, Term II by Proposition 1, σ²_Sem, and Var[ΔR_w], by their names."""
    weights, utilities, covariance = known_judge(n)
    terms = variance_terms(weights, utilities, covariance, np.full(n, ESTIMATION**2), SHARED**2)
    exchangeable = exchangeable_aggregation(utilities, DRIFT**2)
    shift = terms.aggregation + terms.cross
    return {**terms._asdict(), "semantic": terms.total, "exchangeable": exchangeable, "shift": shift}


def measure_judge(n: int, seed: int) -> dict[str, float]:
    """Return what the studies measure on variants that `known_judge` scored, by the names of `true_figures`."""
    rng = np.random.default_rng([seed, n])
    target, true_utilities, _ = known_judge(n)
    drawn = rng.normal(size=(VARIANTS, n))
    weights = target + DRIFT * math.sqrt(n / (n - 1)) * (drawn - drawn.mean(axis=1, keepdims=True))
    utilities = true_utilities + ESTIMATION * rng.normal(size=(VARIANTS, n))
    scores = np.sum(weights * utilities, axis=1) + SHARED * rng.normal(size=VARIANTS)
    drift = float(np.mean(np.var(weights, axis=0, ddof=1)))
    return {
        **estimate_terms(weights, utilities, scores)._asdict(),
        "semantic": variance(scores, ddof=1),
        "exchangeable": exchangeable_aggregation(utilities.mean(axis=0), drift),
        "shift": variance(weight_shift(weights, weights.mean(axis=0), utilities), ddof=1),
    }


def measure_signs(snr: float, group: int, seed: int) -> float:
    """Return the share of groups in which a response one standard deviation above the mean has an advantage above 0.

    Half of the group is as far above the mean as the other half is below it; the noise has the variance 1.
    """
    rng = np.random.default_rng([seed, group, round(10 * snr)])
    rewards = math.sqrt(snr) * np.resize([1.0, -1.0], group) + rng.normal(size=(VARIANTS, group))
    return float(np.mean(rewards[:, 0] > rewards.mean(axis=1)))


def simulate_decompr(seeds: Sequence[int]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of `terms` and `signs`: the `formula`, and what is `simulated` by each seed."""
    terms = []
    for n in STAKEHOLDERS:
        found = [measure_judge(n, seed) for seed in seeds]
        for name, value in true_figures(n).items():
            simulated = [one[name] for one in found]
            terms.append({"name": name, "stakeholders": n, "formula": value, "simulated": simulated})
    signs = []
    for snr in PAPER:
        for group in GROUPS:
            shares = [measure_signs(snr, group, seed) for seed in seeds]
            formula = sign_correctness(snr, group)
            signs.append({"name": snr, "group": group, "formula": formula, "simulated": shares})
    return {"terms": terms, "signs": signs}


def decompr_sections(found: dict[str, list[dict[str, Any]]]) -> Iterator[str | ReportTable]:
    """Yield the tables of `simulate_decompr`: formulas and simulated means, and the paper's numbers."""
    yield f"DecompR: sd of η {DRIFT:g}, of δ {ESTIMATION:g}, of ε {SHARED:g}; {VARIANTS} variants for each seed"
    header = [title for n in STAKEHOLDERS for title in (f"n={n}", "simulated")]
    rows = [[title, *_cells(found["terms"], name)] for name, title in _TITLES.items()]
    yield ReportTable(["Theorem 1, Proposition 1", *header], rows, digits=5)
    header = [title for group in GROUPS for title in (f"G={group}", "simulated")]
    rows = [[f"{snr:g}", *_cells(found["signs"], snr), f"{paper:.2f}"] for snr, paper in PAPER.items()]
    yield ReportTable(["Proposition 2: SNR", *header, "paper, G=8"], rows, digits=3)


def _cells(rows: Sequence[dict[str, Any]], name: object) -> list[object]:
    own = [row for row in rows if row["name"] == name]
    return [cell for row in own for cell in (row["formula"], float(np.mean(row["simulated"])))]
