"""The evaluators that decide stakeholders' constraints by the task's checks, and look up the preferences collected.

A check is about a response's items: bounds, columns, how many there are, which share passes, what they add up to.

A value that the response made up (no such row exists), or omits from its own data, can be anything, so a check that
depends on it does not hold. A value missing in the tables is no fault of the response: a check that depends only on
such values cannot be decided, and abstains. So every check is a measure with a bound, taken in four worlds: what the
response cannot show counts or not, and what the tables do not tell counts or not."""

import inspect
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from itertools import chain, product
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from pydantic import JsonValue

from jurygraph.agents import notation
from jurygraph.agents.checks.spec import (
    Check,
    Column,
    Scalar,
    TermSpec,
    TestsByColumn,
    find_contradictions,
)
from jurygraph.agents.facts.evaluators import (
    CLAIMS_MATERIAL_NAME,
    FactFinding,
    Facts,
    describe_finding,
    get_claim_findings,
    load_facts,
    make_claim_evidence,
)
from jurygraph.agents.facts.tables import (
    RowValues,
    are_equal,
    compare_values,
    equality_key,
    is_missing,
    is_one_of,
    normalise_text,
    parse_number,
    split_list,
    value_to_text,
)
from jurygraph.agents.functions import source_version
from jurygraph.agents.registry import import_objects_by_name
from jurygraph.agents.roles import CodeEvaluator, Evaluator, EvaluatorAnswer, EvaluatorInput
from jurygraph.errors import PlanError
from jurygraph.messages import Problem, did_you_mean, list_first, quote, shorten, validate
from jurygraph.schema import (
    Constraint,
    Evidence,
    Question,
    Stakeholder,
    TaskView,
    Verdict,
)
from jurygraph.schema.frozen_model import EMPTY_OBJECT, ParamsModel, RawParams

UnknownTestResult = Literal["unshown", "untold"]
"""Why a value is unknown. `unshown`: the response claims something that no table has, or omits the value from its own
data. `untold`: the tables have no value, which is no fault of the response."""

TestResult = Literal["yes", "no"] | UnknownTestResult
_MISSING_ITEM_MARKER = ""
"""Marks, among the columns that an item lacks, that no table has the item itself."""


class ListedItem(NamedTuple):
    """One thing that a response names: its values by column, and the finding that they come from, if any.

    Without a finding the values are the response's own data. Of a finding without a row only its own columns, which
    come from the response, are known.
    """

    text: str
    values: RowValues
    finding: FactFinding | None = None
    lists: Mapping[str, str] = {}

    @property
    def has_table_row(self) -> bool:
        return self.finding is not None and self.finding["row"] is not None

    def value(self, column: str) -> Any:
        is_column_known = (
            self.finding is None or self.has_table_row or column in self.finding["own"]
        )
        value = self.values.get(column)
        return value if is_column_known and not is_missing(value) else None

    def number(self, operand: str | float) -> float | None:
        """Return an operand, or the number in that column; negative ones count as unknown."""
        result = parse_number(self.value(operand) if isinstance(operand, str) else operand)
        return float(result) if result is not None and result >= 0 else None

    def classify_unknown_value(self, column: str) -> UnknownTestResult:
        if self.finding is None or not self.has_table_row or column in self.finding["own"]:
            return "unshown"
        return "untold"

    def describe_unknown_value(self, column: str) -> str:
        if self.classify_unknown_value(column) == "untold":
            return f"{column} of {quote(self.text)}"
        if self.finding is None or self.has_table_row:
            return f"{quote(self.text)} gives no {column} to go by"
        return describe_finding(self.finding)


ListedItems = Sequence[ListedItem]


class CheckResult(NamedTuple):
    """The result of a check. `holds` is None if it cannot be decided; `reason` then names what is missing.

    `share` is the share of the requirement that is surely met. `items` are the items that the result depends on.
    """

    holds: bool | None
    share: float
    reason: str
    items: ListedItems = ()


