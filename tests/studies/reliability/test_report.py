"""What a run's size can tell: detectable differences, and what halves the interval."""

import math

import numpy as np
import pytest
from scipy import stats

from jurygraph.studies import reliability
from jurygraph.studies.reliability import RunScores, Scores
from tests.studies.figures import Figures, figures_of


def rewards(table: np.ndarray) -> RunScores:
    """Rewards of tasks (rows) and responses (columns)."""
    scores = Scores("reward")
    for (task, response), value in np.ndenumerate(table):
        scores.values.append(float(value))
        scores.tasks.append(f"t{task}")
        scores.responses.append(f"t{task}/{response}")
    return RunScores("run", scores, (), {})


def report(scores: RunScores) -> Figures:
    return figures_of(reliability.report(scores))


def drawn(tasks: int, responses: int, between: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    own = math.sqrt(between) * rng.normal(size=(tasks, 1))
    return own + math.sqrt(1.0 - between) * rng.normal(size=(tasks, responses))


def test_the_mean_and_its_interval_are_those_of_the_task_means() -> None:
    table = drawn(12, 4, 0.4)
    found = report(rewards(table)).mean
    expected = stats.ttest_1samp(table.mean(axis=1), 0.0).confidence_interval()
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=1e-12)
    error = stats.sem(table.mean(axis=1))
    assert found.effective == pytest.approx(table.var(ddof=1) / error**2)


def test_two_runs_of_this_size_detect_the_detectable_difference_with_power_80() -> None:
    """The noncentral t of 2 (G - 1) degrees of freedom, times √2 · error, and 2,000 simulated pairs of runs."""
    table = drawn(10, 4, 0.5, seed=3)
    error = stats.sem(table.mean(axis=1))
    detectable = report(rewards(table)).mean.detectable
    assert detectable is not None
    effect = detectable / (math.sqrt(2.0) * error)
    assert stats.nct.sf(stats.t.ppf(0.975, 18), 18, effect) == pytest.approx(0.8, abs=1e-6)
    rng, true_error = np.random.default_rng(4), math.sqrt((0.5 + 0.5 / 4) / 10)
    means = math.sqrt(10) * true_error * rng.normal(size=(2, 2000, 10))
    means[1] += effect * math.sqrt(2.0) * true_error
    found = stats.ttest_ind(*means, axis=1).pvalue < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.03)


def test_what_halves_the_interval_does() -> None:
    """With the components as they are: half of t · √((σ²_task + σ²_response / m) / G)."""
    split = report(rewards(drawn(30, 2, 0.0, seed=4)))
    between, within = (level.variance for level in split.rewards.levels)
    halving = split.mean.halving

    def half_width(tasks: int, responses: int) -> float:
        return stats.t.ppf(0.975, tasks - 1) * math.sqrt((between + within / responses) / tasks)

    now = half_width(30, 2)
    assert half_width(halving.tasks, 2) <= now / 2 < half_width(halving.tasks - 1, 2)
    assert half_width(30, halving.responses) <= now / 2 < half_width(30, halving.responses - 1)


def test_where_tasks_differ_no_number_of_responses_halves_the_interval() -> None:
    found = report(rewards(drawn(30, 4, 0.6)))
    assert found.mean.halving.responses is None
    assert found.mean.halving.tasks == 113


def test_rewards_that_are_all_equal_have_no_split_to_show() -> None:
    found = report(rewards(np.full((8, 3), 0.7)))
    assert (found.rewards.within_task, [level.share for level in found.rewards.levels]) == (None, [None, None])
    assert (found.mean.low, found.mean.high, found.mean.effective, found.mean.detectable) == (None, None, None, None)
    assert (found.mean.halving.tasks, found.mean.halving.responses) == (None, None)
