"""Simulated differences and hits of tasks whose responses belong together, with an exact intra-class correlation (ICC).

Two runs, A and B, score the same responses. Without a shift they are exchangeable, so that the true difference is 0:
then a test must reject no more often than its level.
"""

import math
from typing import Literal, NamedTuple, get_args

import numpy as np

from jurygraph.arrays import Floats

Kind = Literal["normal", "binary", "rare binary", "skewed", "skewed difference"]
"""normal: normal differences of variance 1.

binary: decisions of A and B, met with probability 0.5; in "rare binary" with 0.05.
skewed: rewards of A and B are lognormal (skewness 6.2), their differences symmetric with a heavy tail.
skewed difference: the differences themselves are lognormal less their mean, as if one run changed a few tasks much.
"""
KINDS = get_args(Kind)
CHANCES = {"binary": 0.5, "rare binary": 0.05}
SIGMA = 1.0
"""Of the logarithms of the lognormal: skewness 6.2, excess kurtosis 111."""


class Design(NamedTuple):
    """Tasks, responses of each, and their intra-class correlation, below 1."""

    tasks: int
    responses: int
    icc: float

    def __str__(self) -> str:
        return f"{self.tasks} x {self.responses}, ICC {self.icc:g}"


def differences(
    kind: Kind, design: Design, samples: int, shift: float, rng: np.random.Generator
) -> Floats:
    """Return B - A for each response, [samples, tasks, responses], whose expected value is `shift`."""
    if kind == "normal":
        return _correlated(design, design.icc, samples, rng) + shift
    if kind == "skewed difference":
        return _lognormal(design, samples, rng) - math.exp(SIGMA * SIGMA / 2) + shift
    if kind == "skewed":
        return _lognormal(design, samples, rng) - _lognormal(design, samples, rng) + shift
    p = CHANCES[kind]
    return decisions(design, p + shift, samples, rng) - decisions(design, p, samples, rng)


def decisions(design: Design, p: float, samples: int, rng: np.random.Generator) -> Floats:
    """Return hits, 0 or 1, [samples, tasks, responses]: beta-binomial, each with probability `p`."""
    tasks, responses, icc = design
    chances = np.full((samples, tasks), p) if icc == 0.0 else _beta(p, icc, (samples, tasks), rng)
    return (rng.random((samples, tasks, responses)) < chances[:, :, None]).astype(np.float64)


def _beta(p: float, icc: float, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    return rng.beta(p * (1 / icc - 1), (1 - p) * (1 / icc - 1), shape)


def _correlated(design: Design, icc: float, samples: int, rng: np.random.Generator) -> Floats:
    tasks, responses, _ = design
    of_tasks = math.sqrt(icc) * rng.normal(size=(samples, tasks, 1))
    return np.asarray(of_tasks + math.sqrt(1 - icc) * rng.normal(size=(samples, tasks, responses)))


def _lognormal(design: Design, samples: int, rng: np.random.Generator) -> Floats:
    """Return lognormal numbers: the correlation of their logarithms is that which gives them the design's ICC."""
    of_logarithms = math.log1p(design.icc * math.expm1(SIGMA * SIGMA)) / (SIGMA * SIGMA)
    return np.asarray(np.exp(SIGMA * _correlated(design, of_logarithms, samples, rng)))