def _join_first_texts(texts: Sequence[str], separator: str = "; ", max_texts: int = 5) -> str:
    return separator.join(list_first([*dict.fromkeys(texts)], max_texts))


def _find_lacking_columns(tests: TestsByColumn, item: ListedItem) -> list[str] | None:
    """Return the columns without which it is unknown if an item exists and passes all tests.

    Return None if it fails regardless of them: a single failed test decides.
    """
    lacking_columns = [] if item.finding is None or item.has_table_row else [_MISSING_ITEM_MARKER]
    for column, test in tests.items():
        for name, expected in test.requirements:
            needed_values = {column: item.value(column)}
            expected_value = expected
            if isinstance(expected, Column):
                needed_values[expected.column] = expected_value = item.value(expected.column)
            undecided_columns = [key for key, value in needed_values.items() if value is None]
            if not undecided_columns:
                value = needed_values[column]
                if name in ("has", "has_not"):
                    value = split_list(value, item.lists.get(column))
                is_passing = _TEST_FUNCTION_BY_NAME[name](value, expected_value)
                if is_passing is False:
                    return None
                undecided_columns = [] if is_passing else [*needed_values]
            lacking_columns += undecided_columns
    return lacking_columns


@lru_cache(maxsize=1 << 12)
def _contains_words(words: str, text: str) -> bool:
    """Return true if the words occur in the text. Cached, since the places and days of a group's plans recur often."""
    pattern = notation.compile_pattern(rf"(?:^|\PL){re.escape(words)}(?:\PL|$)")
    return words != "" and pattern.search(text) is not None


def _is_at_most(value: Any, other: Any) -> bool | None:
    comparison = compare_values(value, other)
    return None if comparison is None else comparison <= 0


_TEST_FUNCTION_BY_NAME: Mapping[str, Callable[[Any, Any], bool | None]] = {
    "equals": are_equal,
    "is_not": lambda value, expected: not are_equal(value, expected),
    "one_of": is_one_of,
    "none_of": lambda value, expected: not is_one_of(value, expected),
    "has": lambda parts, expected: is_one_of(expected, parts),
    "has_not": lambda parts, expected: not is_one_of(expected, parts),
    "names": lambda value, expected: _contains_words(
        normalise_text(expected), normalise_text(value)
    ),
    "at_least": lambda value, expected: _is_at_most(expected, value),
    "at_most": _is_at_most,
    "matches": lambda value, expected: (
        notation.compile_pattern(expected).search(value_to_text(value)) is not None
    ),
}
"""The test functions by name. Arguments: a value, or the parts of a list, and the expected value; None means that the
two cannot be compared."""


ListedItemsByKind = Mapping[str, ListedItems]
CountingRule = Mapping[TestResult, bool]
"""Says for each truth if what has it counts: "yes" does, "no" does not, and unknown ones do in some possible worlds."""

MeasureFunction = Callable[[CountingRule], float | None]
"""A function that computes the measure, given what counts. None if there is nothing to measure, which satisfies any
bound. Counting more never makes it smaller."""

_Interval = tuple[float, float]
"""The least and greatest value of a number."""

_ROUNDING_TOLERANCE = 1e-9


class _CheckReasons(NamedTuple):
    """The reasons for a check that holds, that does not, and that depends on unknown values."""

    holds: str
    fails: str
    depends: str


_PossibleMeasures = Sequence[float | None]
"""A measure in four worlds: two in which unshown values do not count, then two in which they do; in the second of
either two, untold ones count."""


