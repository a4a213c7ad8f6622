"""Statistics of a step's rows. Rows lie on the last axis; the axes before it are independent steps."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from jurygraph.agents.data_analyzer.step import Groups, one_group
from jurygraph.aggregation import fusion
from jurygraph.aggregation.arrays import Bools, Floats, Ints

_EQUAL = 1e-12


class Moments(NamedTuple):
    """Number, mean, sd and spread (maximum - minimum) of the rows that are numbers; NaN if there are none."""

    rows: Floats
    mean: Floats
    sd: Floats
    spread: Floats


def moments(values: Floats) -> Moments:
    """Return the moments of values [..., n]."""
    is_number = ~np.isnan(values)
    rows = is_number.sum(axis=-1).astype(np.float64)
    rows_or_nan = np.where(rows > 0, rows, np.nan)
    mean = np.where(is_number, values, 0.0).sum(axis=-1) / rows_or_nan
    deviation = np.where(is_number, values - mean[..., None], 0.0)
    sd = np.sqrt((deviation * deviation).sum(axis=-1) / rows_or_nan)
    spread = np.where(is_number, values, -np.inf).max(axis=-1) - np.where(is_number, values, np.inf).min(axis=-1)
    return Moments(rows_or_nan, mean, sd, np.where(rows > 0, spread, np.nan))


def length_correlation(lengths: Floats, rewards: Floats, groups: Groups | None) -> Floats:
    """Return the `within_correlation` of the lengths' ranks with the rewards, [...].

    Ranks are used because, if few rows differ in reward from their group, a single very long one would dominate.
    """
    return within_correlation(rank_values(lengths), rewards, groups)


def rank_values(values: Floats) -> Floats:
    """Return ranks on the last axis, from 1; ties share their mean rank, and NaN remain NaN."""
    ranks: Floats = stats.rankdata(values, axis=-1, nan_policy="omit")
    return ranks


def within_correlation(x: Floats, y: Floats, groups: Groups | None) -> Floats:
    """Return Pearson's r of the deviations from group means, [...]; NaN if either does not vary within any group.

    A hard prompt with long answers causes no correlation; longer answers to the same prompt with higher rewards do.
    """
    order, starts, sizes = groups or one_group(x.shape[-1])
    x, y = x[..., order], y[..., order]
    is_complete = ~(np.isnan(x) | np.isnan(y))
    counts = np.maximum(np.add.reduceat(is_complete, starts, axis=-1), 1)
    dx, dy = (_deviations(column, is_complete, counts, starts, sizes) for column in (x, y))
    product = np.sqrt((dx * dx).sum(axis=-1) * (dy * dy).sum(axis=-1))
    varies = product > _EQUAL * np.maximum(1.0, (np.where(is_complete, y, 0.0) ** 2).sum(axis=-1))
    r: Floats = np.where(varies, (dx * dy).sum(axis=-1) / np.where(varies, product, 1.0), np.nan)
    return r


def _deviations(x: Floats, is_complete: Bools, counts: Floats, starts: Ints, sizes: Ints) -> Floats:
    means = np.add.reduceat(np.where(is_complete, x, 0.0), starts, axis=-1) / counts
    deviations: Floats = np.where(is_complete, x - np.repeat(means, sizes, axis=-1), 0.0)
    return deviations


class Share(NamedTuple):
    """A share, and the number that it is a share of; NaN if that is 0."""

    share: Floats
    of: Floats


def share_of(chosen: Bools, counted: Bools) -> Share:
    """Return the share of chosen items among the counted ones, on the last axis."""
    of = counted.sum(axis=-1).astype(np.float64)
    of_or_nan = np.where(of > 0, of, np.nan)
    return Share((chosen & counted).sum(axis=-1) / of_or_nan, of_or_nan)


def saturated_share(rewards: Floats, groups: Groups) -> Share:
    """Return the share of groups with equal rewards, which give GRPO no signal; groups of one do not count."""
    order, starts, _ = groups
    rewards = rewards[..., order]
    counted = np.add.reduceat(~np.isnan(rewards), starts, axis=-1) > 1
    high, low = (ufunc.reduceat(rewards, starts, axis=-1) for ufunc in (np.fmax, np.fmin))
    return share_of(high - low <= _EQUAL, counted)


def disagreement(components: Sequence[Floats]) -> Floats:
    """Return D_pair [..., n] of components [..., n]; NaN if one is missing."""
    return np.asarray(fusion.disagreement(np.stack(components, axis=-1)))


def extreme_share(components: Sequence[Floats]) -> Share:
    """Return the share of all components' values at 0 or 1, where a component cannot tell better from worse."""
    values = np.concatenate(components, axis=-1)
    return share_of((values <= 0.0) | (values >= 1.0), ~np.isnan(values))


def stability_index(rewards: Floats, edges: Floats, expected: Floats) -> Floats:
    """Return the population stability index Σ (p - q) ln(p / q) of rewards [..., n] over bins.

    The bins end at `edges` [B - 1]. q [B] is `expected`; p adds half a row to each bin, so that an empty one does not
    give infinity.
    """
    is_number = ~np.isnan(rewards)
    counts_above = [
        is_number.sum(axis=-1),
        *((rewards > edge).sum(axis=-1) for edge in edges),
        np.zeros(rewards.shape[:-1]),
    ]
    counts = -np.diff(np.stack(counts_above, axis=-1).astype(np.float64), axis=-1)
    p = (counts + 0.5) / (counts.sum(axis=-1, keepdims=True) + 0.5 * len(expected))
    index: Floats = ((p - expected) * np.log(p / expected)).sum(axis=-1)
    return index
