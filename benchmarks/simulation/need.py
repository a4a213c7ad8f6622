"""How many labels `study judge --need` asks for, beside how many the interval of the corrected mean then takes.

Items come in tasks whose labels resemble each other, and whole tasks get labels. The judge is right on each item with
one probability. A pilot's labels say how many are needed; the truth is found by drawing labels until the interval of
`ppi_mean` is as narrow as wanted.
"""

from typing import NamedTuple

import numpy as np

from jurygraph.arrays import Floats
from jurygraph.inference.corrected import LabelledSample, needed_label_count, ppi_mean

ITEMS = 10_000
MEAN = 0.37
HALF_WIDTH = 0.02
PILOT = 2_000
_SCALE = (0.0, 1.0)


class NeedDesign(NamedTuple):
    """A judge of an accuracy, on tasks of `size` items whose labels have an intra-class correlation."""

    accuracy: float
    size: int = 1
    icc: float = 0.0

    @property
    def name(self) -> str:
        return f"--need: accuracy {self.accuracy:g}, {self.size} items a task, ICC {self.icc:g}"


DESIGNS = (
    *(NeedDesign(accuracy) for accuracy in (0.6, 0.75, 0.85, 0.9, 0.95)),
    NeedDesign(0.85, 4, 0.5),
)


class NeedRatio(NamedTuple):
    """The mean number of labels that pilots ask for, that number over the one it takes, and the ratio's error."""

    needed: float
    ratio: float
    error: float


def measure_need(design: NeedDesign, samples: int) -> NeedRatio:
    needed = []
    taken = []
    for seed in range(samples):
        labels, predictions = _draw_items(design, seed)
        wanted = needed_label_count(
            _label_first(design, labels, predictions, PILOT), HALF_WIDTH, _SCALE
        )
        needed.append(float("nan") if wanted is None else wanted)
        taken.append(_find_count(design, labels, predictions))
    mean = float(np.mean(taken))
    return NeedRatio(
        float(np.mean(needed)),
        float(np.mean(needed)) / mean,
        float(np.std(needed)) / mean / samples**0.5,
    )


def exact_sample(accuracy: float, labelled: int = 1_000) -> LabelledSample:
    """Return labels and verdicts of independent items with exactly the expected counts, of `ITEMS` items in all."""
    columns = []
    for count in (labelled, ITEMS - labelled):
        labels = (np.arange(count) < round(MEAN * count)).astype(np.float64)
        predictions = labels.copy()
        for of_kind in (labels == 1.0, labels == 0.0):
            wrong = np.flatnonzero(of_kind)[: round((1.0 - accuracy) * int(of_kind.sum()))]
            predictions[wrong] = 1.0 - labels[wrong]
        columns.append((labels, predictions))
    (labels, predictions), (_, others) = columns
    return LabelledSample(
        labels, predictions, np.arange(labelled), others, np.arange(labelled, ITEMS)
    )


def _draw_items(design: NeedDesign, seed: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng((seed, round(100 * design.accuracy), design.size))
    tasks = ITEMS // design.size
    chances = np.full(tasks, MEAN)
    if design.icc:
        spread = 1.0 / design.icc - 1.0
        chances = rng.beta(MEAN * spread, (1.0 - MEAN) * spread, tasks)
    labels = (rng.random(ITEMS) < np.repeat(chances, design.size)).astype(np.float64)
    return labels, np.where(rng.random(ITEMS) < design.accuracy, labels, 1.0 - labels)


def _label_first(
    design: NeedDesign, labels: Floats, predictions: Floats, count: int
) -> LabelledSample:
    """Return the sample whose first items, in whole tasks, are labelled: items are in random order already."""
    count = -(-count // design.size) * design.size
    tasks = np.arange(ITEMS) // design.size
    return LabelledSample(
        labels[:count], predictions[:count], tasks[:count], predictions[count:], tasks[count:]
    )


def _find_count(design: NeedDesign, labels: Floats, predictions: Floats) -> int:
    """Return the least number of labels with which the interval is as narrow as wanted, to 1 in 1,000 items."""
    least, most = design.size * 10, ITEMS
    while most - least > ITEMS // 1_000:
        middle = (least + most) // 2
        estimate = ppi_mean(_label_first(design, labels, predictions, middle), _SCALE)
        assert estimate.low is not None
        assert estimate.high is not None
        if (estimate.high - estimate.low) / 2.0 <= HALF_WIDTH:
            most = middle
        else:
            least = middle
    return most
