"""Initial values of an estimate: the majority and near-identity confusions, gold items, or an earlier estimate."""

import numpy as np

from jurygraph.aggregation.arrays import Floats, Ints
from jurygraph.aggregation.consensus.em import Model, Settings
from jurygraph.aggregation.consensus.patterns import Patterns
from jurygraph.aggregation.consensus.result import Consensus
from jurygraph.aggregation.consensus.votes import Votes
from jurygraph.errors import PlanError


def likeliest(rows: Patterns, k: int, known: Ints) -> Floats:
    """Return one-hot [K,P]: the class in `known` [P], or for -1 the hard majority's, ties to the lowest."""
    size = len(rows.weight)
    counts = np.bincount(rows.code % k * size + rows.row, minlength=k * size).reshape(k, size)
    winner = np.where(known >= 0, known, counts.argmax(axis=0))
    return np.asarray(np.arange(k)[:, None] == winner, dtype=np.float64)


def near_identity(rows: Patterns, voted: Floats, known: Ints, em_settings: Settings) -> Model:
    """Return μ by the settings, and near-identity confusions with gold labels added.

    The near-identity confusions weigh as much as one label. So an annotator whose gold labels are mostly the opposite
    class starts with such confusions.
    """
    k = len(voted)
    identity = np.full((k, k), (1.0 - em_settings.diagonal) / (k - 1))
    np.fill_diagonal(identity, em_settings.diagonal)
    confusion = np.tile(identity, (rows.cells // k, 1, 1))
    gold = known[rows.row] >= 0
    if gold.any():
        annotator, label = np.divmod(rows.code[gold], k)
        np.add.at(confusion, (annotator, known[rows.row[gold]], label), rows.weight[rows.row[gold]])
        confusion /= confusion.sum(axis=2, keepdims=True)
    is_uniform = em_settings.prior_start == "uniform"
    prior = np.full(k, 1.0 / k) if is_uniform else np.asarray(voted @ rows.weight / rows.weight.sum())
    return Model(prior, confusion.transpose(1, 0, 2).reshape(k, -1))


def warm(first: Model, votes: Votes, earlier: Consensus) -> Model:
    """Return the start with the values of an earlier estimate. Raises PlanError if its classes differ."""
    if list(earlier.votes.classes) != list(votes.classes):
        raise PlanError(f"start: its classes are {list(earlier.votes.classes)}, and here {list(votes.classes)}")
    k = len(votes.classes)
    confusion = first.confusion.reshape(k, -1, k).copy()
    index_of = {name: index for index, name in enumerate(earlier.votes.annotators)}
    for index, name in enumerate(votes.annotators):
        if name in index_of:
            confusion[:, index] = earlier.confusion[index_of[name]]
    return Model(earlier.prior, confusion.reshape(k, -1))
