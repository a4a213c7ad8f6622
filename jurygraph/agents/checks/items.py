"""What a check looks at: items with their values, and whether tests hold of one."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from jurygraph.agents import notation
from jurygraph.agents.checks.stated import Column, Test, Tests
from jurygraph.agents.checks.values import compared, is_one_of, parts, same
from jurygraph.agents.facts.lookup import Finding, told
from jurygraph.agents.facts.names import missing, normalised, shown
from jurygraph.sources.complaint import quoted

Open = Literal["unshown", "untold"]
"""Why something is not known. `unshown`: the response claims something that no table has, or leaves out of its own
data what is asked about. `untold`: the tables leave it open, which is no fault of the response."""

Truth = Literal["yes", "no"] | Open


class Item(NamedTuple):
    """One thing that a response names: its values by column, and the finding that they come from, if any.

    Without a finding they are the response's own data. `own` are the columns of a finding that are: all that is known
    where no row was found.
    """

    text: str
    values: Mapping[str, Any]
    finding: Finding | None = None
    lists: Mapping[str, str] = {}
    own: Collection[str] = ()

    @property
    def grounded(self) -> bool:
        """Whether a row was found for it."""
        return self.finding is not None and self.finding["row"] is not None

    def value(self, column: str) -> Any:
        """What is known to stand in the column; None where nothing is."""
        known = self.finding is None or self.grounded or column in self.own
        found = self.values.get(column)
        return found if known and not missing(found) else None

    def lacks(self, column: str) -> Open:
        """Why there is no value in the column, or none to go by."""
        return "untold" if self.grounded and column not in self.own else "unshown"

    def told(self, column: str) -> str:
        """In words what is not known."""
        if self.lacks(column) == "untold":
            return f"{column} of {quoted(self.text)}"
        if self.finding is None or self.grounded:
            return f"{quoted(self.text)} gives no {column} to go by"
        return told(self.finding)


ITSELF = ""
"""Stands among the columns that an item lacks where no table has it."""


class Held(NamedTuple):
    """Whether tests hold of an item, and the columns of which that hangs."""

    truth: Truth
    lacking: Sequence[str] = ()


def holds(tests: Tests, item: Item) -> Held:
    """Whether an item is there and all tests hold of it. One that fails decides, whatever is not known."""
    lacking: list[str] = [] if item.finding is None or item.grounded else [ITSELF]
    for column, test in tests.items():
        found = _lacking(column, test, item)
        if found is None:
            return Held("no")
        lacking += found
    return Held(lacks(item, lacking), lacking) if lacking else Held("yes")


def lacks(item: Item, columns: Iterable[str]) -> Open:
    """Why something that needs these columns is not known: what the response leaves out weighs more."""
    return "unshown" if any(item.lacks(column) == "unshown" for column in columns) else "untold"


def _lacking(column: str, test: Test, item: Item) -> list[str] | None:
    """The columns without which a test cannot be decided; None where it fails whatever they hold."""
    lacking: list[str] = []
    for name, said in test:
        if said is None:
            continue
        needed = [column, said.column] if isinstance(said, Column) else [column]
        unknown = [one for one in needed if item.value(one) is None]
        if not unknown:
            other = item.value(said.column) if isinstance(said, Column) else said
            passes = _OF[name](item.value(column), other, item.lists.get(column))
            if passes is False:
                return None
            unknown = needed if passes is None else []
        lacking += unknown
    return lacking


def _at_least(value: Any, said: Any, _: str | None) -> bool | None:
    order = compared(value, said)
    return None if order is None else order >= 0


def _at_most(value: Any, said: Any, _: str | None) -> bool | None:
    order = compared(value, said)
    return None if order is None else order <= 0


def _names(value: Any, said: Any, _: str | None) -> bool:
    return _stand_in(normalised(said), normalised(value))


@lru_cache(maxsize=1 << 12)
def _stand_in(words: str, text: str) -> bool:
    """The places and days of a group's plans are asked about again and again."""
    return bool(words) and notation.pattern(rf"(?:^|\PL){re.escape(words)}(?:\PL|$)").search(text) is not None


def _between(value: Any, said: Any, separator: str | None) -> bool | None:
    ends = _at_least(value, said[0], separator), _at_most(value, said[1], separator)
    return None if None in ends else all(ends)


def _has(value: Any, said: Any, separator: str | None) -> bool:
    return is_one_of(said, parts(value, separator))


_OF: Mapping[str, Any] = {
    "equals": lambda value, said, _: same(value, said),
    "is_not": lambda value, said, _: not same(value, said),
    "one_of": lambda value, said, _: is_one_of(value, said),
    "none_of": lambda value, said, _: not is_one_of(value, said),
    "has": _has,
    "has_not": lambda value, said, separator: not _has(value, said, separator),
    "names": _names,
    "at_least": _at_least,
    "at_most": _at_most,
    "between": _between,
    "matches": lambda value, said, _: notation.pattern(said).search(shown(value)) is not None,
}
"""Each way of testing, given a value, what is said of it, and what separates the parts of a list; None where the two
cannot be compared."""