class UnknownValues:
    """The unknown values that a measure depends on: the response cannot show them, or the tables do not have them."""

    def __init__(self) -> None:
        self._unknown: list[tuple[ListedItem, str]] = []

    def test_item(
        self, tests: TestsByColumn, item: ListedItem, operands: Sequence[str] = ()
    ) -> TestResult:
        """Return whether an item exists and passes all tests; record the values that it lacks for that.

        `operands` are columns that it lacks for what is to be measured.
        """
        lacking_columns = _find_lacking_columns(tests, item)
        if lacking_columns is None:
            return "no"
        lacking_columns += operands
        self._unknown += ((item, column) for column in lacking_columns)
        if not lacking_columns:
            return "yes"
        is_value_unshown = any(
            item.classify_unknown_value(column) == "unshown" for column in lacking_columns
        )
        return "unshown" if is_value_unshown else "untold"

    def measure(self, compute_measure: MeasureFunction) -> _PossibleMeasures:
        return [
            compute_measure({"yes": True, "no": False, "unshown": unshown, "untold": untold})
            for unshown, untold in product((False, True), repeat=2)
        ]

    def conclude(
        self,
        possible_measures: _PossibleMeasures,
        bound_interval: _Interval,
        reasons: _CheckReasons,
        items: ListedItems,
        *,
        share: float,
        unproven_share: float = 0.0,
    ) -> CheckResult:
        """Conclude from a measure in all worlds. Unshown values count as the worst case.

        `share` is the share of the requirement that is met if none of the worlds meets it; `unproven_share` is that
        which the known values show.
        """
        sides = [_compare_with_interval(value, bound_interval) for value in possible_measures]
        if set(sides) == {0}:
            return CheckResult(True, 1.0, reasons.holds, items)
        if set(sides) in _SIDE_SETS_OUTSIDE_BOUND:
            return CheckResult(False, share, reasons.fails, items)
        # Whatever the tables do not tell, what the response does not show may break it: showing less must gain nothing.
        if any(set(half) in _SIDE_SETS_OUTSIDE_BOUND for half in (sides[:2], sides[2:])):
            unshown = self._describe_unknown_values("unshown")
            message = f"{reasons.depends}; it cannot be shown, for {unshown}"
            unknown_items = {id(item): item for item, _ in self._unknown}
            return CheckResult(False, unproven_share, message, [*unknown_items.values()])
        untold = self._describe_unknown_values("untold")
        return CheckResult(None, 0.0, f"{reasons.depends}; the tables do not tell {untold}")

    def _describe_unknown_values(self, unknown_value_kind: UnknownTestResult) -> str:
        descriptions = [
            item.describe_unknown_value(column)
            for item, column in self._unknown
            if item.classify_unknown_value(column) == unknown_value_kind
        ]
        return _join_first_texts(descriptions)


def decide_check(check: Check, items: ListedItemsByKind) -> CheckResult:
    """Decide a check that measures items. `items` contains every source that the check names."""
    if check.values is not None:
        return _decide_values_check(check, items[check.values])
    if check.share is not None:
        return _decide_item_share_check(check, items[check.share])
    if check.count is not None:
        return _decide_count_check(check, items[check.count])
    return _decide_sum_check(check, items)


def _decide_count_check(check: Check, items: ListedItems) -> CheckResult:
    unknown_values = UnknownValues()
    entries = [(item, unknown_values.test_item(check.where, item), 1.0) for item in items]
    return _decide_total_check(check, entries, f"the number of {check.count}", unknown_values)


def _decide_item_share_check(check: Check, items: ListedItems) -> CheckResult:
    if not items:
        return CheckResult(False, 0.0, f"the response names no {check.share}")
    unknown_values = UnknownValues()
    test_results = []
    for item in items:
        among_test_result = unknown_values.test_item(check.among, item)
        if among_test_result != "no":
            test_results.append(
                (item, among_test_result, unknown_values.test_item(check.where, item))
            )
    if not test_results:
        return CheckResult(True, 1.0, f"none of the {check.share} is of that kind")

    def share(counting_rule: CountingRule) -> float | None:
        """Count an item that is only perhaps `among` if that moves the share: up if unknown values add, else down."""
        pass_flags = [
            counting_rule[test_result]
            for _, among_test_result, test_result in test_results
            if among_test_result == "yes"
            or counting_rule[test_result] == counting_rule[among_test_result]
        ]
        return sum(pass_flags) / len(pass_flags) if pass_flags else None

    passing_items = [item for item, _, test_result in test_results if test_result == "yes"]
    failing_items = [item for item, _, test_result in test_results if test_result == "no"]
    return _decide_bounded_check(
        check,
        share,
        f"the share of {check.share} that pass",
        unknown_values,
        failing_items or passing_items,
    )


