"""Samples that a test writes down."""

from collections.abc import Sequence

import numpy as np

from jurygraph.studies.disagreement import Samples


def samples(
    values: Sequence[Sequence[float]],
    rewards: Sequence[float] | None = None,
    groups: Sequence[str] | None = None,
    steps: Sequence[float] | None = None,
    run: str = "run",
) -> Samples:
    """One sample for each row of components; its reward is their mean, and its task its own, unless they are given."""
    return Samples(
        run=run,
        components=("accuracy", "format", "steps")[: len(values[0])],
        ids=tuple(f"r{place:04}" for place in range(len(values))),
        groups=tuple(groups or (f"t{place:04}" for place in range(len(values)))),
        rewards=np.array(rewards if rewards is not None else np.mean(values, axis=1)),
        values=np.array(values),
        steps=None if steps is None else np.array(steps, dtype=np.float64),
        left_out={},
    )
