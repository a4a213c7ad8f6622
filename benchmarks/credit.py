"""Bootstrap intervals of false credit: 5,000 examples × 1,000 resamples, four rules, leakage and preservation."""

import numpy as np

from benchmarks.figure import Figure, at_least, at_most, best_of
from jurygraph.studies.credit.cases import EDGE_KINDS, Cases
from jurygraph.studies.credit.study import Estimate, Settings, diagnoses

EXAMPLES, EDGES, RESAMPLES = 5000, 11, 1000
RULES = ("flat", "hard-local", "hard-transitive", "gear")
LOOPED = 10
"""Resamples of the plain loop: it takes as long for each."""


def measure() -> list[Figure]:
    """Return the seconds for all intervals, and the speed-up over a plain loop over the drawn cases."""
    rng = np.random.default_rng(0)
    size = EXAMPLES * EDGES
    cases = Cases(
        p_parent=rng.random(size),
        p_child=rng.random(size),
        share=rng.random(size),
        kind=rng.choice(np.array(EDGE_KINDS), size),
        example=np.repeat(np.arange(EXAMPLES), EDGES),
        examples=EXAMPLES,
    )
    scores = {rule: cases.p_child * rng.random(size) for rule in RULES}

    def vectorised_ends(resamples: int) -> dict[str, tuple[float | None, ...]]:
        found = diagnoses(cases, scores, {"": EDGE_KINDS}, Settings(resamples=resamples))
        return {rule: _ends(found[rule][""].leakage) + _ends(found[rule][""].preservation) for rule in RULES}

    plain = plain_loop(cases, scores, LOOPED)
    for rule, ends in vectorised_ends(LOOPED).items():
        np.testing.assert_allclose(ends, plain[rule], rtol=1e-9)
    whole = best_of(lambda: vectorised_ends(RESAMPLES), repeat=3, number=1)
    loop = best_of(lambda: plain_loop(cases, scores, LOOPED), repeat=1, number=1) / LOOPED * RESAMPLES
    return [
        at_most("credit, 5,000 examples × 1,000 resamples", whole, "s CPU", 3.0),
        at_least("... against a plain Python loop over the drawn cases", loop / whole, "times", 10.0),
        Figure("plain Python loop, reckoned from 10 resamples", loop, "s CPU"),
    ]


def _ends(estimate: Estimate) -> tuple[float | None, float | None]:
    return estimate.low, estimate.high


def plain_loop(cases: Cases, scores: dict[str, np.ndarray], resamples: int) -> dict[str, list[float]]:
    """Return the intervals by the definitions, resample by resample, example by example, edge by edge."""
    of_example: list[list[tuple[float, float, float, list[float]]]] = [[] for _ in range(cases.examples)]
    columns = (cases.example, cases.p_parent, cases.p_child, cases.share, *scores.values())
    for example, parent, child, share, *left in zip(*(column.tolist() for column in columns), strict=True):
        of_example[example].append((parent, child, share, left))
    rng = np.random.Generator(np.random.PCG64(0))
    found: dict[str, list[list[float]]] = {rule: [[], []] for rule in scores}
    for _ in range(resamples):
        sums, counts = [[0.0, 0.0] for _ in scores], [0, 0]
        for example in rng.integers(cases.examples, size=cases.examples).tolist():
            for parent, child, share, left in of_example[example]:
                if child < 0.5:
                    continue
                satisfied = parent >= 0.5
                counts[satisfied] += 1
                for total, score in zip(sums, left, strict=True):
                    total[satisfied] += score / child if satisfied else share * score
        for rule, total in zip(found, sums, strict=True):
            for figure in (0, 1):
                found[rule][figure].append(total[figure] / counts[figure])
    return {
        rule: [float(end) for one in both for end in np.quantile(one, (0.025, 0.975))] for rule, both in found.items()
    }
