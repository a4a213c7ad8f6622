"""Rates that few labels and a judge estimate together: how often does the interval contain the true rate?"""

import numpy as np

from jurygraph.inference.corrected import LabelledSample, ppi_mean

_OTHERS = 1_000


def cover_rate(labelled: int, accuracy: float, rate: float, seed: int) -> bool:
    """Return whether the interval of the corrected rate contains it, for independent items and a thousand more."""
    rng = np.random.default_rng((seed, labelled, round(100 * accuracy), round(100 * rate)))
    labels = (rng.random(labelled + _OTHERS) < rate).astype(np.float64)
    predictions = np.where(rng.random(len(labels)) < accuracy, labels, 1.0 - labels)
    tasks = np.arange(len(labels))
    first, rest = slice(None, labelled), slice(labelled, None)
    sample = LabelledSample(
        labels[first], predictions[first], tasks[first], predictions[rest], tasks[rest]
    )
    found = ppi_mean(sample, (0.0, 1.0))
    return (
        found.low is not None and found.high is not None and bool(found.low <= rate <= found.high)
    )
