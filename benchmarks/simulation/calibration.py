"""Calibration of a posterior: how often the most probable class is right."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.simulation.processes import run_each
from jurygraph.aggregation import consensus
from jurygraph.arrays import Floats, Ints
from jurygraph.studies.simulate import CLASS_COUNT, SimulationSetting, stableval

BINS = 10


class Calibration(NamedTuple):
    """Over all items of all seeds: expected calibration error, mean of the greatest posterior, and accuracy of the
    class it names.
    """

    error: float
    confidence: float
    accuracy: float


def measure_calibration(
    settings: Mapping[str, SimulationSetting], seeds: Sequence[int], jobs: int = 1
) -> dict[str, Calibration]:
    """Return the calibration of the greatest posterior of preset `converged`, by setting.

    The error is Σ_b n_b/n |right_b - confidence_b| over ten bins of equal width. All seeds share the bins, because the
    error of few items is mostly chance.
    """
    runs = [(setting, seed) for setting in settings.values() for seed in seeds]
    bins_by_setting = (
        np.array(run_each(_bin_run, runs, jobs))
        .reshape(len(settings), len(seeds), 3, BINS)
        .sum(axis=1)
    )
    return {name: _from_bins(bins) for name, bins in zip(settings, bins_by_setting, strict=True)}


def _bin_run(run: tuple[SimulationSetting, int]) -> Floats:
    simulated = stableval(*run)
    fitted = consensus.fit(
        simulated.item, simulated.annotator, simulated.label, n_classes=CLASS_COUNT
    )
    return _bin_posterior(fitted.posterior, simulated.truth)


def _bin_posterior(posterior: Floats, truth: Ints) -> Floats:
    """Return per bin the number of items, the sum of their greatest posterior, and the number right, [3,BINS]."""
    greatest = posterior.max(axis=1)
    bin_index = np.minimum((greatest * BINS).astype(np.intp), BINS - 1)
    right = posterior.argmax(axis=1) == truth
    return np.array(
        [np.bincount(bin_index, weights, minlength=BINS) for weights in (None, greatest, right)]
    )


def _from_bins(bins: Floats) -> Calibration:
    counts, confidence, right = bins
    error = np.abs(confidence - right).sum() / counts.sum()
    return Calibration(
        float(error), float(confidence.sum() / counts.sum()), float(right.sum() / counts.sum())
    )
