"""Scales: monotone, invertible, and with a floor that one row's change does not exceed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.data_analyzer import scales

counts = st.integers(2, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def share(count: int, rows: int) -> scales.Measure:
    return scales.share(np.asarray(count / rows), np.asarray(1.0), np.asarray(float(rows)))


@given(counts)
def test_a_share_can_be_read_back_from_its_score(drawn: tuple[int, int]) -> None:
    count, rows = drawn
    measure = share(count, rows)
    assert scales.invert_scale("share", float(measure.score)) == pytest.approx(count / rows, abs=1 / rows)


@given(counts)
def test_no_flip_of_one_row_moves_a_share_by_more_than_its_floor(drawn: tuple[int, int]) -> None:
    count, rows = drawn
    measure = share(count, rows)
    for near in {max(count - 1, 0), min(count + 1, rows)} - {count}:
        assert abs(share(near, rows).score - measure.score) <= measure.floor * (1 + 1e-9)


@given(st.floats(0.2, 0.8), st.integers(100, 5000))
def test_a_shares_noise_is_about_one_over_the_root_of_its_rows_at_any_level(level: float, rows: int) -> None:
    sd = np.sqrt(level * (1 - level) / rows)
    up, down = (share(round((level + s * sd) * rows), rows).score for s in (1, -1))
    assert float(up - down) / 2 == pytest.approx(1 / np.sqrt(rows), rel=0.15)


@given(st.floats(0.0, 1e6))
def test_a_mean_length_can_be_read_back(mean: float) -> None:
    one = scales.logarithm(np.asarray(mean), np.asarray(1.0), np.asarray(1.0), np.asarray(4.0))
    assert scales.invert_scale("logarithm", float(one.score)) == pytest.approx(mean, rel=1e-9, abs=1e-9)
    assert float(one.floor) == pytest.approx(0.25 / (1 + mean))
    assert float(one.error) == pytest.approx(0.5 / (1 + mean))


@given(st.floats(-0.99, 0.99))
def test_a_correlation_can_be_read_back(r: float) -> None:
    assert scales.invert_scale(
        "correlation", float(scales.correlation(np.asarray(r), np.asarray(9.0)).score)
    ) == pytest.approx(r)


def test_a_mean_of_rows_that_do_not_vary_has_a_floor_above_rounding() -> None:
    one = scales.plain_scale(np.asarray(0.1 + 0.2), np.asarray(0.0), np.asarray(0.0), np.asarray(9.0))
    assert one.floor > 1e-10
