"""Strict majority of votes."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.aggregation.agreement import strict_majority

VOTES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, None]), min_size=1, max_size=7)
"""A row of seats; None abstains."""


def majority(*votes: float | None) -> float | None:
    """Return the winning value of one row of votes, None without a majority."""
    value = np.array([[0.0 if vote is None else vote for vote in votes]])
    cast = np.array([[vote is not None for vote in votes]])
    found = strict_majority(value, cast, np.ones_like(cast))
    return float(found.value[0]) if found.decided[0] else None


def test_a_judge_that_was_not_requested_does_not_count() -> None:
    value, cast = np.array([[1.0, 0.0, 0.0]]), np.array([[True, True, True]])
    found = strict_majority(value, cast, np.array([[True, False, False]]))
    assert (found.value.tolist(), found.decided.tolist()) == ([1.0], [True])


@given(VOTES)
def test_the_majority_equals_a_simple_count(votes: list[float | None]) -> None:
    counted = Counter(vote for vote in votes if vote is not None)
    winners = [value for value, count in counted.items() if 2 * count > len(votes)]
    assert majority(*votes) == (winners[0] if winners else None)


@given(st.lists(VOTES, min_size=1, max_size=4).map(lambda rows: [(row + [None] * 7)[:7] for row in rows]))
def test_each_row_is_decided_by_itself(rows: list[list[float | None]]) -> None:
    value = np.array([[vote or 0.0 for vote in row] for row in rows])
    cast = np.array([[vote is not None for vote in row] for row in rows])
    found = strict_majority(value, cast, np.ones_like(cast))
    each = [float(v) if d else None for v, d in zip(found.value, found.decided, strict=True)]
    assert each == [majority(*row) for row in rows]
