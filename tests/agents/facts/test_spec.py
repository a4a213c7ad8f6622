"""The models of a task's facts, and what they refuse."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from jurygraph.agents.facts.spec import ClaimPattern, ClaimsSpec, FactsSpec, TableSpec
from jurygraph.messages import describe_validation_error


def refusal(model: type[BaseModel], **fields: Any) -> str:
    """Return the message about the fields."""
    with pytest.raises(ValidationError) as raised:
        model.model_validate(fields)
    problem = describe_validation_error(raised.value, model, fields)
    return f"{problem.field}: {problem}"


@pytest.mark.parametrize("source", [{"rows": []}, {"file": "a.csv"}, {"file": "a.db", "table": "t"}, {"tool": "maps"}])
def test_a_table_has_one_of_three_sources(source: dict[str, Any]) -> None:
    assert TableSpec(key=("name",), **source).model_dump(exclude_unset=True)["key"] == ("name",)


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({}, ": is given by nothing; give one of rows, file and tool"),
        ({"rows": (), "file": "a.csv"}, ": is given by rows and file; give one of rows, file and tool"),
        ({"rows": (), "file": "a.csv", "tool": "t"}, ": is given by rows and file and tool; give one of rows"),
        ({"rows": (), "table": "t"}, "table: is one of a SQLite file, and there is no `file`; leave it out"),
    ],
)
def test_a_table_without_a_source_or_with_two_is_refused(sources: dict[str, Any], message: str) -> None:
    assert refusal(TableSpec, key=("name",), **sources).startswith(message)


def test_a_table_without_a_key_is_refused() -> None:
    assert "has 0 entries; give it at least 1" in refusal(TableSpec, key=(), rows=())


def test_a_form_knows_the_groups_of_its_pattern() -> None:
    form = ClaimPattern(table="t", pattern=r"(?P<name>.+) in (?P<city>.+)", columns={"name": "Name"})
    assert sorted(form.groups) == ["city", "name"]
    assert form.compiled.fullmatch("Inn in Rome")["city"] == "Rome"
    assert ClaimPattern(table="t").groups == ()
    assert ClaimPattern(table="t").compiled is None


def test_compiled_forms_are_not_part_of_the_model() -> None:
    form, again = ClaimPattern(table="t", pattern="(?P<name>.+)"), ClaimPattern(table="t", pattern="(?P<name>.+)")
    assert form.compiled is not None
    assert form.digest == again.digest
    assert form.model_dump() == again.model_dump()


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


@pytest.mark.parametrize("fields", [{"at": (), "forms": ({"table": "t"},)}, {"at": ("$.a",), "forms": ()}])
def test_claims_need_a_path_and_a_form(fields: dict[str, Any]) -> None:
    assert "has 0 entries; give it at least 1" in refusal(ClaimsSpec, **fields)


def test_facts_may_have_tables_without_claims() -> None:
    assert FactsSpec.model_validate({"tables": {}}).claims == {}
