"""Votes of a panel's judges, their posterior, and its worst case over votes that are missing."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jurygraph import aggregation
from jurygraph.aggregation.arrays import Bools, Floats, Ints
from jurygraph.decision.combiner import ScoreMatrix

MAX_CASES = 1000
"""Most combinations of missing votes that are enumerated; beyond it, the worst level counts."""


class Votes:
    """The score matrices of all judges joined column by column, [R,J]; each column holds one judge's votes.

    `cast` [R,J] marks effective votes. `missing` [R,J] marks votes that were requested but have no effective verdict,
    because it failed or because a gate excluded the response. A missing vote is filled with 0 where less is worse, and
    with 1 where more is worse.
    """

    def __init__(self, matrices: Mapping[str, ScoreMatrix], params: Mapping[str, Any]) -> None:
        self.levels = level_values(params)
        self._prior, self._judges = params.get("prior"), params.get("judges")
        self.live: Bools = _concatenate(matrix.applicable for matrix in matrices.values())
        self.cast: Bools = self.live & _concatenate(matrix.judged for matrix in matrices.values())
        self.missing: Bools = self.live & ~self.cast
        filled = _concatenate(matrix.value for matrix in matrices.values())
        self._level = nearest_level(filled, self.levels)
        self._high: Bools = self.missing & (filled >= 0.5)
        self._low: Bools = self.missing & ~self._high
        self._judge_names = [name for name, matrix in matrices.items() for _ in range(matrix.value.shape[1])]

    def posterior(self) -> Floats:
        """Return the probability of each level, [R,K], given the votes that were cast."""
        return self._probabilities(self._evidence())

    def expected_level(self, posterior: Floats) -> Floats:
        """Return the mean level, [...], of a posterior [...,K]."""
        return np.asarray(aggregation.total(posterior * self.levels))

    def worst_case(self, posterior: Floats) -> Floats:
        """Return the value of each response, [R], if its missing votes were as bad as they could be.

        Missing votes that are filled with 0 minimize the value that those filled with 1 maximize. `posterior` [R,K] is
        that of the votes that were cast; if a response has none and all its missing votes are filled alike, the fill is
        its value. Each row depends on itself alone.
        """
        low, high = self._low.any(axis=1), self._high.any(axis=1)
        worst = np.where(low, 0.0, 1.0)
        unresolved = np.flatnonzero((low | high) & (self.cast.any(axis=1) | (low & high)))
        if not len(unresolved):
            return worst
        evidence = posterior if self._judges is not None else self._evidence()
        patterns, pattern_index = np.unique(np.hstack([self._low, self._high])[unresolved], axis=0, return_inverse=True)
        for index, pattern in enumerate(patterns):
            rows = unresolved[pattern_index.ravel() == index]
            worst[rows] = self._worst_values(evidence[rows], *np.split(pattern, 2))
        return worst

    def _worst_values(self, evidence: Floats, low: Bools, high: Bools) -> Floats:
        """Return the worst-case values, [R], of rows [R,K] whose missing votes, `low` and `high` [J], are the same."""
        if self._count_combinations(low) * self._count_combinations(high) > MAX_CASES:
            return np.full(len(evidence), self.levels[0] if low.any() else self.levels[-1])
        combined = self._combine_evidence(
            self._combine_evidence(evidence[:, None, None], self._missing_evidence(low)[None, :, None]),
            self._missing_evidence(high)[None, None],
        )
        worth = self.expected_level(self._probabilities(combined))
        return np.asarray(worth.max(axis=2).min(axis=1))

    def _count_combinations(self, missing: Bools) -> int:
        """Count the combinations of missing votes; votes of the same judge have no order."""
        k, ways = len(self.levels), 1
        for votes in self._missing_per_judge(missing).values():
            ways *= comb(votes + k - 1, votes)
        return ways

    def _missing_per_judge(self, missing: Bools) -> Counter[str]:
        return Counter(
            judge for judge, is_missing in zip(self._judge_names, missing.tolist(), strict=True) if is_missing
        )

    def _missing_evidence(self, missing: Bools) -> Floats:
        """Return the evidence of each combination of missing votes, [C,K]."""
        cases = self._neutral_evidence(1)
        for judge, votes in self._missing_per_judge(missing).items():
            evidence = [
                self._evidence_of_votes(judge, levels)
                for levels in combinations_with_replacement(range(len(self.levels)), votes)
            ]
            cases = self._combine_evidence(cases[:, None], np.stack(evidence)[None]).reshape(-1, len(self.levels))
        return cases

    def _evidence_of_votes(self, judge: str, levels: Sequence[int]) -> Floats:
        """Return the evidence of a judge's votes for these levels, [K]."""
        evidence = self._neutral_evidence(1)
        for level in levels:
            evidence = self._combine_evidence(evidence, self._evidence_of_vote(judge, np.array([level])))
        return np.asarray(evidence[0])

    def _evidence(self) -> Floats:
        """Return the evidence of the votes that were cast, [R,K].

        It is a probability per level if there are confusion matrices, else the number of votes.
        """
        evidence = self._neutral_evidence(len(self.cast))
        if self._judges is not None:
            evidence = np.tile(np.array(self._prior, dtype=np.float64), (len(evidence), 1))
        for column, judge in enumerate(self._judge_names):
            updated = self._combine_evidence(evidence, self._evidence_of_vote(judge, self._level[:, column]))
            evidence = np.where(
                self.cast[:, column, None], updated if self._judges is None else _normalize(updated), evidence
            )
        return evidence

    def _neutral_evidence(self, rows: int) -> Floats:
        return np.full((rows, len(self.levels)), 0.0 if self._judges is None else 1.0)

    def _evidence_of_vote(self, judge: str, level: Ints) -> Floats:
        """Return the evidence, [R,K], of one vote per row for the levels [R]."""
        if self._judges is None:
            return np.where(np.arange(len(self.levels)) == level[:, None], 1.0, 0.0)
        return np.array(self._judges[judge], dtype=np.float64)[:, level].T

    def _combine_evidence(self, first: Floats, second: Floats) -> Floats:
        return first + second if self._judges is None else first * second

    def _probabilities(self, evidence: Floats) -> Floats:
        """Return the probabilities of the levels, [...,K].

        They follow from Bayes' rule or, without confusion matrices, are uniform over the levels with the most votes.
        """
        if self._judges is not None:
            return _normalize(evidence)
        return _normalize(np.where(evidence == evidence.max(axis=-1, keepdims=True), 1.0, 0.0))


def level_values(params: Mapping[str, Any]) -> Floats:
    """Return the values of the classes, increasing, [K], from the params of a plan."""
    return np.array(params["levels"], dtype=np.float64)


def nearest_level(value: Floats, levels: Floats) -> Ints:
    """Return the index of the level nearest to each value; the lower one of two at equal distance."""
    middles = (levels[1:] + levels[:-1]) / 2.0
    return np.searchsorted(middles, value, side="left")


def _concatenate(columns: Iterator[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(list(columns), axis=1)


def _normalize(shares: Floats) -> Floats:
    """Normalize [...,K] to sum to 1; a sum of 0 becomes the uniform distribution."""
    size = np.asarray(aggregation.total(shares))[..., None]
    return np.where(size > 0.0, shares / np.where(size > 0.0, size, 1.0), 1.0 / shares.shape[-1])
