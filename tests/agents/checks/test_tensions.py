"""Which constraints pull apart, and how strongly: by rule, from the constraints alone."""

from typing import Any

import pytest

from jurygraph.agents.checks.spec import find_contradictions, find_tensions
from jurygraph.schema import Constraint, Stakeholder
from tests.rows import all_rows

COST = [{"of": "meals", "column": "price", "people": 4}]
ALLOWED = {"share": "stays", "where": {"rules": {"has_not": "No smoking"}}}
BARRED = {"share": "stays", "where": {"rules": {"has": "No smoking"}}}


def budget(most: float) -> dict[str, Any]:
    return {"sum": COST, "at_most": most}


def rooms(**test: Any) -> dict[str, Any]:
    return {"share": "stays", "where": {"room": test}}


def person(name: str, *checks: dict[str, Any] | None, kind: str = "hard") -> Stakeholder:
    spec = [
        Constraint(id=f"c{place}", kind=kind, check=check) for place, check in enumerate(checks)
    ]  # type: ignore[arg-type]
    return Stakeholder(id=name, constraints=tuple(spec))


def strength(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Return the total tension of two checks, in either order."""
    there = [pull.strength for pull in find_tensions(person("a", one), person("b", other))]
    assert there == [pull.strength for pull in find_tensions(person("a", other), person("b", one))]
    return sum(there)


def test_two_budgets_have_as_tension_the_share_between_them() -> None:
    assert strength(budget(800), budget(1000)) == pytest.approx(0.2)
    assert strength(budget(1000), budget(1000)) == 0.0
    assert strength(budget(0), budget(1000)) == 1.0


def test_contradictory_bounds_have_tension_1() -> None:
    assert strength({"count": "sights", "at_least": 9}, {"count": "sights", "at_most": 4}) == 1.0
    assert strength({"count": "sights", "equals": 3}, {"count": "sights", "between": [4, 6]}) == 1.0
    assert strength({"count": "sights", "equals": 4}, {"count": "sights", "between": [4, 6]}) == 0.0


@all_rows(
    ("one", "other", "pulls"),
    [
        ({"equals": "Entire"}, {"equals": "Private"}, 1.0),
        ({"equals": "Entire"}, {"one_of": ["Entire", "Private"]}, 0.0),
        ({"one_of": ["Entire"]}, {"one_of": ["Private", "Shared"]}, 1.0),
        ({"equals": "Shared"}, {"is_not": "Shared"}, 1.0),
        ({"one_of": ["Shared", "Private"]}, {"none_of": ["Shared"]}, 0.0),
        ({"at_least": 4}, {"at_most": 3}, 1.0),
        ({"at_least": "09:00"}, {"at_most": "08:00"}, 1.0),
        ({"at_most": 2}, {"at_least": 2}, 0.0),
        ({"equals": {"column": "x"}}, {"equals": {"column": "y"}}, 0.0),
    ],
)
def test_tests_of_all_items_conflict_if_no_value_passes_both(
    one: Any, other: Any, pulls: float
) -> None:
    assert strength(rooms(**one), rooms(**other)) == pulls


def test_shares_conflict_only_if_some_item_would_have_to_pass_both() -> None:
    some, most = ({**check, "at_least": share} for check, share in ((ALLOWED, 0.4), (BARRED, 0.7)))
    assert strength(some, most) == 1.0
    assert strength({**some, "at_least": 0.3}, most) == 0.0


def test_tests_of_other_items_or_columns_do_not_conflict() -> None:
    assert strength(ALLOWED, {**BARRED, "share": "meals"}) == 0.0
    assert strength(ALLOWED, {**BARRED, "among": {"city": {"equals": "Rome"}}}) == 0.0
    assert strength(ALLOWED, {"share": "stays", "where": {"kinds": {"has": "No smoking"}}}) == 0.0
    assert strength(budget(800), {"sum": [{**COST[0], "people": 3}], "at_most": 1000}) == 0.0


OSLO, BERGEN = {"city": {"equals": "Oslo"}}, {"city": {"equals": "Bergen"}}


@all_rows(("one", "other"), [
        ({"share": "stays", "where": OSLO}, {"share": "stays", "where": BERGEN}),
        ({"values": "meals", "column": "kinds", "includes": ["vegan", "Thai"]},
         {"values": "meals", "column": "kinds", "excludes": ["vegan"]}),
        ({"sum": [*COST, {"of": "stays", "column": "price"}], "at_most": 10},
         {"sum": [{"of": "stays", "column": "price"}, *COST], "at_least": 20}),
        ({"sum": COST, "per": 2, "at_most": 100}, {"sum": COST, "at_least": 300}),
    ])  # fmt: skip
def test_what_no_response_can_meet_is_a_contradiction(one: Any, other: Any) -> None:
    assert strength(one, other) == 1.0
    assert find_contradictions(person("a", one, other).constraints)


@all_rows(("one", "other"), [
        ({"share": "stays", "among": OSLO, "where": {"price": {"at_most": 10}}},
         {"share": "stays", "among": OSLO, "where": {"price": {"at_least": 20}}}),
        ({"share": "stays", "where": {"price": {"equals": 20}}},
         {"share": "stays", "where": {"price": {"equals": "20"}}}),
        ({"share": "stays", "where": OSLO}, {"share": "stays", "where": {"city": {"equals": "Ｏｓｌｏ"}}}),
        ({"count": "stays", "where": OSLO, "at_least": 1}, {"count": "stays", "where": BERGEN, "at_least": 1}),
        ({"values": "meals", "column": "kinds", "includes": ["vegan"]},
         {"values": "meals", "column": "kinds", "where": {"day": {"equals": 1}}, "excludes": ["vegan"]}),
        ({"share": "stays", "where": {"opens": {"at_most": "10:00"}}},
         {"share": "stays", "where": {"opens": {"at_least": "9:30"}}}),
    ])  # fmt: skip
def test_what_some_response_can_meet_is_no_contradiction(one: Any, other: Any) -> None:
    assert find_contradictions(person("a", one, other).constraints) == []


def test_constraints_without_a_readable_check_have_no_tension() -> None:
    assert find_tensions(person("a", None, {"mine": 1}), person("b", budget(800))) == []


def test_two_hard_constraints_contradict_if_no_response_meets_both() -> None:
    both = person("a", ALLOWED, BARRED, budget(800))
    assert [(pull.first, pull.second) for pull in find_contradictions(both.constraints)] == [
        ("c0", "c1")
    ]
    assert find_contradictions(person("a", budget(800), budget(1000)).constraints) == []
    assert find_contradictions(person("a", ALLOWED, BARRED, kind="soft").constraints) == []
