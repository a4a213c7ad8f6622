"""Intervals of Bradley-Terry strengths: from the curvature at the mode, over tasks, and covering in simulations."""

import math

import numpy as np
import pytest
from statsmodels.api import GLM, families

from jurygraph.aggregation.pairwise import bradley_terry, strength_intervals
from jurygraph.errors import PlanError
from jurygraph.inference.strengths import information_errors


def test_errors_equal_those_of_a_logistic_regression() -> None:
    """With next to no prior: the same model by statsmodels, whose covariance of log p is taken relative to the mean."""
    wins = np.array([[0.0, 7.0, 9.0, 4.0], [5.0, 0.0, 8.0, 3.0], [2.0, 5.0, 0.0, 6.0], [3.0, 6.0, 5.0, 0.0]])
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    design = np.array([[(k == i) - (k == j) for k in range(1, 4)] for i, j in pairs], dtype=float)
    counts = np.array([[wins[i, j], wins[j, i]] for i, j in pairs])
    fitted = GLM(counts, design, families.Binomial()).fit(tol=1e-14)
    strength = np.exp([0.0, *fitted.params])
    to_mean = (np.eye(4) - strength / strength.sum())[:, 1:]
    expected = np.sqrt(np.diag(to_mean @ fitted.cov_params() @ to_mean.T))
    found = strength_intervals(wins, 1e-6)
    assert [one.error for one in found] == pytest.approx(expected, rel=1e-5)
    assert [one.value for one in found] == pytest.approx(strength / strength.mean(), rel=1e-5)


def test_the_curvature_is_that_of_the_posterior() -> None:
    """Second differences of the log posterior in log p, with a prior that counts."""
    wins, prior = np.array([[0.0, 3.0, 1.0], [1.0, 0.0, 4.0], [0.0, 2.0, 0.0]]), 0.8

    def log_posterior(log_p: np.ndarray) -> float:
        p = np.exp(log_p)
        return np.sum(wins * np.log(p[:, None] / (p[:, None] + p))) + np.sum(prior * log_p - prior * p)

    mode, step = np.log(bradley_terry(wins, prior).strength), 1e-4 * np.eye(3)
    information = -np.array(
        [
            [sum(a * b * log_posterior(mode + a * x + b * y) for a in (-1, 1) for b in (-1, 1)) / 4e-8 for y in step]
            for x in step
        ]
    )
    to_mean = np.eye(3) - np.exp(mode) / 3.0
    expected = np.sqrt(np.diag(to_mean @ np.linalg.inv(information) @ to_mean.T))
    assert information_errors(np.exp(mode), wins + wins.T, prior) == pytest.approx(expected, rel=1e-4)


def test_over_tasks_the_larger_of_both_errors_counts() -> None:
    """Nine copies of ten comparisons are no more tasks; a response that won everywhere keeps its wide interval."""
    rng = np.random.default_rng(1)
    upper = np.triu(np.ones((3, 3)), 1) > 0
    won = rng.random((10, 3, 3)) < 0.6
    wins = np.where(upper, won, 0.0) + np.where(upper, ~won, 0.0).transpose(0, 2, 1)
    found = strength_intervals(9.0 * wins, 0.9)
    all_wins = 9.0 * wins.sum(axis=0)
    without = np.log([bradley_terry(all_wins - 9.0 * own, 0.9).strength for own in wins])
    changes = without - np.log(bradley_terry(all_wins, 0.9).strength)
    expected = np.sqrt(9 / 10 * np.sum(changes**2, axis=0))
    assert [one.error for one in found] == pytest.approx(expected, rel=1e-9)
    assert all(one.high / one.value == pytest.approx(math.exp(2.2621571628540993 * one.error)) for one in found)
    always = np.zeros((10, 2, 2))
    always[:, 0, 1] = 1.0
    best = strength_intervals(always)[0]
    assert best.error == pytest.approx(information_errors(*_fit(always.sum(axis=0)))[0])


def _fit(wins: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    return bradley_terry(wins).strength, wins + wins.T, 0.1


def test_equal_responses_have_intervals_around_1_and_one_task_has_none() -> None:
    found = strength_intervals(np.full((3, 3), 4.0) - 4.0 * np.eye(3))
    assert all((one.value, one.clusters) == (1.0, 24) and one.low < 1.0 < one.high for one in found)
    assert all(one[1:] == (None, None, None, 1) for one in strength_intervals([[[0.0, 1.0], [0.0, 0.0]]]))


def test_a_wrong_shape_is_refused() -> None:
    with pytest.raises(PlanError, match="wins has shape"):
        strength_intervals([[[0.0, 1.0]]])


@pytest.mark.exhaustive
@pytest.mark.parametrize(("shared", "tasks"), [(0.0, 10), (1.0, 10), (1.0, 30)])
def test_the_interval_covers_also_where_a_task_favours_one_response(shared: float, tasks: int) -> None:
    """150 runs of five responses, strengths from e^-1 to e; `shared` is the spread of a task's own strengths in log p.

    With it, the information alone covers .90.
    """
    rng, covered = np.random.default_rng(2), []
    upper = np.triu(np.ones((5, 5)), 1) > 0
    ability = np.linspace(-1.0, 1.0, 5)
    truth = _marginal_strengths(ability, shared)
    for _ in range(150):
        own = ability + shared * rng.normal(size=(tasks, 5))
        won = rng.random((tasks, 5, 5)) < 1.0 / (1.0 + np.exp(own[:, None, :] - own[:, :, None]))
        wins = np.where(upper, won, 0.0) + np.where(upper, ~won, 0.0).transpose(0, 2, 1)
        covered += [one.low <= p <= one.high for one, p in zip(strength_intervals(wins), truth, strict=True)]
    assert np.mean(covered) >= 0.94


def _marginal_strengths(ability: np.ndarray, shared: float) -> np.ndarray:
    """The strengths that fit the mean chance to win over tasks."""
    own = ability + shared * np.random.default_rng(0).normal(size=(20_000, len(ability)))
    wins = 1e3 * np.mean(1.0 / (1.0 + np.exp(own[:, None, :] - own[:, :, None])), axis=0)
    np.fill_diagonal(wins, 0.0)
    return bradley_terry(wins, 1e-6).strength
