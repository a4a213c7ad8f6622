"""Alpha of items with two ratings each."""

import numpy as np
import pytest

from jurygraph.aggregation.agreement import krippendorff_alpha
from jurygraph.inference.krippendorff import AlphaLevel, alpha_of_pairs


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alpha_of_pairs_is_alpha_and_takes_many_tables_at_once(level: AlphaLevel) -> None:
    rng = np.random.default_rng(0)
    positions = np.array([-1.0, 0.0, 2.0, 5.0])
    pairs = rng.integers(0, 4, (3, 2, 60))
    tables = np.zeros((4, 4, 4))  # the last one is empty
    for table, (first, second) in zip(tables, pairs, strict=False):
        np.add.at(table, (first, second), 1.0)
    expected = [krippendorff_alpha(positions[one], level) for one in pairs]
    np.testing.assert_allclose(alpha_of_pairs(tables, positions, level), [*expected, np.nan], rtol=1e-12)
