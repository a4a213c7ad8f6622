"""Draws of whole clusters."""

import numpy as np
import pytest

from jurygraph.inference import bootstrap
from jurygraph.inference.bootstrap import draw_clusters


def test_the_draws_are_those_of_one_pcg64_whatever_the_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = np.random.Generator(np.random.PCG64(7)).integers(5, size=(40, 5))
    for cells in (1_000_000, 35, 1):
        monkeypatch.setattr(bootstrap, "DRAWS_PER_BATCH", cells)
        np.testing.assert_array_equal(np.concatenate(list(draw_clusters(5, 40, seed=7))), expected)


def test_another_seed_draws_others_and_each_cluster_is_as_likely() -> None:
    one, other = (np.concatenate(list(draw_clusters(4, 5000, seed))) for seed in (1, (1, 2)))
    assert (one != other).any()
    assert np.bincount(one.ravel()) / one.size == pytest.approx([0.25] * 4, abs=4 * np.sqrt(0.25 * 0.75 / one.size))