def _decide_sum_check(check: Check, items: ListedItemsByKind) -> CheckResult:
    terms = check.sum or ()
    if not any(items[term.of] for term in terms):
        missing_kinds = " and no ".join(dict.fromkeys(term.of for term in terms))
        return CheckResult(False, 0.0, f"the response names no {missing_kinds}")
    unknown_values = UnknownValues()
    entries = []
    for term in terms:
        for item in items[term.of]:
            price, missing_operands = _read_price(term, item)
            test_result = unknown_values.test_item(term.where, item, missing_operands)
            entries.append((item, test_result, price))
    label = f"the sum per {value_to_text(check.per)}" if check.per else "the sum"
    return _decide_total_check(check, entries, label, unknown_values)


def _decide_total_check(
    check: Check,
    entries: Sequence[tuple[ListedItem, TestResult, float]],
    label: str,
    unknown_values: UnknownValues,
) -> CheckResult:
    """Decide a bound on the sum of numbers, each with its item and the truth of counting it."""
    divisor = check.per or 1.0

    def compute_sum(counting_rule: CountingRule) -> float:
        prices = [price for _, test_result, price in entries if counting_rule[test_result]]
        try:
            return math.fsum(prices) / divisor  # the same in every order
        except OverflowError:
            return math.inf

    items_by_id = {id(item): item for item, test_result, _ in entries if test_result == "yes"}
    return _decide_bounded_check(check, compute_sum, label, unknown_values, [*items_by_id.values()])


def _read_price(term: TermSpec, item: ListedItem) -> tuple[float, Sequence[str]]:
    operands = (term.column, term.times or 1.0, term.places)
    number_by_operand = {operand: item.number(operand) for operand in operands}
    missing_operands = [
        str(operand) for operand, number in number_by_operand.items() if number is None
    ]
    if missing_operands:
        return math.inf, missing_operands
    price, multiplier, unit_capacity = (number_by_operand[operand] or 0.0 for operand in operands)
    if term.people is None:
        return price * multiplier, ()
    unit_count = term.people / unit_capacity if unit_capacity > 0 else math.inf
    if not math.isfinite(unit_count):
        return math.inf, [str(term.places)]
    return price * multiplier * math.ceil(unit_count), ()


def _decide_bounded_check(
    check: Check,
    compute_measure: MeasureFunction,
    label: str,
    unknown_values: UnknownValues,
    items: ListedItems,
) -> CheckResult:
    possible_measures = unknown_values.measure(compute_measure)
    values = [value for value in possible_measures if value is not None]
    lowest, highest = min(values), max(values)
    result = f"{label} is {_describe_range(round(lowest, 6), round(highest, 6))}"
    bound_text = _describe_range(*check.bound_interval)
    reasons = _CheckReasons(
        f"{result}, as asked",
        f"{result}, not {bound_text}",
        f"{result}, and {bound_text} is asked for",
    )
    share = _measure_closeness_to_bound(lowest, highest, check.bound_interval)
    return unknown_values.conclude(
        possible_measures, check.bound_interval, reasons, items, share=share
    )


_SIDE_SETS_OUTSIDE_BOUND = ({-1}, {1})
"""What `_compare_with_interval` gives where values all lie on the same side of a bound, and so break it however they
are."""


def _compare_with_interval(value: float | None, bound_interval: _Interval) -> int:
    """Return -1 below the bound, 1 above it, and else 0; where there is no value, nothing breaks the bound."""
    if value is None:
        return 0
    low, high = bound_interval
    if value < low - _ROUNDING_TOLERANCE * max(1.0, abs(low)):
        return -1
    return 0 if value <= high + _ROUNDING_TOLERANCE * max(1.0, abs(high)) else 1


