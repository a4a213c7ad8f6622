"""Samples for tests."""

from collections.abc import Sequence

import numpy as np

from jurygraph.studies.disagreement import ComponentSamples


def make_samples(
    values: Sequence[Sequence[float]],
    rewards: Sequence[float] | None = None,
    units: Sequence[str] | None = None,
    steps: Sequence[float] | None = None,
    run: str = "run",
) -> ComponentSamples:
    """Return a sample for each row of components; by default its reward is their mean, and each has its own task."""
    return ComponentSamples(
        run=run,
        components=("accuracy", "format", "steps")[: len(values[0])],
        units=tuple(units or (f"t{place:04}" for place in range(len(values)))),
        rewards=np.array(rewards if rewards is not None else np.mean(values, axis=1)),
        values=np.array(values),
        steps=None if steps is None else np.array(steps, dtype=np.float64),
        left_out={},
    )
