"""Claims as they stand in a response's data."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.facts.evaluators import FactClaim, read_claims
from jurygraph.agents.facts.tables import ClaimsSpec
from tests.rows import all_rows
from tests.schema.strategies import json_values

WHOLE = {"table": "t"}
IN_CITY = {
    "table": "t",
    "pattern": r"(?P<name>[^,]+), (?P<city>[^,]+)",
    "columns": {"name": "Name"},
}


def read(data: Any, at: str | tuple[str, ...] = "$[*].meal", **fields: Any) -> list[FactClaim]:
    paths = (at,) if isinstance(at, str) else at
    return read_claims(ClaimsSpec.model_validate({"at": paths, "forms": [WHOLE], **fields}), data)


def texts(data: Any, at: str | tuple[str, ...] = "$[*].meal", **fields: Any) -> list[str]:
    return [claim.text for claim in read(data, at, **fields)]


VALUES = [(None, []), ("", []), (" - ", []), ("a", ["a"]), (25.0, ["25"]), (["a"], ['["a"]'])]


@all_rows(("value", "claimed"), VALUES)
def test_a_value_is_one_claim_unless_it_claims_nothing(value: Any, claimed: list[str]) -> None:
    assert texts([{"meal": value}]) == claimed


def test_a_text_may_hold_several_claims() -> None:
    claims = read([{"meal": "a; b;;c ;"}], split=";")
    assert [claim.text for claim in claims] == ["a", "b", "c"]
    assert {claim.at for claim in claims} == {"$[0]['meal']"}


@all_rows("data", [None, "meal", 3, True, [], {}, {"meal": "a"}, [["meal"]], [None, 1, "x"]])
def test_data_of_another_shape_claims_nothing(data: Any) -> None:
    assert texts(data) == []


def test_the_first_form_that_fits_is_the_one() -> None:
    forms = [IN_CITY, {"table": "t", "pattern": "(?P<name>.+)"}, WHOLE]
    inside, alone = read([{"meal": "Inn, Rome"}, {"meal": "Inn"}], forms=forms)
    assert (inside.values, alone.values) == ({"Name": "Inn", "city": "Rome"}, {"name": "Inn"})
    assert (inside.form, alone.form) != (alone.form, inside.form)


def test_a_claim_has_values_of_its_record() -> None:
    record_fields = {
        "day": {"field": "days"},
        "date": {"field": "days", "map": {"1": "2022-03-01", "2": "2022-03-02"}},
    }
    records = [
        {"meal": "a", "days": 1},
        {"meal": "b", "days": 2.0},
        {"meal": "c", "days": 3},
        {"meal": "d"},
    ]
    assert [claim.record_values for claim in read(records, beside=record_fields)] == [
        {"day": 1, "date": "2022-03-01"},
        {"day": 2.0, "date": "2022-03-02"},
        {"day": 3, "date": None},
        {"day": None, "date": None},
    ]


@pytest.mark.parametrize("value", [[1], {"a": 1}, "x" * 1001])
def test_lists_objects_and_long_texts_are_no_record_values(value: Any) -> None:
    assert read([{"meal": "a", "days": value}], beside={"day": {"field": "days"}})[
        0
    ].record_values == {"day": None}


def test_claims_are_ordered_by_the_order_field_of_their_records() -> None:
    days: list[Any] = [10, "b", None, 9, "2", "a", 2.5]
    records = [{"meal": str(day), "days": day} for day in days] + [{"meal": "left out"}]
    assert texts(records, order="days") == ["2", "2.5", "9", "10", "a", "b", "None", "left out"]


@given(json_values, st.sampled_from(["$", "$[*]", "$..*", "$.a[0:5].b", "$[?@.meal]"]))
def test_data_of_any_shape_can_be_read(data: Any, path: str) -> None:
    record_fields = {"day": {"field": "days", "map": {"1": "one"}}}
    for claim in read(
        data, path, forms=[IN_CITY, WHOLE], beside=record_fields, order="days", split=";"
    ):
        assert claim.text.strip() == claim.text != ""
