"""Cluster bootstrap: whole clusters are drawn with replacement, each with all its members. Seeds are explicit."""

from collections.abc import Iterator, Sequence

import numpy as np

from jurygraph.arrays import Floats, Ints

DRAWS_PER_BATCH = 1_000_000  # limits memory
QUANTILES = (0.025, 0.975)
"""The ends of a 95 % percentile interval."""


def draw_clusters(clusters: int, resamples: int, seed: int | Sequence[int]) -> Iterator[Ints]:
    """Yield the clusters that each resample draws, [b, clusters] for a batch of resamples, by NumPy's PCG64 of `seed`;
    the size of the batches changes none of them."""
    rng = np.random.default_rng(seed)
    batch = max(1, DRAWS_PER_BATCH // clusters)
    for start in range(0, resamples, batch):
        yield rng.integers(clusters, size=(min(batch, resamples - start), clusters))


def mean_interval(
    sums: Floats, sizes: Ints, resamples: int, seed: int | Sequence[int]
) -> tuple[float, float] | tuple[None, None]:
    """Return the 95 % percentile interval of Σ sums / Σ sizes, from the sum and the size of each cluster.

    It is unknown, (None, None), for fewer than two clusters and without resamples.
    """
    if len(sums) < 2 or resamples == 0:
        return None, None
    batches = draw_clusters(len(sums), resamples, seed)
    means = np.concatenate([sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1) for drawn in batches])
    low, high = np.quantile(means, QUANTILES)
    return float(low), float(high)
