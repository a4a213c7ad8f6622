"""Small seeded streams for tests."""

from collections.abc import Iterator

import numpy as np

from jurygraph.agents.data_analyzer import TrainingStep

ROWS = 64


def normal_steps(seed: int, count: int, shift: float = 0.0, after: int = 0) -> Iterator[TrainingStep]:
    """Yield steps with rewards only; after step `after` their mean is higher by `shift` sd of a step's mean."""
    rng = np.random.default_rng(seed)
    for number in range(1, count + 1):
        moved = shift / np.sqrt(ROWS) if number > after else 0.0
        yield TrainingStep(rng.normal(moved, 1.0, ROWS))


def flat_step(flipped: int = 0, rows: int = 256) -> TrainingStep:
    """Return rewards and a format that are 1 except in `flipped` rows."""
    values = np.ones(rows)
    values[:flipped] = 0.0
    return TrainingStep(values, {"format": values}, groups=np.repeat(np.arange(rows // 8), 8))
