"""Loading of a task's facts: messages when a plan is made, and caches."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jurygraph.agents.facts.loader import load_facts
from jurygraph.errors import PlanError
from tests.agents.facts.examples import FORM, MEALS, PLACES, make_facts, marks, view, write_table
from tests.rows import all_rows

AT_ALL = "(?P<name>.+)"


def refusal(facts: Any) -> str:
    """Why, after the name of the task."""
    with pytest.raises(PlanError) as raised:
        load_facts(view(facts))
    message = str(raised.value)
    assert message.startswith("task 'trip': ")
    return message.removeprefix("task 'trip': ")


def with_form(**form: Any) -> dict[str, Any]:
    return make_facts(claims={"forms": [{**FORM, **form}]})


REFUSED = {
    "no facts": (
        None,
        "has no facts, but an evaluator needs them; give the task `facts` with `tables` and `claims`, "
        "or leave those evaluators out",
    ),
    "no tables": ({}, "facts.tables: is missing; facts need it"),
    "an unknown key": ({**make_facts(), "claim": {}}, "facts.claim: unknown; did you mean claims?"),
    "an unknown key of a table": (make_facts(unqiue=True), "facts.tables.places.unqiue: unknown; did you mean unique?"),
    "an unknown key of a form": (
        with_form(patern="x"),
        "facts.claims.meals.forms[0].patern: unknown; did you mean pattern?",
    ),
    "a table of the wrong kind": (
        {"tables": {"places": {"key": "name", "rows": []}}},
        "facts.tables.places.key: is the text 'name'; write a list",
    ),
    "rows and a file": (
        {"tables": {"places": {"key": ["name"], "rows": [], "file": "a.csv"}}},
        "facts.tables.places: is given by rows and file; give one of rows, file and tool",
    ),
    "an unknown table": (
        with_form(table="palces"),
        "facts.claims.meals.forms[0].table: there is no table 'palces'; did you mean places?",
    ),
    "no RE2": (
        with_form(pattern="(?P<name>.+"),
        "facts.claims.meals.forms[0].pattern: is not a valid RE2 pattern (missing ): (?P<name>.+); RE2 has no "
        "look-around and no back references",
    ),
    "no JSONPath": (
        make_facts(claims={"at": ["$[*].meal", "meal"]}),
        "facts.claims.meals.at[1]: is not a valid JSONPath",
    ),
    "a group that is no column": (
        with_form(pattern="(?P<name>.+), (?P<city>.+), (?P<coast>.+)"),
        "facts.claims.meals.forms[0].pattern: there is no column 'coast'; did you mean cost?",
    ),
    "a form without the whole key": (
        with_form(pattern=AT_ALL),
        "facts.claims.meals.forms[0]: has no value for 'city', which is part of the key of places; name a group of the "
        "pattern so, or set it in `beside` or `states`",
    ),
    "a form without a pattern": (
        make_facts(claims={"forms": [{"table": "places"}]}),
        "facts.claims.meals.forms[0]: has no value for 'city', which is part of the key of places",
    ),
    "a share of what is not claimed": (
        with_form(within={"coast": 0.1}),
        "facts.claims.meals.forms[0].within: there is no claimed column 'coast'; did you mean cost?",
    ),
    "an unknown column in the key": (
        make_facts(key=["name", "town"]),
        "facts.tables.places.key: there is no column 'town'; there are city, cost, name",
    ),
    "an unknown column in lists": (
        make_facts(lists={"costs": ","}),
        "facts.tables.places.lists: there is no column 'costs'; did you mean cost?",
    ),
    "an unknown column in order": (
        make_facts(order="nme"),
        "facts.tables.places.order: there is no column 'nme'; did you mean name?",
    ),
    "a key that is not unique": (
        make_facts([*PLACES, PLACES[0]], unique=True),
        "facts.tables.places: has two rows of name 'Coco Bambu', city 'Rockford', and declares its key as unique; "
        "keep one of them, or leave `unique` out: the others are then listed as alternatives",
    ),
    "a number of what was merged that takes a column's place": (
        make_facts(claims={"merged": "cost"}),
        "facts.claims.meals.merged: is 'cost', which is a column of places; give the number another name",
    ),
    "a file that is not there": (
        make_facts(file="/nowhere/t.csv"),
        "facts.tables.places.file: /nowhere/t.csv: there is no such file; name one that is there",
    ),
    "a file of no name": (
        make_facts(file="a\0b.csv"),
        "facts.tables.places.file: a\0b.csv: cannot be read (embedded null byte); name a file that can be read",
    ),
    "a folder": (make_facts(file="/"), "facts.tables.places.file: /: has no table format in its name; give "),
}


@all_rows(("facts", "message"), REFUSED.values())
def test_an_unknown_reference_is_refused_with_its_field(facts: Any, message: str) -> None:
    assert refusal(facts).startswith(message)


@pytest.mark.parametrize(
    ("claims", "form"),
    [
        ({}, {"pattern": AT_ALL, "states": {"city": "Rockford"}}),
        ({"beside": {"city": {"field": "where"}}}, {"pattern": AT_ALL}),
        ({}, {"pattern": "(?P<who>.+) in (?P<where>.+)", "columns": {"who": "name", "where": "city"}}),
        ({}, {"states": {"city": "Rockford"}, "pattern": None}),
        ({"beside": {"cost": {"field": "cost"}}}, {"within": {"cost": 0.1}}),
    ],
)
def test_the_key_may_be_given_in_several_ways(claims: dict[str, Any], form: dict[str, Any]) -> None:
    facts = load_facts(view(make_facts(claims={**claims, "forms": [{**FORM, **form}]})))
    assert facts.claims["meals"].forms[0].table == "places"


@pytest.mark.parametrize("place", [{"rows": []}, {"tool": "maps"}])
def test_unknown_columns_are_not_checked(place: dict[str, Any]) -> None:
    table = {"key": ["any"], "order": "thing", "lists": {"at": ","}, **place}
    forms = [{"table": "places", "pattern": "(?P<any>.+) (?P<all>.+)"}]
    facts = {"tables": {"places": table}, "claims": {"meals": {**MEALS, "forms": forms}}}
    assert list(load_facts(view(facts)).tables) == ["places"]


def test_only_files_outside_the_task_are_marked(tmp_path: Path) -> None:
    assert marks(make_facts()) == {}
    assert marks(make_facts(tool="maps")) == {}
    path = write_table(tmp_path / "t.csv", PLACES)
    assert re.fullmatch("[0-9a-f]{64}", marks(make_facts(file=str(path)))["files"]["places"])


def rewrite_file(path: Path) -> None:
    write_table(path, PLACES[:2])


def replace_file(path: Path) -> None:
    write_table(path.with_suffix(".new.csv"), PLACES[:2]).replace(path)


@pytest.mark.parametrize("change", [rewrite_file, replace_file])
def test_a_file_that_has_changed_is_read_again(change: Callable[[Path], None], tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", PLACES)
    facts = make_facts(file=str(path))
    before = marks(facts)
    assert marks(facts) == before
    change(path)
    after = marks(facts)
    assert after != before
    write_table(path, PLACES)
    assert marks(facts) == before
    path.unlink()
    assert "there is no such file" in refusal(facts)
