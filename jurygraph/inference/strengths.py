"""Intervals of Bradley-Terry strengths, on the scale of their logarithm, relative to the mean strength.

The information of the posterior at its mode is H = Σ_j n_ij s_ij s_ji + a p_i on the diagonal and -n_ij s_ij s_ji
elsewhere, in log p, with s_ij = p_i / (p_i + p_j). Of the comparisons of one task, some say the same: what tasks differ
by is seen by leaving out each (jackknife), but not where a response won or lost everywhere, since then it does so
without any task, too. So the larger of the two standard errors counts.
"""

import math

import numpy as np

from jurygraph.arrays import Floats
from jurygraph.inference.clusters import Estimate, jackknife_interval, t_quantile


def information_errors(strength: Floats, compared: Floats, prior: float) -> Floats:
    """Return the standard errors of log(p_i / mean p), [n], from strengths p [n] and numbers of comparisons [n, n]."""
    share = strength[:, None] / (strength[:, None] + strength)
    weight = compared * share * share.T
    information = np.diag(weight.sum(axis=1) + prior * strength) - weight
    to_mean = np.eye(len(strength)) - strength / strength.sum()
    variance = np.sum(to_mean.T * np.linalg.solve(information, to_mean.T), axis=0)
    return np.asarray(np.sqrt(np.maximum(0.0, variance)))


def independent_intervals(strength: Floats, compared: Floats, prior: float) -> list[Estimate]:
    """Return each strength with its 95 % interval, for comparisons that are independent; their number is `clusters`."""
    errors = information_errors(strength, compared, prior)
    return [
        _interval(*row, t_quantile(math.inf), round(compared.sum() / 2)) for row in zip(strength, errors, strict=True)
    ]


def intervals_over_tasks(strength: Floats, without: Floats, compared: Floats, prior: float) -> list[Estimate]:
    """Return each strength with its 95 % interval over G tasks, from the strengths without each, [G, n].

    The ends are None for one task.
    """
    tasks = len(without)
    if tasks < 2:
        return [Estimate(float(value), None, None, None, tasks) for value in strength]
    errors = information_errors(strength, compared, prior)
    changed = (jackknife_interval(math.log(value), np.log(own)) for value, own in zip(strength, without.T, strict=True))
    larger = [max(error, one.error or 0.0) for error, one in zip(errors, changed, strict=True)]
    return [_interval(*row, t_quantile(tasks - 1), tasks) for row in zip(strength, larger, strict=True)]


def _interval(value: float, error: float, quantile: float, clusters: int) -> Estimate:
    factor = math.exp(min(quantile * error, 700.0))
    return Estimate(float(value), float(value) / factor, float(value) * factor, float(error), clusters)
