"""How far labels agree: two annotators beyond chance (Cohen's kappa), and predictions with the truth.

Labels are anything that can be told apart: numbers or strings. They are nominal, so that no label is nearer to another.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jurygraph.aggregation._ordered import total
from jurygraph.errors import PlanError

__all__ = ["Classification", "classification", "cohen_kappa"]

Labels = NDArray[np.generic]


def cohen_kappa(first: ArrayLike, second: ArrayLike) -> float:
    """(p_o - p_e) / (1 - p_e): agreement p_o beyond that by chance, p_e (Cohen 1960).

    Args:
        first: the labels of one annotator, [N].
        second: those of the other on the same items, [N].

    Returns:
        1 for full agreement, 0 for that of chance, down to -1; NaN where both give every item one and the same label,
        since chance agrees as well.

    Raises:
        PlanError: lists of different lengths or none, or numbers beside strings.
    """
    one, other = _labels("first", first, "second", second)
    size = len(one)
    agreed = np.count_nonzero(one == other) / size
    known = np.union1d(one, other)
    by_chance = total([np.count_nonzero(one == each) * np.count_nonzero(other == each) for each in known])
    by_chance = by_chance / (size * size)
    return float((agreed - by_chance) / (1.0 - by_chance)) if by_chance < 1.0 else float("nan")


class Classification(NamedTuple):
    """How predictions meet the truth: the share that is right, and means over the labels, each counting alike."""

    accuracy: float
    macro_precision: float
    macro_recall: float
    macro_f1: float


def classification(
    predicted: ArrayLike, truth: ArrayLike, labels: Sequence[str | float] | None = None
) -> Classification:
    """Accuracy, and macro-averaged precision, recall and F1, with scikit-learn's conventions.

    Args:
        predicted: a label for each item, [N].
        truth: the right ones, [N].
        labels: those to average over; all that are predicted or true unless given. Others still count as wrong.

    Returns:
        The figures; the precision of a label that is never predicted is 0, and so are the recall of one that is never
        true and an F1 of neither.

    Raises:
        PlanError: lists of different lengths or none, numbers beside strings, or no label to average over.
    """
    said, right = _labels("predicted", predicted, "truth", truth)
    averaged = np.union1d(said, right) if labels is None else np.asarray(labels)
    if not averaged.size:
        raise PlanError("labels is empty: name one to average over, or leave it out")
    hits, given, there = (
        np.array([np.count_nonzero(where == each) for each in averaged], dtype=np.float64)
        for where in (said[said == right], said, right)
    )
    precision, recall = hits / np.maximum(given, 1.0), hits / np.maximum(there, 1.0)
    f1 = 2.0 * hits / np.maximum(given + there, 1.0)
    accuracy = np.count_nonzero(said == right) / len(said)
    return Classification(accuracy, *(float(total(each)) / len(averaged) for each in (precision, recall, f1)))


def _labels(name: str, given: ArrayLike, other_name: str, other: ArrayLike) -> tuple[Labels, Labels]:
    one, two = np.asarray(given), np.asarray(other)
    if one.ndim != 1 or one.shape != two.shape or not one.size:
        raise PlanError(
            f"{name} has shape {one.shape} and {other_name} {two.shape}: two lists of one length are needed"
        )
    if (one.dtype.kind in "US") != (two.dtype.kind in "US"):
        raise PlanError(f"{name} holds {one.dtype} and {other_name} {two.dtype}: labels of one kind are needed")
    return one, two
