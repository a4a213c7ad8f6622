"""Decide checks of a column's values: what it includes, excludes, or never repeats."""

from collections.abc import Collection, Hashable, Sequence
from typing import Any, NamedTuple

from jurygraph.agents.checks.items import Item, Truth, run_tests
from jurygraph.agents.checks.result import CheckResult, UnknownValues, depending_on, join_first
from jurygraph.agents.checks.spec import Check, Scalar
from jurygraph.agents.checks.values import equality_key, is_one_of, split_list
from jurygraph.agents.facts.names import to_text
from jurygraph.messages import shorten


class _Value(NamedTuple):
    """A value of an item, None if it could be anything, and the truth of counting it."""

    item: Item
    truth: Truth
    value: Any


class _ColumnValues(NamedTuple):
    """The values of a column, and the entries whose value could be anything."""

    values: list[_Value]
    anything: list[_Value]
    unknown: UnknownValues

    def entries_with(self, wanted: Sequence[Scalar], *truths: Truth) -> list[_Value]:
        """Return the entries with a wanted value and one of the truths."""
        return [entry for entry in self.values if entry.truth in truths and is_one_of(entry.value, wanted)]


def decide_column(check: Check, items: Sequence[Item]) -> CheckResult:
    """Decide a check of a column's values."""
    column_values = _read_column(check, items)
    label = f"{check.column} of {check.values}"
    if check.includes is not None:
        return _decide_includes(label, check.includes, column_values)
    if check.excludes is not None:
        return _decide_excludes(label, check.excludes, column_values)
    return _decide_distinct(label, column_values)


def _read_column(check: Check, items: Sequence[Item]) -> _ColumnValues:
    column_values, column = _ColumnValues([], [], UnknownValues()), check.column or ""
    for item in items:
        test_result, value = run_tests(check.where, item), item.value(column)
        if test_result.truth == "no":
            continue
        truth = column_values.unknown.record(depending_on([column] if value is None else [], test_result, item), item)
        if value is None:
            column_values.anything.append(_Value(item, truth, None))
        else:
            column_values.values.extend(_Value(item, truth, part) for part in split_list(value, item.lists.get(column)))
    return column_values


def _decide_includes(label: str, wanted: Sequence[Scalar], column_values: _ColumnValues) -> CheckResult:
    absent = [missing_value for missing_value in wanted if not column_values.entries_with([missing_value], "yes")]
    at = [entry.item for entry in column_values.entries_with(wanted, "yes")]
    if not absent:
        return CheckResult(True, 1.0, f"{label} includes {_quote_values(wanted)}", at)
    share, reason = 1.0 - len(absent) / len(wanted), f"{label} does not include {_quote_values(absent)}"
    anything = any(entry.truth == "untold" for entry in column_values.anything)
    if anything or all(column_values.entries_with([value], "untold") for value in absent):
        return column_values.unknown.undecided_result(reason)
    if column_values.unknown.missing_in_response:
        return column_values.unknown.unproven_result(reason, share)
    return CheckResult(False, share, reason, at)


def _decide_excludes(label: str, barred: Sequence[Scalar], column_values: _ColumnValues) -> CheckResult:
    violations = column_values.entries_with(barred, "yes")
    perhaps = [*column_values.entries_with(barred, "unshown", "untold"), *column_values.anything]
    if not violations:
        return _decide_unless_open(
            f"{label} includes none of {_quote_values(barred)}",
            [entry.truth for entry in perhaps],
            column_values.unknown,
        )
    violating_ids = {id(entry.item) for entry in (*violations, *perhaps)}
    items = {id(entry.item) for entry in column_values.values if entry.truth == "yes"} | violating_ids
    reason = f"{label} includes {_quote_values([entry.value for entry in violations])}"
    return CheckResult(False, 1.0 - len(violating_ids) / len(items), reason, [entry.item for entry in violations])


def _decide_distinct(label: str, column_values: _ColumnValues) -> CheckResult:
    entries_by_value: dict[Hashable, list[_Value]] = {}
    for entry in column_values.values:
        entries_by_value.setdefault(equality_key(entry.value), []).append(entry)
    repeated = [entries for entries in entries_by_value.values() if len(entries) > 1]
    repeats = [entry for entries in repeated for entry in [each for each in entries if each.truth == "yes"][1:]]
    if not repeats:
        perhaps = [*map(_open_truth, repeated), *(entry.truth for entry in column_values.anything)]
        return _decide_unless_open(f"{label} never repeats", perhaps, column_values.unknown)
    different = sum(any(entry.truth == "yes" for entry in entries) for entries in entries_by_value.values())
    all_ = sum(entry.truth == "yes" for entry in column_values.values) + sum(
        entry.truth != "yes" for entries in repeated for entry in entries
    )
    reason = f"{label} repeats {_quote_values([entry.value for entry in repeats])}"
    return CheckResult(
        False, 0.0 if column_values.anything else different / all_, reason, [entry.item for entry in repeats]
    )


def _open_truth(entries: Sequence[_Value]) -> Truth:
    """Return why it is unknown if a value is repeated."""
    return "unshown" if sum(entry.truth != "untold" for entry in entries) > 1 else "untold"


def _decide_unless_open(reason: str, open_: Collection[Truth], unknown: UnknownValues) -> CheckResult:
    """Return a decision that holds unless an unknown value breaks it."""
    if "unshown" in open_:
        return unknown.unproven_result(reason)
    return unknown.undecided_result(reason) if "untold" in open_ else CheckResult(True, 1.0, reason)


def _quote_values(values: Sequence[Any]) -> str:
    return join_first([shorten(to_text(value)) for value in values], ", ", 10)
