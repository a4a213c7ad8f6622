"""From samples to Table 4 and the series of Fig. 3."""

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import stats

from jurygraph.studies import disagreement
from jurygraph.studies.disagreement import ComponentSamples
from tests.studies.disagreement.made import make_samples
from tests.studies.figures import Figures, figures_of

UNIT = st.floats(0.0, 1.0).map(lambda value: round(value, 3))
ROWS = st.lists(st.tuples(UNIT, UNIT, UNIT), min_size=2, max_size=25)
TEN = [[place / 10, 0.0] for place in range(1, 11)]
"""D_pair .1, .2, … 1."""


def report(samples: ComponentSamples) -> Figures:
    """Return the figures of one run."""
    return figures_of(disagreement.report([samples])).runs[0]


class TestThreshold:
    def test_the_threshold_is_the_percentile_by_linear_interpolation(self) -> None:
        found = report(make_samples(TEN))
        assert found.threshold == pytest.approx(0.82)
        assert (found.conflicts, found.conflict_rate) == (2, 0.2)
        assert found.disagreement == pytest.approx(0.55)

    def test_equal_differences_tie_despite_rounding(self) -> None:
        found = report(make_samples([[0.1, 0.3], [0.0, 0.2], [0.5, 0.7], [0.7, 0.9]]))
        assert found.conflicts == 0
        assert (found.split.tied_high, found.split.tied_low) == (1, 3)


class TestSplit:
    def test_high_div_are_a_fifth_by_count(self) -> None:
        split = report(make_samples(TEN, rewards=range(10))).split
        assert (split.high, split.low, split.cut, split.tied_low) == (2, 8, 0.9, 0)
        reward, accuracy, steady = split.rows
        assert (reward.name, reward.high, reward.low, reward.difference.value) == (
            "reward",
            8.5,
            3.5,
            5.0,
        )
        assert (accuracy.name, accuracy.high, accuracy.low) == (
            "accuracy",
            pytest.approx(0.95),
            pytest.approx(0.45),
        )
        assert (steady.high, steady.low, steady.difference.low, steady.difference.high) == (
            0.0,
            0.0,
            None,
            None,
        )

    def test_ties_are_split_by_id(self) -> None:
        split = report(make_samples([[1.0, 0.0]] * 10, rewards=range(10))).split
        assert (split.rows[0].high, split.tied_high, split.tied_low) == (0.5, 2, 8)

    @pytest.mark.parametrize(("size", "high"), [(2, 1), (3, 1), (7, 1), (8, 2), (12, 2), (13, 3)])
    def test_half_a_sample_is_rounded_up_and_neither_side_is_empty(
        self, size: int, high: int
    ) -> None:
        assert report(make_samples((TEN * 2)[:size])).split.high == high

    def test_the_interval_leaves_out_whole_tasks(self) -> None:
        """Ten copies of each response in one task tell nothing more than one of each."""
        drawn = np.random.default_rng(1).random((40, 3))
        alone = report(make_samples(drawn)).split
        copied = make_samples(
            np.repeat(drawn, 10, axis=0), units=[f"t{place // 10:04}" for place in range(400)]
        )
        for one, other in zip(alone.rows, report(copied).split.rows, strict=True):
            assert other.difference.low == pytest.approx(one.difference.low)
            assert other.difference.high == pytest.approx(one.difference.high)

    def test_the_interval_is_the_jackknife_of_the_difference(self) -> None:
        drawn = np.random.default_rng(2).random((60, 3))
        groups = [f"t{place // 5}" for place in range(60)]
        apart = np.ptp(drawn, axis=1)
        is_high = np.isin(np.arange(60), np.argsort(-apart, kind="stable")[:12])
        means = [
            drawn[is_high & kept, 0].mean() - drawn[~is_high & kept, 0].mean()
            for kept in (np.array(groups) != f"t{task}" for task in range(12))
        ]
        row = report(make_samples(drawn, units=groups)).split.rows[1]
        error = np.sqrt(11 / 12 * np.sum((np.array(means) - row.difference.value) ** 2))
        quantile = stats.t.ppf(
            0.975, len({group for group, high in zip(groups, is_high, strict=True) if high}) - 1
        )
        assert row.difference.low == pytest.approx(row.difference.value - quantile * error)
        assert row.difference.high == pytest.approx(row.difference.value + quantile * error)

    @pytest.mark.landing
    def test_the_interval_covers_the_true_difference(self) -> None:
        """Eight tasks of ten responses, which share a level: a percentile bootstrap over tasks covers .90."""
        rng, covered = np.random.default_rng(3), 0
        groups = [f"t{place // 10}" for place in range(80)]
        for _ in range(300):
            rewards = np.repeat(rng.normal(size=8), 10) + rng.normal(size=80)
            samples = make_samples(rng.random((80, 2)), rewards=rewards, units=groups)
            row = report(samples).split.rows[0]
            covered += row.difference.low <= 0.0 <= row.difference.high
        assert covered / 300 >= 0.93


class TestSteps:
    def test_steps_are_sorted_and_have_their_means(self) -> None:
        rows = [[1.0, 0.0], [0.2, 0.2], [0.5, 0.0], [0.3, 0.3]]
        found = report(make_samples(rows, rewards=[1.0, 2.0, 3.0, 4.0], steps=[7, 2, 7, 2]))
        assert [
            (one.step, one.samples, one.reward, one.disagreement, one.conflict_rate)
            for one in found.steps
        ] == [
            (2.0, 2, 3.0, 0.0, 0.0),
            (7.0, 2, 2.0, 0.75, 0.5),
        ]

    def test_without_steps_there_are_no_series(self) -> None:
        assert report(make_samples(TEN)).steps == []


def test_the_plot_has_a_panel_for_each_series_and_a_line_for_each_run() -> None:
    rows = [[1.0, 0.0], [0.2, 0.2], [0.5, 0.0], [0.3, 0.3]]
    runs = [make_samples(rows, steps=[1, 2, 3, 4], run=name) for name in ("macrm", "other")]
    plots = disagreement.report(runs).plots
    assert [plot.title for plot in plots] == [
        "Mean reward of macrm is 0.50 at step 1, and 0.30 at step 4",
        "Mean D_pair of macrm is 1.00 at step 1, and 0.00 at step 4",
        "Conflict rate of macrm is 1.00 at step 1, and 0.00 at step 4",
    ]
    assert [(line.label, line.x) for line in plots[1].series] == [
        (name, [1.0, 2.0, 3.0, 4.0]) for name in ("macrm", "other")
    ]
    assert plots[1].series[0].y == [1.0, 0.0, 0.5, 0.0]
    assert disagreement.report([make_samples(rows)]).plots == []
