"""One vote each: who leads, by how much, and how far the annotators agree."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus.votes import encode
from jurygraph.errors import PlanError
from tests.aggregation.consensus.reference import Row, votes


def labels_by_item(rows: list[Row]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for item, _, label in rows:
        found.setdefault(item, []).append(label)
    return found


@given(votes())
def test_the_leader_wins_and_ties_follow_the_tie_rule(rows: list[Row]) -> None:
    item, annotator, label = (list(one) for one in zip(*rows, strict=True))
    for place, own in enumerate(labels_by_item(rows).values()):
        counts = Counter(own)
        leaders = [one for one, many in counts.items() if many == max(counts.values())]  # in the order of the rows
        expected = {"first": leaders[0], "lowest": min(leaders), "highest": max(leaders)}
        for ties, leader in expected.items():
            voted = consensus.majority_vote(item, annotator, label, ties, classes=range(3))  # type: ignore[arg-type]
            assert voted.posterior[place].tolist() == np.eye(3)[leader].tolist()
        shared = consensus.majority_vote(item, annotator, label, classes=range(3))
        assert shared.posterior[place].tolist() == [1 / len(leaders) if c in leaders else 0.0 for c in range(3)]
        assert shared.tied[place] == (len(leaders) > 1)
        two = sorted([*counts.values(), 0])[-2:]
        assert shared.margin[place] == two[1] - two[0]


@given(votes())
def test_agreement_is_counted_over_all_pairs_of_rows(rows: list[Row]) -> None:
    item, annotator, label = (list(one) for one in zip(*rows, strict=True))
    found = consensus.agreement(encode(item, annotator, label, range(3)))
    pairwise = [
        np.mean([a == b for a, b in combinations(own, 2)]) if len(own) > 1 else 1.0
        for own in labels_by_item(rows).values()
    ]
    assert found.pairwise == pytest.approx(np.mean(pairwise))
    assert found.unanimous == pytest.approx(np.mean([len(set(own)) == 1 for own in labels_by_item(rows).values()]))


@given(votes())
def test_without_one_vote_an_item_of_margin_one_changes_or_is_tied(rows: list[Row]) -> None:
    """Proposition 1, for items that nobody labelled twice."""
    once = list({(item, annotator): (item, annotator, label) for item, annotator, label in rows}.values())
    columns = [list(one) for one in zip(*once, strict=True)]
    voted = consensus.majority_vote(*columns, classes=range(3))  # type: ignore[misc]
    for place, item in enumerate(voted.items):
        winner = int(voted.posterior[place].argmax())
        own = [row for row in once if row[0] == item]
        turns = False
        for row in own:
            rest = Counter(label for _, by, label in own if by != row[1])
            turns |= (
                max(rest.values(), default=0) > rest[winner] or list(rest.values()).count(rest[winner]) > 1 or not rest
            )
        if not voted.tied[place]:
            assert turns == (item in voted.items_with_margin_one())


def test_an_item_without_a_label_has_equal_probabilities() -> None:
    voted = consensus.majority_vote([0, 1], [0, 0], [1, None], "first", classes=[0, 1])
    assert voted.posterior[1].tolist() == [0.5, 0.5]
    assert not voted.tied[1]


def test_other_ties_are_refused() -> None:
    with pytest.raises(PlanError, match=r"^ties is 'coin': shared, first, lowest or highest is needed"):
        consensus.majority_vote([0], [0], [0], "coin", classes=[0, 1])  # type: ignore[arg-type]


def test_a_gold_class_overrides_the_votes() -> None:
    voted = consensus.majority_vote([0, 0, 1, 2], [0, 1, 0, 0], [1, 1, 0, 0], classes=[0, 1], gold={0: 0, 1: 1})
    assert voted.posterior.tolist() == [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
