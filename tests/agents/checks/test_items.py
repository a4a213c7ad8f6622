"""Tests of one item, and the reasons why a result is unknown."""

from typing import Any

import pytest

from jurygraph.agents.checks.evaluators import ListedItem, UnknownValues
from jurygraph.agents.checks.spec import Test as ValueTest
from tests.agents.checks.items import invented_item, own_item, row_item
from tests.rows import all_rows


def truth_of(item: ListedItem, **tests: dict[str, Any]) -> str:
    return UnknownValues().test_item(
        {column: ValueTest.model_validate(test) for column, test in tests.items()}, item
    )


@all_rows(("test", "passes", "fails"), [
        ({"equals": 3}, [3, 3.0, "3", "$3"], [4, "three", True]),
        ({"equals": "Private room"}, ["Private room", " Private  room"], ["private room", "Shared room", 3]),
        ({"equals": True}, [True], [False, 1]),
        ({"is_not": "Shared room"}, ["Private room", 3], ["Shared room"]),
        ({"one_of": ["a", 2]}, ["a", 2, "2"], ["b", 3, "a, 2"]),
        ({"none_of": ["a", 2]}, ["b", 3], ["a", 2]),
        ({"has": "a"}, ["a", ["b", "a"]], ["b", ["b"], "ab", []]),
        ({"has_not": "a"}, ["b", ["b"], []], ["a", ["b", "a"]]),
        ({"at_least": 3}, [3, "3.5", "$4"], [2, "2"]),
        ({"at_least": "09:00"}, ["09:00", "10:30"], ["08:59"]),
        ({"at_most": 3}, [3, -1], [3.1]),
        ({"at_most": "2022-03-16"}, ["2022-03-15"], ["2022-03-17"]),
        ({"at_least": "09:00", "at_most": "12:00"}, ["10:30"], ["12:01"]),
        ({"matches": "^No (pets|parties)$"}, ["No pets"], ["No pets & No parties", "no pets"]),
        ({"matches": "^12$"}, [12, 12.0], [121]),
        ({"at_least": 1, "at_most": 3, "is_not": 2}, [1, 3], [0, 2, 4]),
    ])  # fmt: skip
def test_the_requirement_of_a_value_is_described(
    test: dict[str, Any], passes: list[Any], fails: list[Any]
) -> None:
    assert {truth_of(row_item(x=value), x=test) for value in passes} == {"yes"}
    assert {truth_of(row_item(x=value), x=test) for value in fails} == {"no"}


def test_a_column_that_holds_a_list_is_split_by_what_its_table_says() -> None:
    config_with_functions = row_item(lists={"rules": "&"}, rules="No pets & No parties")
    assert truth_of(config_with_functions, rules={"has": "No pets"}) == "yes"
    assert truth_of(config_with_functions, rules={"has_not": "No parties"}) == "no"
    assert truth_of(config_with_functions, rules={"equals": "No pets & No parties"}) == "yes"


def test_a_value_may_be_compared_with_another_column() -> None:
    test = {"at_least": {"column": "least"}}
    assert truth_of(row_item(nights=2, least=2), nights=test) == "yes"
    assert truth_of(row_item(nights=2, least=3), nights=test) == "no"
    assert truth_of(row_item(nights=2, least=None), nights=test) == "untold"


@pytest.mark.parametrize("nothing", [{}, {"x": None}, {"x": ""}, {"x": float("nan")}])
def test_a_missing_table_value_does_not_count_against_the_response(nothing: dict[str, Any]) -> None:
    assert truth_of(row_item(**nothing), x={"equals": 1}) == "untold"


@pytest.mark.parametrize(
    "item",
    [own_item(), own_item(x=None), own_item(x=""), row_item(own="x"), row_item(own="x", x=None)],
)
def test_omitted_data_of_a_response_is_unshown(item: ListedItem) -> None:
    assert truth_of(item, x={"equals": 1}) == "unshown"


def test_record_values_of_a_claim_are_known_without_a_row() -> None:
    assert truth_of(invented_item(own="day", day=2), day={"equals": 2}) == "unshown", (
        "all but whether it is there"
    )
    assert truth_of(invented_item(own="day", day=2), day={"equals": 1}) == "no"


def test_values_that_cannot_be_compared_decide_nothing() -> None:
    assert truth_of(row_item(x="n/a"), x={"at_least": 3}) == "untold"
    assert truth_of(own_item(x="n/a"), x={"at_least": 3}) == "unshown"
    assert truth_of(row_item(x="5 EUR"), x={"at_most": 5}) == "untold"


def test_one_failed_test_decides_despite_unknown_values() -> None:
    assert truth_of(row_item(x=1), x={"equals": 2}, y={"equals": 1}) == "no"
    assert truth_of(row_item(y=1), x={"equals": 2}, y={"equals": 2}) == "no"
    assert truth_of(row_item(x=1), x={"at_least": {"column": "y"}, "at_most": 0}) == "no"
    assert (
        truth_of(invented_item(own="day", day=2), day={"equals": 1}, price={"at_most": 5}) == "no"
    )
