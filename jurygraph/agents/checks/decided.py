"""What came of a check, and what it hangs on that is not known.

What the response made up (there is no such row), or leaves out of its own data, can be anything, so a check that hangs
on it does not hold. What the tables leave open is no fault of the response: a check that hangs on it alone cannot be
decided, and abstains.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jurygraph.agents.checks.items import Held, Item, Truth, lacks


class Decided(NamedTuple):
    """`holds` None: it cannot be decided, and `reason` says what was missing. `at` are the items that it hangs on.

    `share` is how much of what was asked for there surely is.
    """

    holds: bool | None
    share: float
    reason: str
    at: Sequence[Item] = ()


@dataclass
class Unknown:
    """What a measure hangs on and is not known: what the response cannot show, and what the tables do not tell.

    `items` are those that lack something, each once.
    """

    unshown: list[str] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    items: dict[int, Item] = field(default_factory=dict)

    def noted(self, held: Held, item: Item) -> Truth:
        """Whether tests hold of an item; what they lack of it is kept."""
        for column in held.lacking:
            (self.untold if item.lacks(column) == "untold" else self.unshown).append(item.told(column))
        if held.lacking:
            self.items[id(item)] = item
        return held.truth

    def undecided(self, reason: str) -> Decided:
        """What hangs on what the tables do not tell."""
        return Decided(None, 0.0, f"{reason}; the tables do not tell {some(self.untold)}")

    def unproven(self, reason: str, share: float = 0.0) -> Decided:
        """What hangs on what the response cannot show."""
        told = f"{reason}; it cannot be shown, for {some(self.unshown)}"
        return Decided(False, share, told, [*self.items.values()])


def hanging_on(columns: Sequence[str], held: Held, item: Item) -> Held:
    """What hangs on more columns than the tests do."""
    lacking = [*held.lacking, *columns]
    return Held(lacks(item, lacking), lacking) if columns else held


def some(told: Sequence[str], between: str = "; ", most: int = 5) -> str:
    """These, each once, and how many more there are."""
    each = list(dict.fromkeys(told))
    return between.join(each[:most]) + (f"{between}and {len(each) - most} more" if len(each) > most else "")
