"""STABLEVAL's propositions: how scores and rankings change when 70 % of the annotators remain, for more and more items.

No item is ambiguous, so that the paper's model is correctly specified, and its parameters are the maximum likelihood
estimates, as Proposition 2 assumes.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.simulation.processes import run_each
from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus.fitting import tau_b
from jurygraph.arrays import Floats
from jurygraph.studies.simulate import (
    CLASS_COUNT,
    SimulationSetting,
    score_by_each_method,
    stableval,
)

SIZES = (100, 400, 1600, 6400)
"""Items of each agent."""
FRACTION = 0.7
SUBSETS = 2
"""Subsets of each evaluation."""
MODEL = SimulationSetting(ambiguous=False)


class SubsetShifts(NamedTuple):
    """Comparison of R with subsets R' over simulated evaluations: the axes are seeds, subsets and methods, [S,B,M].

    `shift` is max_a |S_R(a) - S_R'(a)|, which Proposition 2 lets go to 0 with the number of items; `tau_b` is between
    the two rankings, and Proposition 1 says E[τ_b] < 1 of majorities decided by one vote; `decided_by_one` [S] is the
    share of such items.
    """

    shift: Floats
    tau_b: Floats
    decided_by_one: Floats


def measure_shifts(setting: SimulationSetting, seeds: Sequence[int], jobs: int = 1) -> SubsetShifts:
    """Compare the scores by all annotators with those by each subset; each seed is one evaluation."""
    results = run_each(_measure_shift, [(setting, seed) for seed in seeds], jobs)
    return SubsetShifts(*(np.array(column) for column in zip(*results, strict=True)))


def _measure_shift(run: tuple[SimulationSetting, int]) -> tuple[Floats, Floats, float]:
    setting, seed = run
    simulated = stableval(setting, seed)
    generator = np.random.default_rng([seed, SUBSETS])
    count = len(simulated.rater_behaviours)
    kept = [np.ones(count, dtype=np.bool_)]
    for _ in range(SUBSETS):
        kept.append(
            np.isin(np.arange(count), generator.permutation(count)[: int(FRACTION * count)])
        )
    whole, *parts = (
        score_by_each_method(simulated, one[simulated.annotator], prior_confusion=1.0, prior_mu=1.0)
        for one in kept
    )
    shifts = [np.abs(np.subtract(scores, whole)).max(axis=1) for scores in parts]
    taus = [[tau_b(*pair) for pair in zip(whole, scores, strict=True)] for scores in parts]
    majority = consensus.majority_vote(
        simulated.item, simulated.annotator, simulated.label, classes=range(CLASS_COUNT)
    )
    return np.array(shifts), np.array(taus), float((majority.margin == 1).mean())
