"""Agreement of labels, numbers or strings: of two annotators beyond chance (Cohen's kappa, plain and weighted, with an
interval), of several who did not rate all items (Krippendorff's alpha), and of a majority of votes."""

# `help` shows the names of types, not all that an ArrayLike is
from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.arrays import Bools, Floats, Ints, as_ratings, check_choice, total
from jurygraph.errors import PlanError
from jurygraph.inference.agreement import (
    MeasurementLevel,
    alpha,
    alpha_estimate,
    kappa,
    kappa_estimate,
    label_table,
)
from jurygraph.inference.clusters import Estimate, cluster_numbers

Weights = Literal["equal", "linear", "quadratic"]
"""How far apart two labels are: 1 if they differ, the difference of their numbers, or its square."""


def cohen_kappa(first: ArrayLike, second: ArrayLike, weights: Weights = "equal") -> float:
    """Return Cohen's kappa of labels [N] of two annotators: 1 - D_o / D_e, agreement beyond that by chance.

    D_o is the mean distance of the two labels of an item, and D_e that of any label of one annotator to any of the
    other. It is 1 for full agreement, 0 for agreement by chance, down to -1; NaN if both annotators give the same label
    to every item, where chance agrees fully, too.

    Args:
        first, second: labels of the two annotators, [N]; numbers unless `weights` are `equal`.
        weights: distances are 1 (`equal`, Cohen 1960), |a - b| (`linear`) or (a - b)² (`quadratic`, Cohen 1968).

    Raises:
        PlanError: lists of different lengths, empty lists, numbers compared with strings, or other `weights`.
    """
    first_label_codes, second_label_codes, label_distances = _encode_labels(first, second, weights)
    return kappa(
        label_table(first_label_codes, second_label_codes, len(label_distances)), label_distances
    )


def kappa_interval(
    first: ArrayLike, second: ArrayLike, weights: Weights = "equal", tasks: ArrayLike | None = None
) -> Estimate | None:
    """Return kappa with its 95 % interval and jackknife standard error; None where kappa is NaN.

    The interval is Wilson's for the disagreement, with the effective size that the error implies (`inference.agreement`
    explains it): also with few items, and where the annotators nearly always agree, it covers about 95 %. With 20 items
    it is too narrow where one label is rare (.83 at 80 % of the other). So it is for quadratic weights of five levels
    where kappa is high: .85 to .90 from 10 items on, still .87 with 50. The ends are None for one task, and where one
    label alone is left of an annotator, or of both without one of the tasks.

    Args:
        first, second, weights: as for `cohen_kappa`.
        tasks: the task of each item, [N]: its items are kept together, since they resemble each other. By default the
            items are independent.

    Raises:
        PlanError: as `cohen_kappa`, or a list of tasks of another length.
    """
    first_label_codes, second_label_codes, label_distances = _encode_labels(first, second, weights)
    clusters = _task_codes_of_items(tasks, len(first_label_codes))
    return kappa_estimate(first_label_codes, second_label_codes, label_distances, clusters)


def _task_codes_of_items(tasks: ArrayLike | None, items: int) -> Ints:
    """Return the code of each item's task; without tasks, each item is a cluster of its own."""
    if tasks is None:
        return np.arange(items)
    task_codes = cluster_numbers(tasks)
    if task_codes.shape != (items,):
        raise PlanError(
            f"tasks has shape {task_codes.shape}, and there are {items} items: give each item its task"
        )
    return task_codes


def krippendorff_alpha(ratings: ArrayLike, level: MeasurementLevel = "ordinal") -> float:
    """Return Krippendorff's alpha: agreement of several raters beyond chance, for items that not all of them rated.

    It is 1 for full agreement, 0 for agreement by chance, and below for systematic disagreement; NaN if no item has two
    ratings, or all ratings of such items are equal. Items with one rating do not count.

    Args:
        ratings: [raters, items]: numbers, with NaN where a rater did not rate an item. Nominal ratings may be words,
            with None for a gap.
        level: `nominal` for labels without an order, `ordinal` for a scale whose steps need not be equal, `interval`
            for numbers whose differences count.

    Raises:
        PlanError: another shape or level, an infinite number, or words that are not nominal.
    """
    return alpha(*_count_ratings_per_item(ratings, level), level)


