"""The result of a check, and the unknown values that it depends on.

A value that the response made up (no such row exists), or omits from its own data, can be anything, so a check that
depends on it does not hold. A value missing in the tables is no fault of the response: a check that depends only on
such values cannot be decided, and abstains.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jurygraph.agents.checks.items import Item, TestResult, Truth, reason_unknown


class CheckResult(NamedTuple):
    """The result of a check. `holds` is None if it cannot be decided; `reason` then names what is missing.

    `share` is the share of the requirement that is surely met. `items` are the items that the result depends on.
    """

    holds: bool | None
    share: float
    reason: str
    items: Sequence[Item] = ()


@dataclass
class UnknownValues:
    """The unknown values that a measure depends on: those the response cannot show, and those the tables do not have.

    `items` are the items that lack a value, each once.
    """

    missing_in_response: list[str] = field(default_factory=list)
    missing_in_tables: list[str] = field(default_factory=list)
    items: dict[int, Item] = field(default_factory=dict)

    def record(self, test_result: TestResult, item: Item) -> Truth:
        """Record the values that tests of an item lack, and return the truth of the tests."""
        for column in test_result.missing_columns:
            (self.missing_in_tables if item.reason_unknown(column) == "untold" else self.missing_in_response).append(
                item.describe_unknown(column)
            )
        if test_result.missing_columns:
            self.items[id(item)] = item
        return test_result.truth

    def undecided_result(self, reason: str) -> CheckResult:
        """Return an undecided result, because of values that the tables do not have."""
        return CheckResult(None, 0.0, f"{reason}; the tables do not tell {join_first(self.missing_in_tables)}")

    def unproven_result(self, reason: str, share: float = 0.0) -> CheckResult:
        """Return a failed result, because of values that the response cannot show."""
        message = f"{reason}; it cannot be shown, for {join_first(self.missing_in_response)}"
        return CheckResult(False, share, message, [*self.items.values()])


def depending_on(columns: Sequence[str], test_result: TestResult, item: Item) -> TestResult:
    """Return a test result that depends on additional columns."""
    lacking = [*test_result.missing_columns, *columns]
    return TestResult(reason_unknown(item, lacking), lacking) if columns else test_result


def join_first(texts: Sequence[str], between: str = "; ", most: int = 5) -> str:
    """Join the texts, each once, and count those beyond the first `most`."""
    unique = list(dict.fromkeys(texts))
    return between.join(unique[:most]) + (f"{between}and {len(unique) - most} more" if len(unique) > most else "")
