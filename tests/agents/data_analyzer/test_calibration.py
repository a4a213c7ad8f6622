"""The calibration from the first steps."""

import numpy as np
import pytest

from jurygraph.agents.data_analyzer.series import frame


def test_rows_above_the_80th_percentile_of_disagreement_conflict() -> None:
    found = frame([], [np.arange(101.0) / 100])
    assert found.conflict == pytest.approx(0.81)


def test_if_the_percentile_is_the_maximum_its_ties_conflict() -> None:
    assert frame([], [np.array([0.0, 0.0, 0.5, 0.5, 0.5])]).conflict == 0.5


def test_frequent_rewards_end_a_bin_and_no_bin_is_empty() -> None:
    found = frame([np.repeat([0.0, 0.5, 1.0], [50, 30, 20])], [])
    assert found.edges.tolist() == [0.0, 0.5]
    assert found.expected == pytest.approx([0.5, 0.3, 0.2], abs=0.01)


@pytest.mark.parametrize("rewards", [np.full(9, 0.5), np.full(9, np.nan), np.empty(0)])
def test_a_single_reward_or_none_gives_no_bins(rewards: np.ndarray) -> None:
    found = frame([rewards], [])
    assert (np.isnan(found.conflict), found.edges.size) == (True, 0)
