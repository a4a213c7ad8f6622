"""Lag-1 autocorrelation of many series at once, in constant memory.

The pairs (score before, score) are collected in blocks of 100, or fewer up to an alarm. Each has its own means, and
the estimate is the average of the blocks' 2 Σ x y / (Σ x² + Σ y²) of deviations (Burg 1967), weighted by their number
of pairs: so a change of level or noise disturbs one block only. That of n pairs has the mean ρ - (1 + 3 ρ) / n
(Kendall 1954), which is corrected.
"""

from typing import Any, NamedTuple

import numpy as np

from jurygraph.agents.data_analyzer.scales import MIN_RELATIVE_SD
from jurygraph.arrays import Bools, Floats
from jurygraph.inference.series import MAX_AUTOCORRELATION

BLOCK = 100
"""Pairs in a block. Shorter ones bias the estimate at a high autocorrelation, longer ones hide shifts for longer."""
MIN_PAIRS = 8  # fewer give no estimate
RESIDUAL_STEPS = 5
"""Steps in a mean of residuals. A single residual shows little of a slow movement below the noise of the steps."""
_MARGIN = 0.5
"""Standard errors that are added to the estimate for pre-whitening. Too low an estimate costs false alarms, too high a
one delay; the former grow faster."""


class SeriesForecast(NamedTuple):
    """The regression of a score on the one before: `slope`, residual `sd` and its degrees of `freedom`, each [...].

    `last` is the score before, NaN at the start.
    """

    last: Floats
    slope: Floats
    sd: Floats
    freedom: Floats


class _Pairs(NamedTuple):
    """Number of pairs, of blocks, and the sums of products of deviations [2, 2, ...] of the score before and the score.

    Numbers for one series, arrays for many.
    """

    pairs: Any
    blocks: Any
    products: Any

    def plus(self, other: "_Pairs") -> "_Pairs":
        return _Pairs(*(mine + its for mine, its in zip(self, other, strict=True)))

    def without(self, series: Bools) -> "_Pairs":
        return _Pairs(*(np.where(series, 0.0, column) for column in self))


class LagOne:
    """The autocorrelations of series of `shape` [..., S]."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._last: Floats = np.full(shape, np.nan)
        self._means: Floats = np.zeros((2, *shape))
        self._block = self._closed = _Pairs(np.zeros(shape), np.zeros(shape), np.zeros((2, 2, *shape)))
        """The pairs of the present block, and of those closed since the last alarm."""
        self._past = np.zeros((3, *shape))
        """Of all closed blocks: pairs, blocks, and the sum of pairs × autocorrelation."""

    def learn(self, score: Floats, has_score: Bools) -> None:
        """Add a score to those series that have one; its pair is with the last score, also over missing steps."""
        is_pair = has_score & ~np.isnan(self._last)
        point = np.stack([self._last, score])
        pairs, _, products = self._block
        pairs = pairs + is_pair
        deviation = np.where(is_pair, point - self._means, 0.0)
        self._means = self._means + deviation / np.maximum(pairs, 1.0)
        products = products + deviation[:, None] * np.where(is_pair, point - self._means, 0.0)
        self._block = _Pairs(pairs, np.minimum(pairs, 1.0), products)
        self._last = np.where(has_score, score, self._last)
        is_full = pairs >= BLOCK
        if is_full.any():
            self._close(is_full)

    def restart(self, series: Bools) -> None:
        """Forget the noise of some series [..., S]; their next score has none before it, and begins a block."""
        if not series.any():
            return
        self._close(series)
        self._closed = self._closed.without(series)
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

    def forecast(self) -> SeriesForecast:
        """Return the regressions for the next score: without an estimate the slope is 0."""
        estimate = np.nan_to_num(self.estimate())
        error = np.sqrt((1.0 - estimate * estimate) / np.maximum(self.pairs, 1.0))
        slope = np.minimum(estimate + _MARGIN * error, MAX_AUTOCORRELATION)
        stretch = self._closed.plus(self._block)
        (before, product), (_, squares) = stretch.products
        freedom = np.maximum(stretch.pairs - stretch.blocks - 1.0, 1.0)
        residual = np.maximum(squares - 2.0 * slope * product + slope * slope * before, 0.0)
        return SeriesForecast(self._last, slope, np.sqrt(residual / freedom), freedom)

    def _weigh_block(self) -> Floats:
        """Return of the present block: pairs, 1, and pairs × autocorrelation, [3, ..., S]; 0 if it varies by rounding
        only."""
        pairs, _, ((before, product), (_, after)) = self._block
        rounding = MIN_RELATIVE_SD * (1.0 + np.abs(np.nan_to_num(self._last)))
        varies = before + after > pairs * rounding * rounding
        correlation = 2.0 * product / np.where(varies, before + after, 1.0)
        return np.where(varies, np.stack([pairs, np.ones_like(pairs), pairs * correlation]), 0.0)

    def _close(self, series: Bools) -> None:
        self._past = self._past + np.where(series, self._weigh_block(), 0.0)
        self._closed = self._closed.plus(self._block.without(~series))
        self._block = self._block.without(series)
        self._means = np.where(series, 0.0, self._means)


class Residuals:
    """The autocorrelations of means of five residuals, of series of `shape` [..., S].

    They show what forecasts from one step before leave: a dependence on more steps.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._sums, self._counts = np.zeros((2, *shape))
        self.of_means = LagOne(shape)

    def learn(self, u: Floats) -> None:
        """Add the residuals [..., S] of a step, as normal scores; NaN are skipped."""
        has_score = ~np.isnan(u)
        self._sums = self._sums + np.where(has_score, u, 0.0)
        self._counts = self._counts + has_score
        is_full = self._counts >= RESIDUAL_STEPS
        if is_full.any():
            self.of_means.learn(np.where(is_full, self._sums / RESIDUAL_STEPS, np.nan), is_full)
            self._sums, self._counts = (np.where(is_full, 0.0, column) for column in (self._sums, self._counts))
