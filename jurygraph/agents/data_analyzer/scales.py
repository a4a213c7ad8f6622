"""Scales for testing a series: on each, noise is nearly normal and hardly depends on the level."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jurygraph.arrays import Floats

MIN_RELATIVE_SD = 1e-9  # the least sd, relative to the size of the number: below it differences are rounding errors


class Measure(NamedTuple):
    """One series at one step or at many, [...]: the value for people, and the quantities that are tested.

    `score` is the value on the test scale. `floor` is the least sd of the noise on this scale, from the change that one
    row can cause; `error` is the standard error computed from the step's own rows, 0 if it is not needed.
    """

    value: Floats
    score: Floats
    floor: Floats
    error: Floats


def plain_scale(mean: Floats, spread: Floats, sd: Floats, rows: Floats) -> Measure:
    """Return a mean on its own scale. One row moves it by at most the spread of the rows / n."""
    return _build_measure(mean, mean, spread / rows, sd / np.sqrt(rows))


def logarithm(mean: Floats, spread: Floats, sd: Floats, rows: Floats) -> Measure:
    """Return log(1 + mean), for sizes that are skewed to the right."""
    slope = 1.0 / (1.0 + mean)
    return _build_measure(mean, np.log1p(mean), spread / rows * slope, sd / np.sqrt(rows) * slope)


def share(mean: Floats, spread: Floats, rows: Floats) -> Measure:
    """Return a mean of values in [0, 1] as 2 arcsin √((n m + 3/8) / (n + 3/4)) (Anscombe 1948).

    Near 0 and 1 shares are skewed, and their noise depends on their level; here neither. The floor is the change that
    one row causes by the spread of the rows, or by 1 if all rows are equal: a constant series of 1 has the floor of one
    flip.
    """
    score = _angle(mean, rows)
    step = np.where(spread > 0.0, spread, 1.0) / rows
    up = _angle(np.minimum(mean + step, 1.0), rows)
    down = _angle(np.maximum(mean - step, 0.0), rows)
    return _build_measure(mean, score, np.maximum(up - score, score - down), np.zeros_like(score))


def correlation(r: Floats, rows: Floats) -> Measure:
    """Return Fisher's z = artanh r, whose standard error is about 1/√n for every r up to ±.999."""
    score = np.arctanh(np.clip(r, -0.999, 0.999))
    return _build_measure(r, score, 1.0 / np.sqrt(rows), np.zeros_like(score))


def _angle(mean: Floats, rows: Floats) -> Floats:
    return np.asarray(2.0 * np.arcsin(np.sqrt((rows * mean + 0.375) / (rows + 0.75))))


def _build_measure(value: Floats, score: Floats, floor: Floats, error: Floats) -> Measure:
    return Measure(value, score, np.maximum(floor, MIN_RELATIVE_SD * (1.0 + np.abs(score))), error)


_INVERSES: dict[str, Callable[[float], Any]] = {
    "plain": lambda score: score,
    "share": lambda score: np.sin(np.clip(score, 0.0, np.pi) / 2.0) ** 2,
    "logarithm": np.expm1,
    "correlation": np.tanh,
}


def invert_scale(scale: str, score: float) -> float:
    """Return the value that has this score; for a share, to within 1 / n."""
    return float(_INVERSES[scale](score))
