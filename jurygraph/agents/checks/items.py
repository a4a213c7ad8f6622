"""The items that a check looks at, with their values, and tests of one item."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from jurygraph.agents import notation
from jurygraph.agents.checks.spec import Column, Test, Tests
from jurygraph.agents.facts.lookup import Finding, describe_finding
from jurygraph.agents.facts.values import are_equal, compare, is_missing, is_one_of, normalise, split_list, to_text
from jurygraph.messages import quote

Open = Literal["unshown", "untold"]
"""Why a value is unknown. `unshown`: the response claims something that no table has, or omits the value from its own
data. `untold`: the tables have no value, which is no fault of the response."""

Truth = Literal["yes", "no"] | Open


class ListedItem(NamedTuple):
    """One thing that a response names: its values by column, and the finding that they come from, if any.

    Without a finding the values are the response's own data. `response_columns` are the columns of a finding that come
    from the response: the only known ones if no row was found.
    """

    text: str
    values: Mapping[str, Any]
    finding: Finding | None = None
    lists: Mapping[str, str] = {}
    response_columns: Collection[str] = ()

    @property
    def has_row(self) -> bool:
        return self.finding is not None and self.finding["row"] is not None

    def value(self, column: str) -> Any:
        value = self.values.get(column)
        if is_missing(value):
            return None
        is_known = self.finding is None or self.finding["row"] is not None or column in self.response_columns
        return value if is_known else None

    def reason_unknown(self, column: str) -> Open:
        return "untold" if self.has_row and column not in self.response_columns else "unshown"

    def describe_unknown(self, column: str) -> str:
        if self.reason_unknown(column) == "untold":
            return f"{column} of {quote(self.text)}"
        if self.finding is None or self.has_row:
            return f"{quote(self.text)} gives no {column} to go by"
        return describe_finding(self.finding)


ITEM_ITSELF = ""
"""Marks, among the columns that an item lacks, that no table has the item itself."""


def lacking_columns(tests: Tests, item: ListedItem) -> list[str] | None:
    """Return the columns without which it is unknown if an item exists and passes all tests.

    Return None if it fails regardless of them: a single failed test decides.
    """
    lacking: list[str] = [] if item.finding is None or item.has_row else [ITEM_ITSELF]
    for column, test in tests.items():
        test_lacking = _columns_lacking_for(column, test, item)
        if test_lacking is None:
            return None
        lacking += test_lacking
    return lacking


def truth_without(columns: Sequence[str], item: ListedItem) -> Truth:
    """Return the truth of what an item fulfils unless one of these columns, which it lacks, is in the way."""
    if not columns:
        return "yes"
    return "unshown" if any(item.reason_unknown(column) == "unshown" for column in columns) else "untold"


def _columns_lacking_for(column: str, test: Test, item: ListedItem) -> list[str] | None:
    """Return the columns without which a test cannot be decided; None if the test fails regardless of them."""
    lacking: list[str] = []
    value = item.value(column)
    for name, expected in test.requirements:
        needed = {column: value}
        other = expected
        if isinstance(expected, Column):
            needed[expected.column] = other = item.value(expected.column)
        unknown = [each for each, known in needed.items() if known is None]
        if not unknown:
            passes = _TEST_FUNCTIONS[name](value, other, item.lists.get(column))
            if passes is False:
                return None
            unknown = [] if passes else [*needed]
        lacking += unknown
    return lacking


@lru_cache(maxsize=1 << 12)
def _words_in_text(words: str, text: str) -> bool:
    """Return true if the words occur in the text. Cached, since the places and days of a group's plans recur often."""
    return bool(words) and notation.compile_pattern(rf"(?:^|\PL){re.escape(words)}(?:\PL|$)").search(text) is not None


def _is_ascending(*values: Any) -> bool | None:
    """Return true if no value is less than the one before it; None if two of them cannot be compared."""
    orders = [compare(value, after) for value, after in pairwise(values)]
    return None if None in orders else 1 not in orders


_TEST_FUNCTIONS: Mapping[str, Callable[[Any, Any, str | None], bool | None]] = {
    "equals": lambda value, expected, _: are_equal(value, expected),
    "is_not": lambda value, expected, _: not are_equal(value, expected),
    "one_of": lambda value, expected, _: is_one_of(value, expected),
    "none_of": lambda value, expected, _: not is_one_of(value, expected),
    "has": lambda value, expected, separator: is_one_of(expected, split_list(value, separator)),
    "has_not": lambda value, expected, separator: not is_one_of(expected, split_list(value, separator)),
    "names": lambda value, expected, _: _words_in_text(normalise(expected), normalise(value)),
    "at_least": lambda value, expected, _: _is_ascending(expected, value),
    "at_most": lambda value, expected, _: _is_ascending(value, expected),
    "between": lambda value, expected, _: _is_ascending(expected[0], value, expected[1]),
    "matches": lambda value, expected, _: notation.compile_pattern(expected).search(to_text(value)) is not None,
}
"""The test functions by name. Arguments: a value, the expected value, and the separator of list parts; None means that
the two cannot be compared."""
