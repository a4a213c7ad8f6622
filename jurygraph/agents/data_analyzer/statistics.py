"""Figures of a step's rows. Rows lie on the last axis; the axes before it are steps, each for itself."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from jurygraph.agents.data_analyzer.step import Floats, Groups, one_group
from jurygraph.aggregation import fusion

_EQUAL = 1e-12


class Moments(NamedTuple):
    """Of the rows that are numbers: how many, their mean, sd and spread (largest less smallest); NaN of none."""

    rows: Floats
    mean: Floats
    sd: Floats
    spread: Floats


def moments(values: Floats) -> Moments:
    """The moments of values [..., n]."""
    there = ~np.isnan(values)
    rows = there.sum(axis=-1).astype(np.float64)
    known = np.where(rows > 0, rows, np.nan)
    mean = np.where(there, values, 0.0).sum(axis=-1) / known
    off = np.where(there, values - mean[..., None], 0.0)
    sd = np.sqrt((off * off).sum(axis=-1) / known)
    spread = np.where(there, values, -np.inf).max(axis=-1) - np.where(there, values, np.inf).min(axis=-1)
    return Moments(known, mean, sd, np.where(rows > 0, spread, np.nan))


def length_correlation(lengths: Floats, rewards: Floats, groups: Groups | None) -> Floats:
    """`within_correlation` of the lengths' ranks with the rewards, [...].

    Where few rows are paid otherwise than the rest of their group, one that is very long would decide a plain one.
    """
    return within_correlation(ranked(lengths), rewards, groups)


def ranked(values: Floats) -> Floats:
    """Ranks on the last axis, from 1; ties share their mean rank, and NaN stay."""
    ranks: Floats = stats.rankdata(values, axis=-1, nan_policy="omit")
    return ranks


def within_correlation(x: Floats, y: Floats, groups: Groups | None) -> Floats:
    """Pearson's r of the deviations from group means, [...]; NaN where either does not vary within any group.

    A prompt that is hard and asks for long answers makes no correlation; a longer answer to it that is paid more does.
    """
    order, starts, sizes = groups or one_group(x.shape[-1])
    x, y = x[..., order], y[..., order]
    both = ~(np.isnan(x) | np.isnan(y))
    counts = np.maximum(np.add.reduceat(both, starts, axis=-1), 1)
    dx, dy = (_deviations(one, both, counts, starts, sizes) for one in (x, y))
    product = np.sqrt((dx * dx).sum(axis=-1) * (dy * dy).sum(axis=-1))
    varies = product > _EQUAL * np.maximum(1.0, (np.where(both, y, 0.0) ** 2).sum(axis=-1))
    r: Floats = np.where(varies, (dx * dy).sum(axis=-1) / np.where(varies, product, 1.0), np.nan)
    return r


def _deviations(
    x: Floats, both: NDArray[np.bool_], counts: Floats, starts: NDArray[np.intp], sizes: NDArray[np.intp]
) -> Floats:
    means = np.add.reduceat(np.where(both, x, 0.0), starts, axis=-1) / counts
    deviations: Floats = np.where(both, x - np.repeat(means, sizes, axis=-1), 0.0)
    return deviations


class Share(NamedTuple):
    """A share, and of how many; NaN of none."""

    share: Floats
    of: Floats


def share_of(chosen: NDArray[np.bool_], counted: NDArray[np.bool_]) -> Share:
    """The share of those that are chosen among those that count, on the last axis."""
    of = counted.sum(axis=-1).astype(np.float64)
    known = np.where(of > 0, of, np.nan)
    return Share((chosen & counted).sum(axis=-1) / known, known)


def saturated(rewards: Floats, groups: Groups) -> Share:
    """The share of groups whose rewards are all equal, which give GRPO no signal; a group of one does not count."""
    order, starts, _ = groups
    rewards = rewards[..., order]
    counted = np.add.reduceat(~np.isnan(rewards), starts, axis=-1) > 1
    high, low = (one.reduceat(rewards, starts, axis=-1) for one in (np.fmax, np.fmin))
    return share_of(high - low <= _EQUAL, counted)


def disagreement(components: Sequence[Floats]) -> Floats:
    """D_pair [..., n] of components [..., n]; NaN where one is missing."""
    return np.asarray(fusion.disagreement(np.stack(components, axis=-1)))


def at_extremes(components: Sequence[Floats]) -> Share:
    """The share of all components' values that lie at 0 or 1, where a component can tell no better from worse."""
    values = np.concatenate(components, axis=-1)
    return share_of((values <= 0.0) | (values >= 1.0), ~np.isnan(values))


def stability(rewards: Floats, edges: Floats, expected: Floats) -> Floats:
    """Population stability index Σ (p - q) ln(p / q) of rewards [..., n] over bins that end at the edges [B - 1].

    q [B] is `expected`; p counts half a row more in each bin, so that an empty one is no infinite surprise.
    """
    there = ~np.isnan(rewards)
    above = [there.sum(axis=-1), *((rewards > edge).sum(axis=-1) for edge in edges), np.zeros(rewards.shape[:-1])]
    counts = -np.diff(np.stack(above, axis=-1).astype(np.float64), axis=-1)
    p = (counts + 0.5) / (counts.sum(axis=-1, keepdims=True) + 0.5 * len(expected))
    index: Floats = ((p - expected) * np.log(p / expected)).sum(axis=-1)
    return index
