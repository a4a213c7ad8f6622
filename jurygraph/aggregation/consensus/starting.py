"""Where an estimate starts: at the majority and near-identity confusions, at gold items, or at an earlier estimate."""

import numpy as np

from jurygraph.aggregation._inputs import FloatArray, IndexArray
from jurygraph.aggregation.consensus.em import Model, Settings
from jurygraph.aggregation.consensus.patterns import Patterns
from jurygraph.aggregation.consensus.result import Consensus
from jurygraph.aggregation.consensus.votes import Votes
from jurygraph.errors import PlanError


def likeliest(rows: Patterns, k: int, known: IndexArray) -> FloatArray:
    """One-hot [K,P]: the class that is `known` [P] (-1: is not), else the hard majority's, ties to the lowest."""
    size = len(rows.weight)
    counts = np.bincount(rows.code % k * size + rows.row, minlength=k * size).reshape(k, size)
    winner = np.where(known >= 0, known, counts.argmax(axis=0))
    return np.asarray(np.arange(k)[:, None] == winner, dtype=np.float64)


def near_identity(rows: Patterns, voted: FloatArray, known: IndexArray, stated: Settings) -> Model:
    """μ as the settings say, and near-identity confusions, which weigh one label beside those of gold items: so that
    who is known to say the opposite starts as one who does."""
    k = len(voted)
    near = np.full((k, k), (1.0 - stated.diagonal) / (k - 1))
    np.fill_diagonal(near, stated.diagonal)
    confusion = np.tile(near, (rows.cells // k, 1, 1))
    gold = known[rows.row] >= 0
    if gold.any():
        annotator, label = np.divmod(rows.code[gold], k)
        np.add.at(confusion, (annotator, known[rows.row[gold]], label), rows.weight[rows.row[gold]])
        confusion /= confusion.sum(axis=2, keepdims=True)
    uniform = stated.prior_start == "uniform"
    prior = np.full(k, 1.0 / k) if uniform else np.asarray(voted @ rows.weight / rows.weight.sum())
    return Model(prior, confusion.transpose(1, 0, 2).reshape(k, -1))


def warm(first: Model, votes: Votes, earlier: Consensus) -> Model:
    """What an earlier estimate knows in place of the start. Raises PlanError where its classes are others."""
    if list(earlier.votes.classes) != list(votes.classes):
        raise PlanError(f"start: its classes are {list(earlier.votes.classes)}, and here {list(votes.classes)}")
    k = len(votes.classes)
    confusion = first.confusion.reshape(k, -1, k).copy()
    there = {one: place for place, one in enumerate(earlier.votes.annotators)}
    for place, one in enumerate(votes.annotators):
        if one in there:
            confusion[:, place] = earlier.confusion[there[one]]
    return Model(earlier.prior, confusion.reshape(k, -1))
