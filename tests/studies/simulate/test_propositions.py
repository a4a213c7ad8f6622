"""STABLEVAL's propositions as they are measured: what vanishes with the number of items, what does not, what holds."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from benchmarks.simulation.propositions import MODEL, measure_shifts
from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus.fitting import tau_b
from jurygraph.arrays import Floats

SOFT = 2
CONVABUSE = Path(__file__).parents[3] / "examples" / "consensus" / "convabuse.csv.gz"


@pytest.mark.exhaustive
def test_the_difference_of_proposition_2_does_not_vanish_with_the_number_of_items() -> None:
    few, many = (measure_shifts(replace(MODEL, items=items), range(4)) for items in (1600, 6400))
    for found in (few, many):
        assert 0.01 < found.shift[..., SOFT].mean() < 0.03


def mean_tau_b(
    item: list[str], annotator: list[str], label: list[int], agent: list[str], size: int
) -> float:
    """E[τ_b] of the majority over all subsets of this many annotators."""

    def scores(kept: set[str]) -> Floats:
        rows = [row for row, one in enumerate(annotator) if one in kept]
        columns = (
            [item[row] for row in rows],
            [annotator[row] for row in rows],
            [label[row] for row in rows],
        )
        majority = consensus.majority_vote(*columns, ties="first", classes=range(3))
        owner = dict(zip(item, agent, strict=True))
        credit = majority.posterior @ [0.0, 0.5, 1.0]
        by_agent = {
            name: [c for c, i in zip(credit, majority.items, strict=True) if owner[str(i)] == name]
            for name in owners
        }
        return np.array([np.mean(values) for values in by_agent.values()])

    owners = list(dict.fromkeys(agent))
    names = list(dict.fromkeys(annotator))
    whole = scores(set(names))
    return float(np.mean([tau_b(whole, scores(set(kept))) for kept in combinations(names, size)]))


def test_proposition_1_needs_close_agents_a_vote_that_decides_an_item_is_not_enough() -> None:
    """Ten items of each agent; all agree on all but one, which one vote decides. No subset changes the order."""
    rows = [
        (
            f"{agent}{number}",
            who,
            2 if (agent == "good") != (number == 0 and who == "ann") else 0,
            agent,
        )
        for agent in ("good", "bad")
        for number in range(10)
        for who in ("ann", "bob", "cid")
    ]
    item, annotator, label, agent = (list(column) for column in zip(*rows, strict=True))
    assert consensus.majority_vote(
        item, annotator, label, classes=range(3)
    ).items_decided_by_one_vote() == [
        "good0",
        "bad0",
    ]
    assert mean_tau_b(item, annotator, label, agent, 2) == pytest.approx(1.0)
