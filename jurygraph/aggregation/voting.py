"""Votes of several judges, or of one judge several times: the value with a strict majority of the seats."""

from typing import NamedTuple

import numpy as np

from jurygraph.aggregation.arrays import Bools, Floats, total

__all__ = ["Majority", "strict_majority"]


class Majority(NamedTuple):
    """The winning values [R] (0.0 where none won), and where a value won, [R]."""

    value: Floats
    decided: Bools


def strict_majority(value: Floats, has_vote: Bools, requested: Bools) -> Majority:
    """Return the value that more than half of the seats voted for; a tie or too many abstentions decide nothing.

    An abstaining judge still counts in the size: one vote left of three is no majority (our reading of the
    majority over seeds in "Aggregate vs. Personalized Judges").

    Args:
        value: the votes, [R,K].
        has_vote: where a vote was cast, [R,K].
        requested: which judges were to vote, [R,K].
    """
    voted = has_vote & requested
    half = np.asarray(total(np.where(requested, 0.5, 0.0)))
    winner, decided = np.zeros(len(value)), np.zeros(len(value), dtype=np.bool_)
    for column in range(value.shape[1]):
        vote = value[:, column]
        votes = total(np.where(voted & (value == vote[:, None]), 1.0, 0.0))
        wins = voted[:, column] & np.greater(votes, half)
        winner, decided = np.where(wins, vote, winner), decided | wins
    return Majority(winner, decided)
