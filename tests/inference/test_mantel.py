"""The Mantel test: p is uniform where nothing is related, and small where something is."""

import numpy as np
import pytest

from jurygraph.arrays import Floats
from jurygraph.inference import mantel as module
from jurygraph.inference.mantel import mantel


def symmetric(values: Floats) -> Floats:
    return np.asarray(values + values.T)


def test_p_is_uniform_without_a_relation_and_small_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members differ in both matrices, as strict and terse reviewers do, so that pairs are far from independent."""
    monkeypatch.setattr(module, "PERMUTATIONS", 99)
    rng = np.random.default_rng(0)
    without = []
    planted = []
    for seed in range(200):
        first, second = (np.add.outer(*[rng.normal(size=12)] * 2) + symmetric(rng.normal(size=(12, 12))) for _ in "ab")
        second[0, 1] = second[1, 0] = np.nan
        found = mantel(first, second, seed)
        assert found.pairs == 65
        without.append(found.p)
        planted.append(mantel(first, second + first, seed).p)
    p = np.array(without, dtype=np.float64)
    assert 2 <= (p <= 0.05).sum() <= 18  # 10 expected; 99 % of a binomial distribution
    assert 82 <= (p <= 0.5).sum() <= 118
    assert (np.array(planted) <= 0.05).mean() > 0.9


def test_what_cannot_be_correlated_has_no_p() -> None:
    same = np.ones((5, 5))
    assert mantel(same, np.arange(25.0).reshape(5, 5))[1:] == (None, None)
    assert mantel(np.eye(2), np.eye(2)) == (1, None, None)
    sparse = np.full((40, 40), np.nan)
    sparse[:4, :4] = np.random.default_rng(0).normal(size=(4, 4))
    found = mantel(sparse, sparse)
    assert (found.pairs, found.p) == (6, None)
