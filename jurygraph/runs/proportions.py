"""Shares of what was counted, each with the interval in which the true share may well lie."""

import math
from typing import Self

from jurygraph.schema.noun import Count, Noun, Unit

_Z = 1.959963984540054
"""The normal distribution's quantile at 0.975."""


class Proportion(Noun):
    """How many of `n` there are, the share, and its 95 % interval; None where nothing was counted."""

    hits: Count
    n: Count
    rate: Unit | None
    low: Unit | None
    high: Unit | None

    @classmethod
    def of(cls, hits: int, n: int) -> Self:
        """`hits` of `n`, 0 <= hits <= n."""
        low, high = wilson(hits, n) if n else (None, None)
        return cls(hits=hits, n=n, rate=hits / n if n else None, low=low, high=high)


def wilson(hits: int, n: int) -> tuple[float, float]:
    """The 95 % score interval (Wilson, 1927) of a share of which `hits` of `n` >= 1 were seen, within [0, 1].

    Where none was seen, or nothing else, it does not end there as the usual interval does: none of 300 is 0 to 1.3 %.
    """
    share, z2 = hits / n, _Z * _Z
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    reach = _Z / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return 0.0 if hits == 0 else max(0.0, middle - reach), 1.0 if hits == n else min(1.0, middle + reach)