def _measure_closeness_to_bound(lowest: float, highest: float, bound_interval: _Interval) -> float:
    """Return the closeness to the bound in [0, 1]: the share of the minimum, or 1 minus the relative excess."""
    low, high = bound_interval
    if highest > high:
        return max(0.0, 1.0 - (highest - high) / high) if high > 0 and highest < math.inf else 0.0
    return lowest / low if low > 0 else 1.0


def _describe_range(low: float, high: float) -> str:
    if low == high:
        return value_to_text(low)
    if high == math.inf:
        return f"{value_to_text(low)} or more"
    if low == -math.inf:
        return f"{value_to_text(high)} or less"
    return f"{value_to_text(low)} to {value_to_text(high)}"


class _ItemValue(NamedTuple):
    """A value of an item, the truth of counting it, and whether the value is unknown and so could be any."""

    item: ListedItem
    test_result: TestResult
    value: Any
    is_unknown: bool


def _decide_values_check(check: Check, items: ListedItems) -> CheckResult:
    unknown_values = UnknownValues()
    column = check.column or ""
    values = []
    for item in items:
        value = item.value(column)
        test_result = unknown_values.test_item(
            check.where, item, () if value is not None else (column,)
        )
        if test_result != "no":
            parts = [None] if value is None else split_list(value, item.lists.get(column))
            values += [_ItemValue(item, test_result, part, value is None) for part in parts]
    label = f"{column} of {check.values}"
    if check.includes is not None:
        return _decide_includes_check(label, check.includes, values, unknown_values)
    if check.excludes is not None:
        return _decide_excludes_check(label, check.excludes, values, unknown_values)
    return _decide_distinct_check(label, values, unknown_values)


def _decide_includes_check(
    label: str,
    required_values: Sequence[Scalar],
    values: Sequence[_ItemValue],
    unknown_values: UnknownValues,
) -> CheckResult:
    def count_included_values(counting_rule: CountingRule) -> float:
        entries = [entry for entry in values if counting_rule[entry.test_result]]
        return sum(
            any(entry.is_unknown or are_equal(entry.value, value) for entry in entries)
            for value in required_values
        )

    found_entries = [
        entry
        for entry in values
        if entry.test_result == "yes" and is_one_of(entry.value, required_values)
    ]
    found_values = [entry.value for entry in found_entries]
    missing_values = [value for value in required_values if not is_one_of(value, found_values)]
    failure_text = f"{label} does not include {_quote_values(missing_values)}"
    reasons = _CheckReasons(
        f"{label} includes {_quote_values(required_values)}", failure_text, failure_text
    )
    share = 1.0 - len(missing_values) / len(required_values)
    return unknown_values.conclude(
        unknown_values.measure(count_included_values),
        (len(required_values), math.inf),
        reasons,
        [entry.item for entry in found_entries],
        share=share,
        unproven_share=share,
    )


def _decide_excludes_check(
    label: str,
    barred_values: Sequence[Scalar],
    values: Sequence[_ItemValue],
    unknown_values: UnknownValues,
) -> CheckResult:
    possible_violations = [
        entry for entry in values if entry.is_unknown or is_one_of(entry.value, barred_values)
    ]

    def count_barred(counting_rule: CountingRule) -> float:
        return sum(counting_rule[entry.test_result] for entry in possible_violations)

    barred_item_ids = {id(entry.item) for entry in possible_violations}
    counted_item_ids = {id(entry.item) for entry in values if entry.test_result == "yes"}
    counted_item_ids |= barred_item_ids
    return _decide_violations(
        f"{label} includes none of {_quote_values(barred_values)}",
        f"{label} includes",
        [entry for entry in possible_violations if entry.test_result == "yes"],
        count_barred,
        unknown_values,
        1.0 - len(barred_item_ids) / max(1, len(counted_item_ids)),
    )


