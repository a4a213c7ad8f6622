"""Agreement of nominal labels, numbers or strings: of two annotators beyond chance (Cohen's kappa), of predictions with
the truth, and of a majority of votes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jurygraph.arrays import Bools, Floats, total
from jurygraph.errors import PlanError

Labels = NDArray[np.generic]


def cohen_kappa(first: ArrayLike, second: ArrayLike) -> float:
    """Return (p_o - p_e) / (1 - p_e) for labels [N] of two annotators: agreement beyond that by chance (Cohen 1960).

    It is 1 for full agreement, 0 for agreement by chance, down to -1; NaN if both annotators give the same label to
    every item, where chance agrees fully, too. Raises PlanError for lists of different lengths, empty lists, or numbers
    compared with strings.
    """
    labels, other_labels = _labels("first", first, "second", second)
    size = len(labels)
    agreed = np.count_nonzero(labels == other_labels) / size
    all_labels = np.union1d(labels, other_labels)
    by_chance = total(
        [np.count_nonzero(labels == each) * np.count_nonzero(other_labels == each) for each in all_labels]
    )
    by_chance = by_chance / (size * size)
    return float((agreed - by_chance) / (1.0 - by_chance)) if by_chance < 1.0 else float("nan")


class Classification(NamedTuple):
    """Quality of predictions: accuracy, and the unweighted means of precision, recall and F1 over the labels."""

    accuracy: float
    macro_precision: float
    macro_recall: float
    macro_f1: float


def classification(
    predicted: ArrayLike, truth: ArrayLike, labels: Sequence[str | float] | None = None
) -> Classification:
    """Return accuracy and macro-averaged precision, recall and F1, with scikit-learn's conventions.

    Args:
        predicted: a label for each item, [N].
        truth: the true labels, [N].
        labels: the labels to average over; by default all that are predicted or true. Others still count as wrong.

    Returns:
        The four metrics. Precision is 0 for a label that is never predicted, recall for one that is never true, and F1
        for one that is neither.

    Raises:
        PlanError: lists of different lengths, empty lists, numbers compared with strings, or no label to average over.
    """
    predictions, true_labels = _labels("predicted", predicted, "truth", truth)
    averaged = np.union1d(predictions, true_labels) if labels is None else np.asarray(labels)
    if not averaged.size:
        raise PlanError("labels is empty: name one to average over, or leave it out")
    hits, predicted_counts, true_counts = (
        np.array([np.count_nonzero(where == each) for each in averaged], dtype=np.float64)
        for where in (predictions[predictions == true_labels], predictions, true_labels)
    )
    precision, recall = hits / np.maximum(predicted_counts, 1.0), hits / np.maximum(true_counts, 1.0)
    f1 = 2.0 * hits / np.maximum(predicted_counts + true_counts, 1.0)
    accuracy = np.count_nonzero(predictions == true_labels) / len(predictions)
    return Classification(accuracy, *(float(total(each)) / len(averaged) for each in (precision, recall, f1)))


class Majority(NamedTuple):
    """The winning values [R] (0.0 where none won), and where a value won, [R]."""

    value: Floats
    decided: Bools


def strict_majority(value: Floats, has_vote: Bools, seats: Bools) -> Majority:
    """Return the value that more than half of the seats voted for; a tie or too many empty seats decide nothing.

    `value` [R,K] has the votes, where `has_vote` [R,K], of those who have a seat, `seats` [R,K]. A seat without a vote
    counts in the size: one vote on three seats is no majority. Without a seat nothing is decided.
    """
    voted = has_vote & seats
    half = np.asarray(total(np.where(seats, 0.5, 0.0)))
    winner, decided = np.zeros(len(value)), np.zeros(len(value), dtype=np.bool_)
    for column in range(value.shape[1]):
        vote = value[:, column]
        votes = total(np.where(voted & (value == vote[:, None]), 1.0, 0.0))
        wins = voted[:, column] & np.greater(votes, half)
        winner, decided = np.where(wins, vote, winner), decided | wins
    return Majority(winner, decided)


def _labels(name: str, labels: ArrayLike, other_name: str, other_labels: ArrayLike) -> tuple[Labels, Labels]:
    first, second = np.asarray(labels), np.asarray(other_labels)
    if first.ndim != 1 or first.shape != second.shape or not first.size:
        raise PlanError(
            f"{name} has shape {first.shape} and {other_name} {second.shape}: two lists of one length are needed"
        )
    if (first.dtype.kind in "US") != (second.dtype.kind in "US"):
        raise PlanError(f"{name} holds {first.dtype} and {other_name} {second.dtype}: labels of one kind are needed")
    return first, second
