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