def _decide_distinct_check(
    label: str, values: Sequence[_ItemValue], unknown_values: UnknownValues
) -> CheckResult:
    keyed_entries = [
        (None if entry.is_unknown else equality_key(entry.value), entry) for entry in values
    ]

    def count_repeats(counting_rule: CountingRule) -> float:
        counted_keys = [key for key, entry in keyed_entries if counting_rule[entry.test_result]]
        # Values that could be any are repeats at worst, so None is not among the different ones.
        return len(counted_keys) - len(set(counted_keys) - {None})

    repeated_entries = []
    distinct_keys = set()
    for key, entry in keyed_entries:
        if entry.test_result == "yes":
            if key in distinct_keys:
                repeated_entries.append(entry)
            distinct_keys.add(key)
    has_unknown_values = any(entry.is_unknown for entry in values)
    return _decide_violations(
        f"{label} never repeats",
        f"{label} repeats",
        repeated_entries,
        count_repeats,
        unknown_values,
        0.0 if has_unknown_values else len(distinct_keys) / max(1, len(values)),
    )


def _decide_violations(
    success_text: str,
    failure_text: str,
    violations: Sequence[_ItemValue],
    count_violations: MeasureFunction,
    unknown_values: UnknownValues,
    share: float,
) -> CheckResult:
    """Decide a check that no value may violate; the reason of a failure ends with the values that surely do."""
    violating_values = _quote_values([entry.value for entry in violations])
    return unknown_values.conclude(
        unknown_values.measure(count_violations),
        (-math.inf, 0.0),
        _CheckReasons(success_text, f"{failure_text} {violating_values}", success_text),
        [entry.item for entry in violations],
        share=share,
    )


def _quote_values(values: Sequence[Any]) -> str:
    return _join_first_texts([shorten(value_to_text(value)) for value in values], ", ", 10)


COLLECTED_SUBJECT_PREFIX = "collected"
_PREFERENCES_KEY = "preferences"


