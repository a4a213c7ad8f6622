"""Proportions with their 95 % confidence intervals."""

import math
from typing import Self

from jurygraph.schema.frozen_model import Count, FrozenModel, Unit

_Z = 1.959963984540054
"""The 0.975 quantile of the standard normal distribution."""


class Proportion(FrozenModel):
    """A count out of `n`, the proportion, and its 95 % interval [low, high]; the latter are None where n is 0."""

    hits: Count
    n: Count
    rate: Unit | None
    low: Unit | None
    high: Unit | None

    @classmethod
    def from_counts(cls, hits: int, n: int) -> Self:
        """Return the proportion of `hits` out of `n`, 0 <= hits <= n."""
        low, high = wilson(hits, n) if n else (None, None)
        return cls(hits=hits, n=n, rate=hits / n if n else None, low=low, high=high)


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Return the 95 % score interval (Wilson, 1927) of the proportion of `hits` out of `n` >= 1, within [0, 1].

    Unlike the usual normal interval, it has a positive width for 0 or `n` hits: 0 of 300 gives 0 to 1.3 %.
    """
    share, z2 = hits / n, _Z * _Z
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half_width = _Z / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return 0.0 if hits == 0 else max(0.0, middle - half_width), 1.0 if hits == n else min(1.0, middle + half_width)
