"""Whether a posterior is as often right as it says."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus.repeating import every
from jurygraph.studies.simulate.generator import Codes, stableval
from jurygraph.studies.simulate.setting import CLASSES, Floats, Setting

BINS = 10


class Calibration(NamedTuple):
    """Over all items of all seeds: the expected calibration error, the mean of the greatest posterior, and how often
    the class that it names was right."""

    error: float
    confidence: float
    accuracy: float


def calibration(settings: Mapping[str, Setting], seeds: Sequence[int], jobs: int = 1) -> dict[str, Calibration]:
    """How far the greatest posterior of preset `converged` can be believed, by setting.

    The error is Σ_b n_b/n |right_b - confidence_b| over ten bins of equal width. Bins are filled by all seeds together,
    for an error of few items is mostly chance.
    """
    runs = [(setting, seed) for setting in settings.values() for seed in seeds]
    found = np.array(every(_binned_run, runs, jobs)).reshape(len(settings), len(seeds), 3, BINS).sum(axis=1)
    return {name: _calibration(bins) for name, bins in zip(settings, found, strict=True)}


def calibration_error(posterior: Floats, truth: Codes) -> Calibration:
    """Of a posterior [N,K], from the true classes [N]."""
    return _calibration(_binned(posterior, truth))


def _binned_run(run: tuple[Setting, int]) -> Floats:
    drawn = stableval(*run)
    fitted = consensus.fit(drawn.item, drawn.annotator, drawn.label, n_classes=CLASSES)
    return _binned(fitted.posterior, drawn.truth)


def _binned(posterior: Floats, truth: Codes) -> Floats:
    """Of each bin the number of items, the sum of their greatest posterior, and how many are right, [3,BINS]."""
    greatest = posterior.max(axis=1)
    place = np.minimum((greatest * BINS).astype(np.intp), BINS - 1)
    right = posterior.argmax(axis=1) == truth
    return np.array([np.bincount(place, weights, minlength=BINS) for weights in (None, greatest, right)])


def _calibration(bins: Floats) -> Calibration:
    many, confidence, right = bins
    error = np.abs(confidence - right).sum() / many.sum()
    return Calibration(float(error), float(confidence.sum() / many.sum()), float(right.sum() / many.sum()))
