"""Loading of a task's facts: messages when a plan is made, and files that change."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jurygraph.agents.facts.evaluators import load_facts
from jurygraph.errors import PlanError
from tests.agents.facts.examples import FORM, MEALS, PLACES, make_facts, marks, view, write_table
from tests.rows import all_rows

AT_ALL = "(?P<name>.+)"


def refusal(facts: Any) -> str:
    """Why, after the name of the task."""
    with pytest.raises(PlanError, match=r"^task 'trip': ") as raised:
        load_facts(view(facts))
    return str(raised.value).removeprefix("task 'trip': ").removeprefix("facts.")


def with_form(**form: Any) -> dict[str, Any]:
    return make_facts(claims={"forms": [{**FORM, **form}]})


def with_table(**table: Any) -> dict[str, Any]:
    return {"tables": {"places": {"key": ["name"], **table}}}


REFUSED: list[tuple[Any, str]] = [
    (
        None,
        "has no facts, but an evaluator needs them; give the task `facts` with `tables` and `claims`, or leave",
    ),
    ({}, "tables: is missing; facts need it"),
    ({**make_facts(), "claim": {}}, "claim: unknown; did you mean claims?"),
    (make_facts(lits={}), "tables.places.lits: unknown; did you mean lists?"),
    (with_form(patern="x"), "claims.meals.forms[0].patern: unknown; did you mean pattern?"),
    (with_table(key="name", rows=[]), "tables.places.key: is the text 'name'; write a list"),
    (with_table(), "tables.places: is given by nothing; give one of rows, file and tool"),
    (
        with_table(rows=[], file="a.csv"),
        "tables.places: is given by rows and file; give one of rows, file and tool",
    ),
    (
        with_form(table="palces"),
        "claims.meals.forms[0].table: there is no table 'palces'; did you mean places?",
    ),
    (
        with_form(pattern="(?P<name>.+"),
        "claims.meals.forms[0].pattern: is not a valid RE2 pattern (missing ): ",
    ),
    (with_form(pattern=r"(x)\1"), "claims.meals.forms[0].pattern: is not a valid RE2 pattern"),
    (
        with_form(columns={"b": "c"}),
        "claims.meals.forms[0].columns.b: is not a group of the pattern; it has city, cost",
    ),
    (
        with_form(within={"cost": 1.5}),
        "claims.meals.forms[0].within.cost: is the number 1.5; write a number of 1 or",
    ),
    (
        with_form(within={"coast": 0.1}),
        "claims.meals.forms[0].within: there is no claimed column 'coast'; did you mean",
    ),
    (
        with_form(pattern=AT_ALL),
        "claims.meals.forms[0]: has no value for 'city', which is part of the key of places",
    ),
    (
        with_form(pattern="(?P<name>.+), (?P<city>.+), (?P<coast>.+)"),
        "claims.meals.forms[0].pattern: there is no column 'coast'; did you mean cost?",
    ),
    (
        make_facts(claims={"at": ["$[*].meal", "meal"]}),
        "claims.meals.at[1]: is not a valid JSONPath",
    ),
    (
        make_facts(claims={"merged": "n"}),
        "claims.meals.merged: joins claims of successive orders; name the field that",
    ),
    (
        make_facts(claims={"merged": "cost", "order": "day"}),
        "claims.meals.merged: is 'cost', which is a column of places; give the number another name",
    ),
    (
        make_facts(key=["name", "town"]),
        "tables.places.key: there is no column 'town'; there are city, cost, name",
    ),
    (
        make_facts(lists={"costs": ","}),
        "tables.places.lists: there is no column 'costs'; did you mean cost?",
    ),
    (make_facts(order="nme"), "tables.places.order: there is no column 'nme'; did you mean name?"),
    (
        make_facts(file="/nowhere/t.csv"),
        "tables.places.file: /nowhere/t.csv: there is no such file; name one that",
    ),
    (
        make_facts(file="nowhere.csv"),
        "tables.places.file: nowhere.csv: there is no such file; name one that is there; looked for in the folder of "
        f"TASKS or config when that was read, and now in {Path.cwd()}",
    ),
    (make_facts(file="/"), "tables.places.file: /: is a folder; name a file"),
]


@all_rows(("facts", "message"), REFUSED)
def test_facts_that_cannot_be_used_are_refused_with_their_field(facts: Any, message: str) -> None:
    assert refusal(facts).startswith(message)


@all_rows(
    ("claims", "form"),
    [
        ({}, {"pattern": AT_ALL, "states": {"city": "Rockford"}}),
        ({"beside": {"city": {"field": "where"}}}, {"pattern": AT_ALL}),
        (
            {},
            {
                "pattern": "(?P<who>.+) in (?P<where>.+)",
                "columns": {"who": "name", "where": "city"},
            },
        ),
        ({}, {"states": {"city": "Rockford"}, "pattern": None}),
        ({"beside": {"cost": {"field": "cost"}}}, {"within": {"cost": 0.1}}),
    ],
)
def test_the_key_may_be_given_in_several_ways(claims: dict[str, Any], form: dict[str, Any]) -> None:
    facts = load_facts(view(make_facts(claims={**claims, "forms": [{**FORM, **form}]})))
    assert facts.claims["meals"].forms[0].table == "places"


@all_rows("place", [{"rows": []}, {"tool": "maps"}])
def test_unknown_columns_are_not_checked(place: dict[str, Any]) -> None:
    table = {"key": ["any"], "order": "thing", "lists": {"at": ","}, **place}
    forms = [{"table": "places", "pattern": "(?P<any>.+) (?P<all>.+)"}]
    facts = {"tables": {"places": table}, "claims": {"meals": {**MEALS, "forms": forms}}}
    assert list(load_facts(view(facts)).tables) == ["places"]


def rewrite_file(path: Path) -> None:
    write_table(path, PLACES[:2])


def replace_file(path: Path) -> None:
    write_table(path.with_suffix(".new.csv"), PLACES[:2]).replace(path)


@pytest.mark.parametrize("change", [rewrite_file, replace_file])
def test_a_file_that_has_changed_is_read_again(
    change: Callable[[Path], None], tmp_path: Path
) -> None:
    assert marks(make_facts()) == marks(make_facts(tool="maps")) == {}, (
        "only files outside the task are marked"
    )
    path = write_table(tmp_path / "t.csv", PLACES)
    facts = make_facts(file=str(path))
    before = marks(facts)
    assert re.fullmatch("[0-9a-f]{64}", before["files"]["places"])
    assert marks(facts) == before
    change(path)
    assert marks(facts) != before
    write_table(path, PLACES)
    assert marks(facts) == before
    path.unlink()
    assert "there is no such file" in refusal(facts)