class Constraints(Evaluator):
    """Decide each constraint of a stakeholder by its `check`.

    A constraint without one abstains, unless another evaluator, such as `preferences`, has a question about it.
    """

    class Params(ParamsModel):
        functions: dict[str, str] = EMPTY_OBJECT
        """Python functions (task, response, **params) by the names that checks use for them, each as
        package.module.function: a task is data, so it cannot name code by itself."""

    name = "checks.constraints"
    audience = "stakeholder"
    reads_data = True
    needs = (CLAIMS_MATERIAL_NAME,)
    bounds_its_time = True

    settings: Params

    def _set_up_from_settings(self) -> None:
        self._functions = import_objects_by_name(
            "checks.constraints: params.functions",
            self.settings.functions,
            "__call__",
            "a function",
        )
        functions = [self._functions[name] for name in sorted(self._functions)]
        self.version = " ".join(["1", *map(source_version, functions)])
        self.runs_inline = not self._functions  # functions of the config may be slow

    def questions(self, view: TaskView) -> Sequence[Question]:
        assert isinstance(view.about, Stakeholder)
        if view.about.profile and not view.about.constraints:
            raise PlanError(
                f"task {view.id!r}: stakeholder {view.member!r} has a profile in text alone, and no model is there to "
                "read it; state its `constraints`, or leave the profile out"
            )
        questions = [self._make_question(view, constraint) for constraint in view.about.constraints]
        for contradiction in find_contradictions(view.about.constraints):
            raise PlanError(
                f"task {view.id!r}: hard constraints {contradiction.first!r} and {contradiction.second!r} of "
                f"{view.member!r} cannot both be met: {contradiction.why}; make one soft, or leave one out"
            )
        return questions

    def _make_question(self, view: TaskView, constraint: Constraint) -> Question:
        error_location = f"task {view.id!r}: constraint {constraint.id!r} of {view.member!r}"
        digest_params: RawParams = {}
        needs: tuple[str, ...] = ()
        if constraint.check is not None:
            check = _parse_check(error_location, json.dumps(constraint.check, sort_keys=True))
            if check.function is not None:
                if check.function not in self._functions:
                    hint = did_you_mean(check.function.rpartition(".")[2], self._functions)
                    hint = hint or "list it in the params of checks.constraints"
                    raise PlanError(
                        f"{error_location}, field check.function: there is no {quote(check.function)}; {hint}"
                    )
                try:
                    signature = inspect.signature(self._functions[check.function])
                    signature.bind(None, None, **check.params)
                except TypeError as error:
                    raise PlanError(
                        f"{error_location}, field check.params: {quote(check.function)} is called as (task, response, "
                        f"**params): {error}; change the params, or the function"
                    ) from error
            if check.claim_kinds:
                facts = load_facts(view)
                _require_known_sources(error_location, facts, check)
                digest_params = facts.digest_params
                needs = self.needs
        return self.question(
            view,
            constraint.id,
            params={**self.params, **digest_params},
            needs=needs,
            standby=constraint.check is None,
        )

    def answer(self, inputs: EvaluatorInput) -> EvaluatorAnswer | Any:
        assert isinstance(inputs.task.about, Stakeholder)
        constraint = next(
            candidate
            for candidate in inputs.task.about.constraints
            if candidate.id == inputs.question.subject
        )
        if constraint.check is None:
            return Verdict.abstain(
                "the constraint states no check, and nobody else is asked about it"
            )
        check = _parse_check(
            f"constraint {constraint.id!r}", json.dumps(constraint.check, sort_keys=True)
        )
        if check.function is not None:
            function = self._functions[check.function]
            return function(inputs.task, inputs.response, **deepcopy(check.params))
        label = constraint.text or constraint.id
        if check.text is not None:
            match = notation.compile_pattern(check.text).search(inputs.response.text)
            if match is None:
                reason = f"{label}: the text has nothing like {check.text}"
                return Verdict(score=0.0, met=False, reason=reason)
            reason = f"{label}: the text has something like {check.text}"
            text_evidence = Evidence(quote=match[0], start=match.start(), end=match.end())
            return Verdict(score=1.0, met=True, reason=reason, evidence=(text_evidence,))
        result = _decide_check_of_response(check, inputs)
        reason = f"{label}: {result.reason}"
        if result.holds is None:
            return Verdict.abstain(reason)
        score = result.share if result.holds or check.partial else 0.0
        items = () if result.holds else result.items[:10]
        evidence = tuple(chain.from_iterable(map(_make_item_evidence, items)))
        return Verdict(score=score, met=result.holds, reason=reason, evidence=evidence)


@lru_cache(maxsize=4096)
def _parse_check(error_location: str, text: str) -> Check:
    """Return the check of a constraint from canonical JSON. Raises PlanError naming the field."""
    check = validate(Check, json.loads(text))
    if isinstance(check, Problem):
        field = f"check.{check.field}" if check.path else "check"
        raise PlanError(f"{error_location}, field {field}: {check}")
    return check


def _require_known_sources(error_location: str, facts: Facts, check: Check) -> None:
    for kind, columns in check.items:
        if kind.startswith("$"):
            continue
        error_field = f"{error_location}, field check.{check.measure}: facts.claims"
        notation.require_known_names(error_field, [kind], facts.claims, "kind")
        claims = facts.claims[kind]
        table_columns = [facts.tables[claim_form.table].columns for claim_form in claims.forms]
        if any(names is None for names in table_columns):
            continue  # of a tool, whose columns only its rows tell
        claim_columns = {*claims.beside, *filter(None, [claims.merged])}
        claim_columns.update(*filter(None, table_columns))
        claim_columns.update(*(claim_form.states for claim_form in claims.forms))
        notation.require_known_names(
            f"{error_location}, field check: {kind}", sorted(columns), claim_columns
        )


