"""The record kinds of a config: invalid ones, and the reply model."""

import json
from typing import Any

import pytest

from jurygraph.agents.extraction import (
    MAX_RECORDS_PER_KIND,
    Extract,
    FieldSpecsByKind,
    RecordParams,
    reply_model,
)
from jurygraph.errors import ConfigError
from jurygraph.models.judge_client import answer_schema, parse_reply
from jurygraph.models.request import Fault, Reply
from tests.rows import all_rows

RECORDS: dict[str, Any] = {
    "meals": {
        "name": "the restaurant's name",
        "day": {"about": "the day's number", "number": True, "context": True},
        "price": {"about": "what it costs", "number": True, "optional": True},
        "when": {"about": "which meal it is", "one_of": ["lunch", "dinner"]},
        "digest": {"about": "a field of a name that nouns have too", "optional": True},
    },
    "notes": {"text": "a remark"},
}
MEAL = {
    "quote": "Lunch at Roma",
    "name": "Roma",
    "day": 2,
    "price": None,
    "when": "lunch",
    "digest": None,
}


def kinds_of(records: Any) -> FieldSpecsByKind:
    return RecordParams(records=records).records


@all_rows(
    ("records", "words"),
    [
        (None, "records: is null; write an object"),
        ({}, "records: has 0 entries; give it at least 1"),
        ({"meals": {}}, "records.meals: has 0 entries; give it at least 1"),
        ({"meals": {"name": {}}}, "records.meals.name.about: is missing"),
        (
            {"meals": {"name": {"abot": "x"}}},
            "records.meals.name.abot: unknown; did you mean about?",
        ),
        (
            {"meals": {"name": {"about": "x", "one_of": ["a", "a"]}}},
            "records.meals.name.one_of: has a duplicate",
        ),
        (
            {"meals": {"name": {"about": "x", "one_of": ["a"], "context": True}}},
            "records.meals.name.one_of: is not sought in the response, and `context` is; keep one of them",
        ),
        (
            {"meals": {"quote": "x"}},
            "records.meals.quote: every record has one already; leave it out",
        ),
        ({"my meals": {"name": "x"}}, "records.my meals: a name begins with a letter"),
    ],
)
def test_an_invalid_record_is_refused_by_its_name(records: Any, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Extract(records=records)
    assert str(caught.value).startswith(f"extract: params.{words}")


def test_the_reply_has_a_list_for_each_kind_and_the_passage_first_in_each_record() -> None:
    schema: Any = answer_schema(reply_model(kinds_of(RECORDS)))
    assert list(schema["properties"]) == ["meals", "notes"]
    meals = schema["properties"]["meals"]
    assert meals["maxItems"] == MAX_RECORDS_PER_KIND
    assert list(meals["items"]["properties"]) == ["quote", "name", "day", "price", "when", "digest"]
    assert meals["items"]["properties"]["when"]["enum"] == ["lunch", "dinner"]
    assert meals["items"]["properties"]["price"]["anyOf"] == [{"type": "number"}, {"type": "null"}]


@pytest.mark.parametrize(
    "meal",
    [
        {**MEAL, "day": "2"},
        {**MEAL, "day": None},
        {**MEAL, "when": "brunch"},
        {**MEAL, "name": ""},
        {**MEAL, "more": 1},
        {name: value for name, value in MEAL.items() if name != "price"},
        {name: value for name, value in MEAL.items() if name != "quote"},
    ],
)
def test_a_reply_of_another_form_is_malformed(meal: dict[str, Any]) -> None:
    with pytest.raises(Fault, match=r"meals\[0\]"):
        parse_reply(
            Reply(text=json.dumps({"meals": [meal], "notes": []})), reply_model(kinds_of(RECORDS))
        )
