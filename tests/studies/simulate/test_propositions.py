"""STABLEVAL's propositions as they are measured: what vanishes with the number of items, what does not, what holds."""

from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus.resampling import tau_b
from jurygraph.arrays import Floats
from jurygraph.studies.simulate.generator import CONFUSION, KINDS, Setting
from jurygraph.studies.simulate.propositions import MODEL, limiting_scores, measure_shifts

MAJORITY, HARD, SOFT = range(3)
CONVABUSE = Path(__file__).parents[3] / "examples" / "consensus" / "convabuse.csv.gz"


def credit_by_enumeration(setting: Setting, kinds: list[int], kept: list[bool]) -> Floats:
    """The limits by their definition: every set of labellers, and every pattern of their labels, one by one."""
    prior, sums, sets = setting.shares.mean(axis=0), np.zeros((3, 3)), 0
    for drawn in combinations(range(len(kinds)), setting.labels):
        labellers = [one for one in drawn if kept[one]]
        sets += bool(labellers)
        for pattern in product(range(3), repeat=len(labellers)) if labellers else ():
            chance = np.array(
                [
                    np.prod([CONFUSION[KINDS[kinds[one]]][cls][y] for one, y in zip(labellers, pattern, strict=True)])
                    for cls in range(3)
                ]
            )
            joint = prior * chance
            if joint.sum() == 0.0:
                continue
            winner = max(range(3), key=lambda cls: (pattern.count(cls), cls))
            credit = (winner / 2, joint.argmax() / 2, (joint @ [0.0, 0.5, 1.0]) / joint.sum())
            sums += np.outer(credit, chance)
    return sums / sets @ setting.shares.T


@given(
    kinds=st.lists(st.integers(0, 3), min_size=3, max_size=5),
    kept=st.lists(st.booleans(), min_size=5, max_size=5),
    labels=st.integers(1, 3),
)
def test_limits_are_the_mean_credit_over_all_labels_that_an_item_can_have(
    kinds: list[int], kept: list[bool], labels: int
) -> None:
    kept = [True, *kept[1 : len(kinds)]]
    setting = MODEL.model_copy(update={"labels": labels})
    found = limiting_scores(setting, np.array(kinds), np.array(kept))
    assert_allclose(found, credit_by_enumeration(setting, kinds, kept), atol=1e-12)


@pytest.mark.exhaustive
def test_the_difference_of_proposition_2_does_not_vanish_with_the_number_of_items() -> None:
    found = measure_shifts(MODEL.model_copy(update={"items": 6400}), range(4))
    limit, shift = found.limit[..., SOFT], found.shift[..., SOFT]
    assert limit.min() > 0.005, "the limits by all annotators and by a subset differ"
    assert_allclose(shift, limit, atol=0.005)
    assert shift.mean() > 0.01


def mean_tau_b(item: list[str], annotator: list[str], label: list[int], agent: list[str], size: int) -> float:
    """E[τ_b] of the majority over all subsets of this many annotators."""

    def scores(kept: set[str]) -> Floats:
        rows = [row for row, one in enumerate(annotator) if one in kept]
        columns = ([item[row] for row in rows], [annotator[row] for row in rows], [label[row] for row in rows])
        majority = consensus.majority_vote(*columns, ties="first", classes=range(3))
        owner = dict(zip(item, agent, strict=True))
        credit = majority.posterior @ [0.0, 0.5, 1.0]
        by_agent = {
            name: [c for c, i in zip(credit, majority.items, strict=True) if owner[str(i)] == name] for name in owners
        }
        return np.array([np.mean(values) for values in by_agent.values()])

    owners = list(dict.fromkeys(agent))
    names = list(dict.fromkeys(annotator))
    whole = scores(set(names))
    return float(np.mean([tau_b(whole, scores(set(kept))) for kept in combinations(names, size)]))


def test_proposition_1_needs_close_agents_a_vote_that_decides_an_item_is_not_enough() -> None:
    """Ten items of each agent; all agree on all but one, which one vote decides. No subset changes the order."""
    rows = [
        (f"{agent}{number}", who, 2 if (agent == "good") != (number == 0 and who == "ann") else 0, agent)
        for agent in ("good", "bad")
        for number in range(10)
        for who in ("ann", "bob", "cid")
    ]
    item, annotator, label, agent = (list(column) for column in zip(*rows, strict=True))
    assert consensus.majority_vote(item, annotator, label, classes=range(3)).items_with_margin_one() == [
        "good0",
        "bad0",
    ]
    assert mean_tau_b(item, annotator, label, agent, 2) == pytest.approx(1.0)