def _items_at_path(path: str, data: JsonValue) -> list[ListedItem]:
    nodes = notation.compile_jsonpath(path).find(data)
    return [
        ListedItem(
            node.path(), node.value if isinstance(node.value, dict) else {"value": node.value}
        )
        for node in sorted(nodes, key=lambda node: notation.location_sort_key(node.location))
    ]


def _decide_check_of_response(check: Check, inputs: EvaluatorInput) -> CheckResult:
    """Decide a check; a response whose data contains nothing that exists fails, though it breaks no rule."""
    if next(iter_stated_values(inputs.response.data), None) is None:
        return CheckResult(False, 0.0, "the response has no data in which this could be looked for")
    items = {path: _items_at_path(path, inputs.response.data) for path in check.paths}
    if not check.claim_kinds:
        return decide_check(check, items)
    findings_by_kind = get_claim_findings(inputs)
    tables = load_facts(inputs.task).tables
    for kind in check.claim_kinds:
        items[kind] = []
        for finding in findings_by_kind[kind]:
            table = finding["table"]
            separators = tables[table].spec.lists if table else {}
            items[kind].append(ListedItem(finding["text"], finding["values"], finding, separators))
    result = decide_check(check, items)
    findings = chain.from_iterable(findings_by_kind.values())
    if not result.holds or check.paths or any(finding["row"] for finding in findings):
        return result
    return CheckResult(False, 0.0, "nothing that the response's data claims is there")


def _make_item_evidence(item: ListedItem) -> Sequence[Evidence]:
    if item.finding is not None:
        return make_claim_evidence(item.finding)
    content = value_to_text(dict(item.values))
    return [Evidence(quote=content[:200], source=f"data {item.text}", verified=True)]


class CollectedPreferences(CodeEvaluator):
    """Look up each constraint of a stakeholder in the table of preferences that the response recorded.

    An agent that talks with its users writes down what they want. GroupTravelBench compares that table with the users'
    profiles, and calls the recall over all of them preference completeness (arXiv 2605.25200; DecompR, Table 6). Here
    the table is `preferences` in the response's data: for each stakeholder, nested objects whose leaves are lists or
    single values. It has a constraint whose id is the path of a leaf and one value there: `transport.must: train` is in
    `{"transport": {"must": ["train"]}}`. A constraint that is not there is not collected, also without any table.

    The verdicts do not count in a utility: what an agent knows of a person is not what its plan does for the person.
    The component `stakeholders` reports them as `preference completeness`.
    """

    name = "checks.collected"
    audience = "stakeholder"
    reads_data = True
    shares = MappingProxyType({COLLECTED_SUBJECT_PREFIX: 0.0})

    def questions(self, view: TaskView) -> Sequence[Question]:
        assert isinstance(view.about, Stakeholder)
        return [
            self.question(view, f"{COLLECTED_SUBJECT_PREFIX}/{constraint.id}")
            for constraint in view.about.constraints
        ]

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        data = inputs.response.data
        constraint_id = inputs.question.subject.partition("/")[2]
        tables = data.get(_PREFERENCES_KEY) if isinstance(data, dict) else None
        table = tables.get(str(inputs.task.member)) if isinstance(tables, dict) else None
        if table is None:
            reason = f"the response's data has no `{_PREFERENCES_KEY}` of {inputs.task.member}"
            return Verdict(score=0.0, met=False, reason=reason)
        is_preference_collected = constraint_id in set(iter_stated_values(table))
        words = "is" if is_preference_collected else "is not"
        return Verdict(
            score=is_preference_collected,
            met=is_preference_collected,
            reason=f"{constraint_id} {words} among its preferences",
        )


def iter_stated_values(data: JsonValue, path: str = "") -> Iterator[str]:
    """Yield `path: value` for every value in data that is not empty; the entries of a list share the list's path."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from iter_stated_values(value, f"{path}.{key}" if path else key)
    elif isinstance(data, list):
        for value in data:
            yield from iter_stated_values(value, path)
    elif data not in (None, ""):
        yield f"{path}: {value_to_text(data)}"
