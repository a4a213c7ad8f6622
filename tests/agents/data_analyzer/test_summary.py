"""The table of a stream, against NumPy over all its values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.data_analyzer.analyzer import AnalyzerSummary

values = st.one_of(st.floats(-1e3, 1e3), st.just(float("nan")))


@given(st.lists(values, min_size=1, max_size=30))
def test_the_running_table_equals_that_of_all_values(drawn: list[float]) -> None:
    summary = AnalyzerSummary(1)
    for step, value in enumerate(drawn, start=1):
        summary.add(step, np.array([value]))
    (row,) = summary.rows(["a"], np.array([0.5]))
    steps = np.flatnonzero(~np.isnan(drawn)) + 1
    there = np.array(drawn)[steps - 1]
    assert row.steps == there.size
    if not there.size:
        assert set(row.model_dump(exclude={"series", "steps", "autocorrelation"}).values()) == {None}
        return
    assert row.mean == pytest.approx(there.mean(), abs=1e-9)
    assert row.sd == pytest.approx(there.std(ddof=1) if there.size > 1 else 0.0, abs=1e-6)
    assert (row.least, row.most, row.last) == (there.min(), there.max(), there[-1])
    slope = np.polyfit(steps, there, 1)[0] if there.size > 1 else 0.0
    assert row.trend == pytest.approx(slope, abs=1e-6, rel=1e-6)
