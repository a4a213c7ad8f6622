"""The votes of a panel's judges, and what follows from them where some were not heard."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jurygraph import aggregation
from jurygraph.agents.roles import Bools, Cells, Floats

Levels = NDArray[np.intp]
MOST_CASES = 1000
"""Ways to cast the votes that were not heard that are gone through; beyond, the worst level counts."""


class Votes:
    """The cells of all judges side by side, [R,J], each column a vote of `judge` [J].

    `cast` are those that were heard, `missing` those that were asked for and were not: because they failed, or because
    a gate stopped the response. A missing one is filled with 0 where the worst is less, and with 1 where it is more.
    """

    def __init__(self, cells: Mapping[str, Cells], params: Mapping[str, Any]) -> None:
        self.levels = levels_of(params)
        self._prior, self._judges = params.get("prior"), params.get("judges")
        self.live: Bools = _beside(one.live for one in cells.values())
        self.cast: Bools = self.live & _beside(one.judged for one in cells.values())
        self.missing: Bools = self.live & ~self.cast
        filled = _beside(one.value for one in cells.values())
        self._level = nearest(filled, self.levels)
        self._high: Bools = self.missing & (filled >= 0.5)
        self._low: Bools = self.missing & ~self._high
        self._judge = [name for name, one in cells.items() for _ in range(one.value.shape[1])]

    def posterior(self) -> Floats:
        """The share of each level, [R,K], by the votes that were cast."""
        return self._shares(self._evidence())

    def worth(self, posterior: Floats) -> Floats:
        """The mean level, [...] from [...,K]."""
        return np.asarray(aggregation.total(posterior * self.levels))

    def at_worst(self, heard: Floats) -> Floats:
        """What each response is worth, [R], where the votes that are missing were as bad as they could be.

        Those that are filled with 0 make the least of what those filled with 1 make the most of. `heard` [R,K] is the
        posterior of the rest; where there is none, and all are filled alike, that is what counts. A row hangs on itself
        alone.
        """
        low, high = self._low.any(axis=1), self._high.any(axis=1)
        worst = np.where(low, 0.0, 1.0)
        open_ = np.flatnonzero((low | high) & (self.cast.any(axis=1) | (low & high)))
        if not len(open_):
            return worst
        evidence = heard if self._judges is not None else self._evidence()
        patterns, of = np.unique(np.hstack([self._low, self._high])[open_], axis=0, return_inverse=True)
        for place, pattern in enumerate(patterns):
            rows = open_[of.ravel() == place]
            worst[rows] = self._worst(evidence[rows], *np.split(pattern, 2))
        return worst

    def _worst(self, evidence: Floats, low: Bools, high: Bools) -> Floats:
        """Of rows [R,K] that lack the same votes, [J] each."""
        if self._ways(low) * self._ways(high) > MOST_CASES:
            return np.full(len(evidence), self.levels[0] if low.any() else self.levels[-1])
        both = self._joined(
            self._joined(evidence[:, None, None], self._cases(low)[None, :, None]), self._cases(high)[None, None]
        )
        worth = self.worth(self._shares(both))
        return np.asarray(worth.max(axis=2).min(axis=1))

    def _ways(self, missing: Bools) -> int:
        """In how many ways the votes can be cast; those of one judge have no order."""
        k, ways = len(self.levels), 1
        for votes in self._of_judges(missing).values():
            ways *= comb(votes + k - 1, votes)
        return ways

    def _of_judges(self, missing: Bools) -> Counter[str]:
        return Counter(judge for judge, gone in zip(self._judge, missing.tolist(), strict=True) if gone)

    def _cases(self, missing: Bools) -> Floats:
        """What each way says of the levels, [C,K]."""
        cases = self._nothing(1)
        for judge, votes in self._of_judges(missing).items():
            said = [
                self._said(judge, levels) for levels in combinations_with_replacement(range(len(self.levels)), votes)
            ]
            cases = self._joined(cases[:, None], np.stack(said)[None]).reshape(-1, len(self.levels))
        return cases

    def _said(self, judge: str, levels: Sequence[int]) -> Floats:
        """What a judge says of the levels by votes for these, [K]."""
        told = self._nothing(1)
        for level in levels:
            told = self._joined(told, self._vote(judge, np.array([level])))
        return np.asarray(told[0])

    def _evidence(self) -> Floats:
        """What the votes that were cast say, [R,K]: under confusions shares, else the number of votes."""
        told = self._nothing(len(self.cast))
        if self._judges is not None:
            told = np.tile(np.array(self._prior, dtype=np.float64), (len(told), 1))
        for column, judge in enumerate(self._judge):
            more = self._joined(told, self._vote(judge, self._level[:, column]))
            told = np.where(self.cast[:, column, None], more if self._judges is None else _normal(more), told)
        return told

    def _nothing(self, rows: int) -> Floats:
        return np.full((rows, len(self.levels)), 0.0 if self._judges is None else 1.0)

    def _vote(self, judge: str, level: Levels) -> Floats:
        """What one vote says, [R,K], of a level each [R]."""
        if self._judges is None:
            return np.where(np.arange(len(self.levels)) == level[:, None], 1.0, 0.0)
        return np.array(self._judges[judge], dtype=np.float64)[:, level].T

    def _joined(self, one: Floats, other: Floats) -> Floats:
        return one + other if self._judges is None else one * other

    def _shares(self, evidence: Floats) -> Floats:
        """Shares of the levels, [...,K]: those of the most votes alike, or by Bayes' rule."""
        if self._judges is not None:
            return _normal(evidence)
        return _normal(np.where(evidence == evidence.max(axis=-1, keepdims=True), 1.0, 0.0))


def levels_of(params: Mapping[str, Any]) -> Floats:
    """What each class is worth, rising, [K], by the params of a plan."""
    return np.array(params["levels"], dtype=np.float64)


def nearest(value: Floats, levels: Floats) -> Levels:
    """The level that each value is nearest to, its place; the lower one of two."""
    middles = (levels[1:] + levels[:-1]) / 2.0
    return np.searchsorted(middles, value, side="left")


def _beside(columns: Iterator[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(list(columns), axis=1)


def _normal(shares: Floats) -> Floats:
    """Shares that sum to 1, [...,K]; those of nothing at all are alike."""
    size = np.asarray(aggregation.total(shares))[..., None]
    return np.where(size > 0.0, shares / np.where(size > 0.0, size, 1.0), 1.0 / shares.shape[-1])
