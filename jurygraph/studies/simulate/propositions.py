"""STABLEVAL's Propositions 1 and 2, measured under the paper's own model.

Both compare the scores by all annotators R with those by a random subset R' of them. Proposition 1 says that a majority
vote with an item decided by one vote has E[τ_b] < 1. Proposition 2 says that max_a |S_R(a) - S_R'(a)| of the posterior
expected credit goes to 0 with the number of items, and E[τ_b] to 1.

Under the model every score has a limit: the mean, over the labels of an item, of the credit that a method gives it.
That credit depends on who labelled the item, so the limits by R and by R' differ, and `limiting_scores` computes them.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import comb, prod
from typing import NamedTuple

import numpy as np

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus.resampling import METHODS, Report, run_each, tau_b
from jurygraph.arrays import Bools, Floats, Ints
from jurygraph.studies.simulate.generator import CLASSES, CONFUSION, KINDS, VALUES, Setting, stableval
from jurygraph.studies.simulate.recovery import agent_means

SIZES = (100, 400, 1600, 6400)
"""Items of each agent."""
FRACTION = 0.7
"""Share of the annotators in a subset."""
SUBSETS = 2
"""Subsets of each evaluation."""
MODEL = Setting(ambiguous=False)
"""The paper's base configuration without ambiguity: STABLEVAL's model is then correctly specified."""


class SubsetShifts(NamedTuple):
    """Comparison of R with subsets R' over simulated evaluations: the axes are seeds, subsets and methods, [S,B,M].

    Attributes:
        shift: max_a |S_R(a) - S_R'(a)|.
        limit: the same of the limiting scores.
        tau_b: between the two rankings.
        decided_by_one: share of the items whose majority by R leads by one vote, [S].
    """

    shift: Floats
    limit: Floats
    tau_b: Floats
    decided_by_one: Floats


def measure_shifts(setting: Setting, seeds: Sequence[int], jobs: int = 1, report: Report | None = None) -> SubsetShifts:
    """Return how scores and rankings change when 70 % of the annotators remain.

    Majority vote breaks ties towards the highest class. The model's parameters are the maximum likelihood estimates,
    computed until they converge, as Proposition 2 assumes.

    Args:
        setting: setting of the evaluations. The limits are those without ambiguity.
        seeds: one evaluation for each, with `SUBSETS` subsets.
        jobs: number of processes.
        report: called with 1 after each evaluation.
    """
    results = run_each(_measure_run, [(setting, seed) for seed in seeds], jobs, report)
    return SubsetShifts(*(np.array(column) for column in zip(*results, strict=True)))


def _measure_run(run: tuple[Setting, int]) -> tuple[Floats, Floats, Floats, float]:
    setting, seed = run
    simulated = stableval(setting, seed)
    kinds = np.array([KINDS.index(kind) for kind in simulated.kinds])
    generator = np.random.default_rng([seed, SUBSETS])
    count = len(kinds)

    def score(kept: Bools) -> tuple[Floats, Floats, float]:
        rows = kept[simulated.annotator]
        columns = simulated.item[rows], simulated.annotator[rows], simulated.label[rows]
        fitted = consensus.fit(*columns, n_classes=CLASSES, prior_confusion=1.0, prior_mu=1.0)
        majority = consensus.majority_vote(*columns, ties="highest", classes=range(CLASSES))
        scores = [agent_means(simulated, one) for one in (majority, fitted.hard_labels(), fitted)]
        return np.array(scores), limiting_scores(setting, kinds, kept), float((majority.margin == 1).mean())

    whole, whole_limit, decided_by_one = score(np.ones(count, dtype=np.bool_))
    shifts = []
    limits = []
    taus = []
    for _ in range(SUBSETS):
        kept = np.zeros(count, dtype=np.bool_)
        kept[generator.permutation(count)[: int(FRACTION * count)]] = True
        scores, limit, _ = score(kept)
        shifts.append(np.abs(scores - whole).max(axis=1))
        limits.append(np.abs(limit - whole_limit).max(axis=1))
        taus.append([tau_b(*pair) for pair in zip(whole, scores, strict=True)])
    return np.array(shifts), np.array(limits), np.array(taus), decided_by_one


def limiting_scores(setting: Setting, kinds: Ints, kept: Bools) -> Floats:
    """Return the agents' scores by each method for infinitely many items under the model, [M, agents].

    They are exact for known parameters, to which consistent estimates converge. An item has `setting.labels` labels by
    a random set of the annotators; only those by annotators that are `kept` [A] count, and an item without any is left
    out. `kinds` [A] are indices of `KINDS`.
    """
    confusions = np.array([CONFUSION[kind] for kind in KINDS])
    prior = setting.shares.mean(axis=0)
    total = 0
    credit = np.zeros((len(METHODS), CLASSES))
    for labellers, ways in _labeller_counts(setting.labels, kinds, kept):
        total += ways
        credit += ways * _expected_credit(confusions[np.repeat(np.arange(len(KINDS)), labellers)], prior)
    return np.asarray(credit / total @ setting.shares.T)


def _labeller_counts(labels: int, kinds: Ints, kept: Bools) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the number of kept labellers of each kind that an item may have, and in how many ways it has them."""
    available = np.bincount(kinds[kept], minlength=len(KINDS)).tolist()
    others = int((~kept).sum())
    for labellers in product(*(range(min(labels, count) + 1) for count in available)):
        if 0 < (size := sum(labellers)) <= labels and labels - size <= others:
            yield labellers, prod(map(comb, available, labellers)) * comb(others, labels - size)


def _expected_credit(confusions: Floats, prior: Floats) -> Floats:
    """Return the mean credit of an item of each class by each method, [M,K], for labellers [r,K,K] and shares [K]."""
    patterns = np.array(list(product(range(CLASSES), repeat=len(confusions))))
    chances = np.ones((len(patterns), CLASSES))
    for confusion, label in zip(confusions, patterns.T, strict=True):
        chances *= confusion[:, label].T
    joint = chances * prior
    counts = (patterns[:, :, None] == np.arange(CLASSES)).sum(axis=1)
    majority = CLASSES - 1 - counts[:, ::-1].argmax(axis=1)
    possible = joint.sum(axis=1, keepdims=True) > 0.0
    posterior = np.divide(joint, joint.sum(axis=1, keepdims=True), out=np.zeros_like(joint), where=possible)
    values = np.array(VALUES)
    credit = {
        "majority": values[majority],
        "dawid-skene": values[joint.argmax(axis=1)],
        "stableval": posterior @ values,
    }
    return np.array([credit[method] @ chances for method in METHODS])
