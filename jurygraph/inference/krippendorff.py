"""Agreement of several raters beyond chance, on items that not all of them rated: Krippendorff's alpha.

    α = 1 - D_o / D_e        D_o: mean distance of two ratings of the same item
                             D_e: mean distance of any two ratings that have a partner

The distance of two levels at positions p is (p - p')². For `interval` ratings the position is the number itself; for
`ordinal` ones it is the number of ratings below, with half of those at the level (Krippendorff 2011), so it depends on
all ratings. For `nominal` ones the distance of different labels is 1.
"""

import math
from typing import Literal

import numpy as np

from jurygraph.arrays import Floats
from jurygraph.inference.clusters import Estimate, jackknife_interval

AlphaLevel = Literal["nominal", "ordinal", "interval"]
"""What the distance of two ratings means: different or not, the ranks between them, or their difference."""
_CELLS_PER_BATCH = 4_000_000  # limits memory


def alpha(counts: Floats, positions: Floats, level: AlphaLevel) -> float:
    """Return α of items with `counts` [N, V] of ratings at each level, [V] positions in ascending order.

    NaN if no item has two ratings, or all ratings that have a partner are the same.
    """
    paired = counts[counts.sum(axis=1) > 1.0]
    without_any = np.zeros((1, counts.shape[1]))
    return float(_alphas_without(paired, without_any, positions, level)[0])


def alpha_estimate(counts: Floats, positions: Floats, level: AlphaLevel) -> Estimate | None:
    """Return α with its 95 % jackknife interval over the items, cut off at -1 and 1; None where α is NaN.

    The ends are None where α is NaN without one of the items. Arguments as for `alpha`. With fewer than about 30
    items, or a level that hardly anybody gives, the interval is too narrow.
    """
    value = alpha(counts, positions, level)
    if math.isnan(value):
        return None
    paired = counts[counts.sum(axis=1) > 1.0]
    rows = max(1, _CELLS_PER_BATCH // counts.shape[1])
    batches = [paired[start : start + rows] for start in range(0, len(paired), rows)]
    without = np.concatenate([_alphas_without(paired, batch, positions, level) for batch in batches])
    if np.isnan(without).any():
        return Estimate(value, None, None, None, len(paired))
    return jackknife_interval(value, without).within(-1.0, 1.0)


def alpha_of_pairs(tables: Floats, positions: Floats, level: AlphaLevel) -> Floats:
    """Return α [...] of items with two ratings each, NaN where it is undefined.

    `tables` [..., V, V] count how often the first rating of an item has the one level and the second the other; any
    tables at once, such as those without each cluster. Otherwise as `alpha`.
    """
    together = tables + np.swapaxes(tables, -1, -2)
    totals = together.sum(axis=-1)
    number = totals.sum(axis=-1)
    ranks = np.cumsum(totals, axis=-1) - totals / 2.0
    at = ranks if level == "ordinal" else np.broadcast_to(positions, totals.shape)
    distances = (at[..., :, None] - at[..., None, :]) ** 2
    if level == "nominal":
        distances = np.broadcast_to(1.0 - np.eye(len(positions)), together.shape)
    observed = (together * distances).sum(axis=(-1, -2)) * (number - 1.0)
    by_chance = (totals[..., :, None] * totals[..., None, :] * distances).sum(axis=(-1, -2))
    ratio = np.divide(observed, by_chance, out=np.full(number.shape, np.nan), where=by_chance > 0.0)
    return np.asarray(1.0 - ratio)


def _alphas_without(paired: Floats, omitted: Floats, positions: Floats, level: AlphaLevel) -> Floats:
    """Return α of the items `paired` [N, V] without each row of `omitted` [B, V], [B]; NaN where it is undefined."""
    weights = 1.0 / (paired.sum(axis=1) - 1.0)
    # Coincidences: how often two ratings of an item have these levels, each item counted by its number of ratings.
    together = (paired * weights[:, None]).T @ paired - np.diag(weights @ paired)
    totals = paired.sum(axis=0) - omitted
    number = totals.sum(axis=1)
    own_weights = 1.0 / np.maximum(omitted.sum(axis=1) - 1.0, 1.0)
    if level == "nominal":
        own_equal = own_weights * (omitted * (omitted - 1.0)).sum(axis=1)
        observed = number - (np.trace(together) - own_equal)
        by_chance = number * number - (totals * totals).sum(axis=1)
    else:
        ranks = np.cumsum(totals, axis=1) - totals / 2.0
        at = ranks if level == "ordinal" else np.broadcast_to(positions, totals.shape)
        # Centred, so that squares of large numbers lose no digits.
        at = at - (totals * at).sum(axis=1, keepdims=True) / np.maximum(number, 1.0)[:, None]
        squares = (totals * at * at).sum(axis=1)
        own_products = own_weights * ((omitted * at).sum(axis=1) ** 2 - (omitted * at * at).sum(axis=1))
        observed = 2.0 * (squares - ((at @ together * at).sum(axis=1) - own_products))
        by_chance = 2.0 * number * squares
    defined = by_chance > 0.0
    ratio = np.divide(observed * (number - 1.0), by_chance, out=np.full(len(number), np.nan), where=defined)
    return np.asarray(1.0 - ratio)
