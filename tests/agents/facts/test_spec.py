"""The models of a task's facts, and what they refuse."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from jurygraph.agents.facts.spec import ClaimPattern, ClaimsSpec, TableSpec
from jurygraph.messages import describe_validation_error


def refusal(model: type[BaseModel], **fields: Any) -> str:
    """Return the message about the fields."""
    with pytest.raises(ValidationError) as raised:
        model.model_validate(fields)
    problem = describe_validation_error(raised.value, model, fields)
    return f"{problem.field}: {problem}"


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({}, ": is given by nothing; give one of rows, file and tool"),
        ({"rows": (), "file": "a.csv"}, ": is given by rows and file; give one of rows, file and tool"),
        ({"rows": (), "file": "a.csv", "tool": "t"}, ": is given by rows and file and tool; give one of rows"),
    ],
)
def test_a_table_without_a_source_or_with_two_is_refused(sources: dict[str, Any], message: str) -> None:
    assert refusal(TableSpec, key=("name",), **sources).startswith(message)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"pattern": "(?P<name>.+"}, "pattern: is not a valid RE2 pattern (missing ): "),
        ({"pattern": "(?=x)x"}, "pattern: is not a valid RE2 pattern"),
        ({"pattern": r"(x)\1"}, "pattern: is not a valid RE2 pattern"),
        ({"pattern": "(?P<a>.+)", "columns": {"b": "c"}}, "columns.b: is not a group of the pattern; it has a"),
        ({"columns": {"b": "c"}}, "columns.b: is not a group of the pattern; it has none"),
        ({"within": {"cost": 1.5}}, "within.cost: is the number 1.5; write a number of 1 or less"),
    ],
)
def test_an_invalid_form_is_refused(fields: dict[str, Any], message: str) -> None:
    assert refusal(ClaimPattern, table="t", **fields).startswith(message)


@pytest.mark.parametrize("path", ["name", "$[", "$..", "$[?(@.a)", ""])
def test_an_invalid_jsonpath_is_refused(path: str) -> None:
    assert "at[1]: is not a valid JSONPath" in refusal(ClaimsSpec, at=("$.a", path), forms=({"table": "t"},))
