"""The limit of conflict, from the first steps."""

import numpy as np
import pytest

from jurygraph.agents.data_analyzer.series import conflict_limit


@pytest.mark.parametrize(
    ("pairs", "limit"),
    [
        (np.arange(101.0) / 100, 0.81),  # above the 80th percentile
        ([0.0, 0.0, 0.5, 0.5, 0.5], 0.5),  # the percentile is the maximum, and its ties conflict
        ([np.nan, 0.2, np.nan], 0.2),
        ([np.nan] * 9, np.nan),
    ],
)
def test_rows_above_the_80th_percentile_of_disagreement_conflict(pairs: list[float], limit: float) -> None:
    assert conflict_limit([np.array(pairs)]) == pytest.approx(limit, nan_ok=True)
