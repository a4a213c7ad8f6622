"""Runs and ratings without a true difference, whose members resemble each other: how often does a study find one?

Each function simulates one data set, gives it to the study itself, and returns whether a true null was rejected, or
whether an interval contained the true value.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from jurygraph.aggregation.agreement import alpha_interval
from jurygraph.studies.agreement import DimensionRatings
from jurygraph.studies.compared_responses import ComparedResponse
from jurygraph.studies.comparison import compare
from jurygraph.studies.reviewers import Predictions, report


def compare_judges(reviewers: int, items: int, shared: float, seed: int) -> bool:
    """Return whether `study reviewers` tells two judges apart that are equally good.

    The errors of each judge are normal, and `shared` is the part of their variance that an item has for all reviewers.
    """
    rng = np.random.default_rng((seed, reviewers, items, round(100 * shared)))
    reviewer, item = np.indices((reviewers, items)).reshape(2, -1)
    scores = rng.integers(1, 6, len(item)).astype(float)
    names = tuple(map(str, range(reviewers)))
    keys = tuple(map(str, range(items)))
    part = DimensionRatings(
        None, names, keys, ("",), reviewer, item, item, np.zeros_like(item), scores
    )
    judges = []
    for name in ("first", "second"):
        of_items = rng.normal(size=items)
        errors = np.sqrt(shared) * of_items[item] + np.sqrt(1.0 - shared) * rng.normal(
            size=len(item)
        )
        judges.append(Predictions(name, None, (scores + errors)[None]))
    (difference,) = report([(part, judges)], "interval").figures["differences"]
    p = difference["absolute_p"]
    return p is not None and p <= 0.05


def cover_alpha(groups: int, size: int, raters: int, seed: int, clustered: bool = True) -> bool:
    """Return whether the interval of α contains its true value, .5, for items that resemble those of their group.

    The items' true scores have an intra-class correlation of .5, and vary as much as the raters' errors do. Without
    `clustered`, the interval takes the items for independent.
    """
    rng = np.random.default_rng((seed, groups, size, raters))
    group = np.repeat(np.arange(groups), size)
    true = np.sqrt(0.5) * (rng.normal(size=groups)[group] + rng.normal(size=len(group)))
    # Tenths hardly change α, and a hundred levels instead of a thousand save nine tenths of the time.
    ratings = np.round(true + rng.normal(size=(raters, len(group))), 1)
    estimate = alpha_interval(ratings, "interval", group if clustered else None)
    if estimate is None or estimate.low is None or estimate.high is None:
        return False
    return estimate.low <= 0.5 <= estimate.high


def compare_runs(
    groups: int, variants: int, seed: int, margin: float | None = None, clustered: bool = True
) -> bool:
    """Return whether `compare` tells runs apart that do not differ, or says no worse where B is worse by the margin.

    The variants of a group gain or lose alike: their differences have an intra-class correlation of .8, and a spread of
    .1. Without `clustered`, `compare` does not learn of the groups.
    """
    rng = np.random.default_rng((seed, groups, variants))
    group = np.repeat(np.arange(groups), variants)
    deltas = np.sqrt(0.8) * rng.normal(size=groups)[group] + np.sqrt(0.2) * rng.normal(
        size=len(group)
    )
    in_b = 0.5 + 0.1 * deltas - (margin or 0.0)
    sides = []
    for rewards in (np.full(len(group), 0.5), in_b):
        responses = []
        for number, reward in enumerate(rewards.tolist()):
            name = f"g{group[number]}" if clustered else None
            responses.append(ComparedResponse(f"r{number}", f"t{number}", None, reward, {}, name))
        sides.append(responses)
    figures = compare(sides[0], sides[1], () if margin is None else (margin,), 0.0).figures
    if margin is not None:
        return bool(figures["margins"][0]["holds"])
    p = figures["mean_delta_p"]
    return p is not None and p <= 0.05


class Cell(NamedTuple):
    """A simulated design: its name, one data set of it by seed, and the bounds of the share that is true.

    Without `is_share`, the bounds are of the mean of numbers.
    """

    name: str
    simulate: Callable[[int], float]
    least: float = 0.0
    most: float = 1.0
    is_share: bool = True

    @property
    def bound(self) -> str:
        """Return the bounds in words; none where nothing is asked for."""
        least = [f"at least {self.least:g}"] if self.least > 0.0 else []
        most = [f"at most {self.most:g}"] if self.most not in (1.0, math.inf) else []
        return ", ".join(least + most)


def cells() -> Iterator[Cell]:
    """Yield the designs in which true nulls may be rejected in 7 %, and α must be covered in 92 %."""
    for reviewers, items in ((20, 30), (20, 100), (50, 100), (8, 100)):
        for shared in (0.0, 0.5, 1.0):
            name = f"study reviewers rejects: {reviewers} x {items}, shared {shared:g}"
            yield Cell(name, partial(compare_judges, reviewers, items, shared), most=0.07)
    for groups, size in ((10, 4), (20, 8), (50, 8)):
        for raters in (2, 3):
            name = f"alpha is covered: {groups} groups of {size}, {raters} raters"
            yield Cell(name, partial(cover_alpha, groups, size, raters), least=0.92)
    yield Cell("compare rejects: 8 groups of 10", partial(compare_runs, 8, 10), most=0.07)
    yield Cell(
        "no_worse_than holds: 8 groups of 10", partial(compare_runs, 8, 10, margin=0.1), most=0.07
    )


class Rate(NamedTuple):
    """The share of simulations that are true, with its binomial error, or the mean of numbers with its error."""

    value: float
    error: float

    def is_within(self, cell: Cell, errors: float) -> bool:
        """Return whether the share is within the bounds of a cell, or beyond by at most so many errors."""
        margin = errors * self.error
        return cell.least - margin <= self.value <= cell.most + margin


def measure_cell(cell: Cell, samples: int) -> Rate:
    values = np.array([cell.simulate(seed) for seed in range(samples)], dtype=np.float64)
    mean = float(values.mean())
    if not cell.is_share:
        return Rate(mean, float(values.std(ddof=1) / np.sqrt(samples)))
    # The error is that of a share that is not exactly 0 or 1, which no number of samples shows.
    expected = (mean * samples + 1.0) / (samples + 2.0)
    return Rate(mean, float(np.sqrt(expected * (1.0 - expected) / samples)))
