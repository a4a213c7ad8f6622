"""Lag-1 autocorrelation of many series at once, in constant memory.

The pairs (score before, score) are collected in blocks of 100, or fewer up to an alarm. Each has its own means, and
the estimate is the average of the blocks' 2 Σ x y / (Σ x² + Σ y²) of deviations (Burg 1967), weighted by their number
of pairs: so a change of level or noise disturbs one block only. That of n pairs has the mean ρ - (1 + 3 ρ) / n
(Kendall 1954), which is corrected.
"""

from typing import NamedTuple

import numpy as np

from jurygraph.agents.data_analyzer.scales import MIN_RELATIVE_SD
from jurygraph.arrays import Bools, Floats

BLOCK = 100
"""Pairs in a block. Shorter ones bias the estimate at a high autocorrelation, longer ones hide shifts for longer."""
MIN_PAIRS = 8  # fewer give no estimate
MAX_AUTOCORRELATION = 0.98


class PairMoments(NamedTuple):
    """Running moments of pairs of numbers: how many [..., S], means [2, ..., S], products of deviations [2, 2, ..., S].

    The products are sums over the pairs.
    """

    pairs: Floats
    means: Floats
    products: Floats

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> "PairMoments":
        return cls(np.zeros(shape), np.zeros((2, *shape)), np.zeros((2, 2, *shape)))

    def plus(self, first: Floats, second: Floats, is_pair: Bools) -> "PairMoments":
        """Return the moments with one more pair for those series that have one."""
        pairs = self.pairs + is_pair
        point = np.stack([first, second])
        deviation = np.where(is_pair, point - self.means, 0.0)
        means = self.means + deviation / np.maximum(pairs, 1.0)
        products = self.products + deviation[:, None] * np.where(is_pair, point - means, 0.0)
        return PairMoments(pairs, means, products)

    def without(self, series: Bools) -> "PairMoments":
        return PairMoments(*(np.where(series, 0.0, column) for column in self))


class LagOne:
    """The autocorrelations of series of `shape` [..., S]."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._last: Floats = np.full(shape, np.nan)
        self._block = PairMoments.empty(shape)
        self._past: Floats = np.zeros((3, *shape))
        """Of all closed blocks: pairs, blocks, and the sum of pairs × autocorrelation."""

    def learn(self, score: Floats, has_score: Bools) -> None:
        """Add a score to those series that have one; its pair is with the last score, also over missing steps."""
        self._block = self._block.plus(self._last, score, has_score & ~np.isnan(self._last))
        self._last = np.where(has_score, score, self._last)
        self._close(self._block.pairs >= BLOCK)

    def restart(self, series: Bools) -> None:
        """Begin a block of some series [..., S]; their next score has none before it."""
        self._close(series)
        self._last = np.where(series, np.nan, self._last)

    @property
    def pairs(self) -> Floats:
        """Return the number of pairs behind each estimate, [..., S]."""
        return np.asarray(self._past[0] + self._weigh_block()[0])

    def estimate(self) -> Floats:
        """Return the autocorrelation of each series, within ±.98, [..., S]; NaN for fewer than 8 pairs that vary."""
        pairs, blocks, total = self._past + self._weigh_block()
        corrected = (total + blocks) / np.maximum(pairs - 3.0 * blocks, 1.0)
        estimate = np.clip(corrected, -MAX_AUTOCORRELATION, MAX_AUTOCORRELATION)
        return np.where(pairs >= np.maximum(MIN_PAIRS, 4.0 * blocks), estimate, np.nan)

    def _weigh_block(self) -> Floats:
        """Return of the present block: pairs, 1, and pairs × autocorrelation, [3, ..., S]; 0 if it varies by rounding
        only."""
        pairs, _, ((before, product), (_, after)) = self._block
        rounding = MIN_RELATIVE_SD * (1.0 + np.abs(np.nan_to_num(self._last)))
        varies = before + after > pairs * rounding * rounding
        correlation = 2.0 * product / np.where(varies, before + after, 1.0)
        return np.where(varies, np.stack([pairs, np.ones_like(pairs), pairs * correlation]), 0.0)

    def _close(self, series: Bools) -> None:
        if not series.any():
            return
        self._past = self._past + np.where(series, self._weigh_block(), 0.0)
        self._block = self._block.without(series)
