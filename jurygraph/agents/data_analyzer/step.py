"""The input of the analyzer: the rows of one training step's batch."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jurygraph.arrays import Floats, Ints
from jurygraph.errors import InputError

MAX_VALUE = 1e100  # the largest absolute value: sums of squares of larger ones would overflow


class Groups(NamedTuple):
    """Rows in group order: `order` [n], the start of each group in it (`starts` [g]), and the group `sizes` [g]."""

    order: Ints
    starts: Ints
    sizes: Ints


class TrainingStep:
    """The rows of a training step, one per response.

    Args:
        rewards: [n], NaN if a reward failed.
        components: [n] each, by name; NaN if there is no value.
        lengths: [n], at least 0, in any unit.
        groups: [n] ids; the responses to one prompt are a group.

    Omitted columns are not watched. Simulations pass arrays of many steps at once, [..., n], of the same groups.

    Raises:
        InputError: no row, columns of another shape, a value that is infinite or beyond 1e100, a length below 0, or
            groups that are not all strings or all numbers.
    """

    def __init__(
        self,
        rewards: ArrayLike,
        components: Mapping[str, ArrayLike] | None = None,
        lengths: ArrayLike | None = None,
        groups: Sequence[Any] | NDArray[Any] | None = None,
    ) -> None:
        self.rewards = _column("rewards", rewards)
        shape = self.rewards.shape
        named = sorted((components or {}).items())
        self.components = {name: _column(f"component {name!r}", column, shape) for name, column in named}
        self.lengths = None if lengths is None else _column("lengths", lengths, shape)
        self.groups = None if groups is None else _group_rows(np.asarray(groups), self.rows)
        """The rows by their groups; None without groups."""
        if self.lengths is not None and (self.lengths < 0.0).any():
            raise InputError("a step: lengths has a value below 0")

    @property
    def rows(self) -> int:
        return int(self.rewards.shape[-1])


def _group_rows(ids: NDArray[Any], rows: int) -> Groups:
    if ids.shape != (rows,):
        raise InputError(f"a step: groups has shape {ids.shape}; give one id for each of {rows} rows")
    try:
        _, codes, sizes = np.unique(ids, return_inverse=True, return_counts=True)
    except TypeError:
        raise InputError("a step: groups are not all strings or all numbers; give each row the id of one") from None
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
    return Groups(np.argsort(codes, kind="stable"), starts, sizes.astype(np.intp))


def _column(name: str, values: ArrayLike, shape: tuple[int, ...] | None = None) -> Floats:
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"a step: {name} are not all numbers; give NaN where there is none") from None
    if column.ndim == 0 or not column.shape[-1]:
        raise InputError(f"a step: {name} have no row; give one value for each response")
    if shape is not None and column.shape != shape:
        raise InputError(f"a step: {name} has shape {column.shape}, and rewards {shape}; give one value for each row")
    if (np.abs(column) > MAX_VALUE).any():
        advice = "give numbers of another unit, and NaN where there is none"
        raise InputError(f"a step: {name} has a value beyond ±{MAX_VALUE:g}; {advice}")
    return column
