"""What a task may state of its facts, and what is refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from jurygraph.agents.facts.spec import ClaimsSpec, FactsSpec, Form, TableSpec
from tests.agents.facts.examples import stated


def refused(model: Any, **fields: Any) -> str:
    with pytest.raises(ValidationError) as raised:
        model(**fields)
    (error,) = raised.value.errors()
    return str(error["msg"]).removeprefix("Value error, ")


@pytest.mark.parametrize("place", [{"rows": []}, {"file": "a.csv"}, {"file": "a.db", "table": "t"}, {"tool": "maps"}])
def test_a_table_has_exactly_one_of_three_sources(place: dict[str, Any]) -> None:
    assert TableSpec(key=("name",), **place).model_dump(exclude_unset=True)["key"] == ("name",)


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ({}, "is given by nothing; give one of rows, file and tool"),
        ({"rows": (), "file": "a.csv"}, "is given by rows and file; give one of rows, file and tool"),
        ({"rows": (), "file": "a.csv", "tool": "t"}, "is given by rows and file and tool; give one of rows"),
        ({"rows": (), "table": "t"}, "`table` is one of a SQLite file, and there is no `file`; leave it out"),
    ],
)
def test_a_table_in_no_place_or_in_two_is_refused(places: dict[str, Any], said: str) -> None:
    assert refused(TableSpec, key=("name",), **places).startswith(said)


def test_a_table_without_a_key_is_refused() -> None:
    assert "at least 1 item" in refused(TableSpec, key=(), rows=())


def test_a_form_knows_the_groups_of_its_pattern() -> None:
    form = Form(table="t", pattern=r"(?P<name>.+) in (?P<city>.+)", columns={"name": "Name"})
    assert sorted(form.groups) == ["city", "name"]
    assert form.compiled.fullmatch("Inn in Rome")["city"] == "Rome"
    assert Form(table="t").groups == ()
    assert Form(table="t").compiled is None


def test_compiled_forms_are_not_part_of_the_model() -> None:
    form, again = Form(table="t", pattern="(?P<name>.+)"), Form(table="t", pattern="(?P<name>.+)")
    assert form.compiled is not None
    assert form.digest == again.digest
    assert form.model_dump() == again.model_dump()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"pattern": "(?P<name>.+"}, "`pattern` is not a valid RE2 pattern (missing ): "),
        ({"pattern": "(?=x)x"}, "`pattern` is not a valid RE2 pattern"),
        ({"pattern": r"(x)\1"}, "`pattern` is not a valid RE2 pattern"),
        ({"pattern": "(?P<a>.+)", "columns": {"b": "c"}}, "`columns.b` is not a group of the pattern; it has a"),
        ({"columns": {"b": "c"}}, "`columns.b` is not a group of the pattern; it has none"),
        ({"within": {"cost": 1.5}}, "Input should be less than or equal to 1"),
    ],
)
def test_a_form_that_cannot_be_read_is_refused(fields: dict[str, Any], said: str) -> None:
    assert refused(Form, table="t", **fields).startswith(said)


@pytest.mark.parametrize("path", ["name", "$[", "$..", "$[?(@.a)", ""])
def test_a_path_that_is_no_jsonpath_is_refused(path: str) -> None:
    assert refused(ClaimsSpec, at=("$.a", path), forms=({"table": "t"},)).startswith("`at[1]` is not a valid JSONPath")


@pytest.mark.parametrize("lacking", [{"at": (), "forms": ({"table": "t"},)}, {"at": ("$.a",), "forms": ()}])
def test_claims_stand_somewhere_and_have_a_form(lacking: dict[str, Any]) -> None:
    assert "at least 1 item" in refused(ClaimsSpec, **lacking)


def test_claims_are_of_tables_that_there_are() -> None:
    facts = stated(claims={"forms": [{"table": "places"}, {"table": "palces"}]})
    said = refused(FactsSpec, **facts)
    assert said == "`claims.meals.forms[1].table` names 'palces', which is not a table; there are places"


def test_facts_may_state_tables_without_claims() -> None:
    assert FactsSpec.model_validate({"tables": {}}).claims == {}
