"""Judges of few levels whose gates promise a rate of false positives: how often is the true rate above it?

Each level of a judge is given to what people reject with a known probability, so that the true rate of a gate is known
whatever map and threshold the labels lead to. The rates are the worst for a promise: one level more than it allows
exceeds it by a fiftieth.
"""

import numpy as np

from jurygraph.arrays import Floats
from jurygraph.decision.table import apply_calibration
from jurygraph.schema import CalibrationMethod
from jurygraph.studies.calibration import LabelledScores, find_gate_threshold, fit_calibration

RATE = 0.1
_EXCESS = 1.02


def break_promise(
    levels: int,
    tasks: int,
    seed: int,
    method: CalibrationMethod = "platt",
    size: int = 1,
    icc: float = 0.0,
) -> bool:
    """Return whether a gate passes more than `RATE` of what people reject, by the labels of one data set.

    Half of the responses are rejected. Those of a task, `size` of them, resemble each other: with the probability that
    gives rejected ones an intra-class correlation of `icc`, a response has the level of its task.
    """
    rng = np.random.default_rng((seed, levels, tasks, size, round(100 * icc)))
    rejected = _level_shares(levels)
    targets = (rng.random(tasks * size) < 0.5).astype(np.float64)
    of_tasks = np.repeat(rng.random(tasks), size)
    is_shared = rng.random(len(targets)) < np.sqrt(icc)
    places = np.where(is_shared, of_tasks, rng.random(len(targets)))
    # What people accept has the same levels from the other end.
    cuts = np.cumsum(rejected)[:-1]
    level = np.where(
        targets == 1.0, levels - 1 - np.searchsorted(cuts, places), np.searchsorted(cuts, places)
    )
    scores = np.linspace(0.0, 1.0, levels)
    labelled = LabelledScores("q", scores[level], targets, np.repeat(np.arange(tasks), size))
    fitted = fit_calibration(labelled.scores, labelled.targets, method)
    gate = find_gate_threshold(labelled, fitted, RATE)
    if gate is None:
        return False
    return bool(rejected[apply_calibration(scores, fitted) >= gate["threshold"]].sum() > RATE)


def _level_shares(levels: int) -> Floats:
    """Return the share of rejected responses at each level, [levels]: most at the lowest, few at the highest.

    The levels of the upper half have `RATE` · 1.02 together.
    """
    upper = max(1, levels // 2)
    shares = np.empty(levels)
    weights = np.arange(upper, 0, -1, dtype=np.float64)
    shares[levels - upper :] = _EXCESS * RATE * weights / weights.sum()
    lower = np.arange(levels - upper, 0, -1, dtype=np.float64)
    shares[: levels - upper] = (1.0 - _EXCESS * RATE) * lower / lower.sum()
    return shares