def alpha_interval(
    ratings: ArrayLike, level: MeasurementLevel = "ordinal", tasks: ArrayLike | None = None
) -> Estimate | None:
    """Return Krippendorff's alpha with its 95 % jackknife interval over the items; None where alpha is NaN.

    The items count as drawn at random, the raters as given.

    Args:
        ratings, level: as for `krippendorff_alpha`.
        tasks: the task of each item, [items]: its items are kept together, since they resemble each other. By default
            the items are independent.

    Raises:
        PlanError: as `krippendorff_alpha`, or a list of tasks of another length.
    """
    counts, levels = _count_ratings_per_item(ratings, level)
    clusters = _task_codes_of_items(tasks, len(counts))
    return alpha_estimate(counts, levels, level, clusters)


def _count_ratings_per_item(ratings: ArrayLike, level: MeasurementLevel) -> tuple[Floats, Floats]:
    """Return how often each item has each level, [items, V], and the levels in ascending order, [V]."""
    check_choice("level", level, get_args(MeasurementLevel))
    values = np.asarray(ratings)
    if level == "nominal" and values.dtype.kind in "UO":
        # The sign keeps an empty word apart from a gap.
        prefixed_words = ["" if word is None else f"={word}" for word in values.ravel()]
        words, codes = np.unique(prefixed_words, return_inverse=True)
        numbers = np.where(words == "", np.nan, np.arange(float(len(words))))
        values = numbers[codes].reshape(values.shape)
    table = as_ratings(values)
    is_rated = ~np.isnan(table)
    levels, codes = np.unique(table[is_rated], return_inverse=True)
    _, items = np.nonzero(is_rated)
    shape = (table.shape[1], len(levels))
    cells = items * len(levels) + codes
    counts = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    return counts.astype(np.float64), levels


class MajorityValues(NamedTuple):
    """The winning values [R] (0.0 where none won), and where a value won, [R]."""

    value: Floats
    decided: Bools


def strict_majority(value: Floats, has_vote: Bools, seats: Bools) -> MajorityValues:
    """Return the value that more than half of the seats voted for; a tie or too many empty seats decide nothing.

    `value` [R,K] has the votes, where `has_vote` [R,K], of those who have a seat, `seats` [R,K]. A seat without a vote
    counts in the size: one vote on three seats is no majority. Without a seat nothing is decided.
    """
    is_vote_cast = has_vote & seats
    half_seat_count = total(np.where(seats, 0.5, 0.0))
    winner = np.zeros(len(value))
    is_majority_found = np.zeros(len(value), dtype=np.bool_)
    for column in range(value.shape[1]):
        vote = value[:, column]
        is_same_as_vote = is_vote_cast & (value == vote[:, None])
        votes = total(np.where(is_same_as_vote, 1.0, 0.0))
        has_majority = is_vote_cast[:, column] & np.greater(votes, half_seat_count)
        winner = np.where(has_majority, vote, winner)
        is_majority_found = is_majority_found | has_majority
    return MajorityValues(winner, is_majority_found)


def _encode_labels(
    first: ArrayLike, second: ArrayLike, weights: Weights
) -> tuple[Ints, Ints, Floats]:
    """Return the codes of both lists of labels, [N], in the order of the labels, and the distances, [K, K]."""
    check_choice("weights", weights, get_args(Weights))
    rows = np.asarray(first)
    columns = np.asarray(second)
    if rows.ndim != 1 or rows.shape != columns.shape or not rows.size:
        raise PlanError(
            f"first has shape {rows.shape} and second {columns.shape}: two lists of one length are needed"
        )
    if (rows.dtype.kind in "US") != (columns.dtype.kind in "US"):
        raise PlanError(
            f"first holds {rows.dtype} and second {columns.dtype}: labels of one kind are needed"
        )
    labels = np.union1d(rows, columns)
    if weights != "equal" and labels.dtype.kind not in "iufb":
        raise PlanError(
            f"{weights} weights need numbers, and the labels are {', '.join(map(str, labels))}"
        )
    # Equal weights allow words, so that these are numbered.
    numbers = np.arange(float(len(labels))) if weights == "equal" else labels.astype(np.float64)
    label_distances = np.abs(numbers[:, None] - numbers)
    if weights == "equal":
        label_distances = np.where(label_distances > 0.0, 1.0, 0.0)
    elif weights == "quadratic":
        label_distances = label_distances * label_distances
    row_label_codes = np.searchsorted(labels, rows)
    column_label_codes = np.searchsorted(labels, columns)
    return row_label_codes, column_label_codes, label_distances
