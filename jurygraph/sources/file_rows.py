"""The rows of a file of labels, ratings or texts, each with its place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Generic, TypeVar

from jurygraph.schema import FrozenModel

N = TypeVar("N", bound=FrozenModel)

NameByField = Mapping[str, str]
"""By the fields of a row, the columns that they are read from, or the options that name these."""
NO_NAMES: NameByField = MappingProxyType({})


@dataclass(frozen=True)
class FileRows(Generic[N]):
    """The rows of a file, in order, each with its place: "line 7", or "row 7" if there are no lines.

    `columns` maps fields to the columns they are read from. `unread_columns` are the columns that are not used, each
    with a hint to the name that may have been meant. `empty` is the number of rows that were left out, for lack of a
    value.
    """

    path: str
    rows: tuple[tuple[str, N], ...]
    columns: NameByField = field(default_factory=dict)
    unread_columns: Mapping[str, str | None] = field(default_factory=dict)
    empty: int = 0

    @property
    def name(self) -> str:
        return Path(self.path).name
