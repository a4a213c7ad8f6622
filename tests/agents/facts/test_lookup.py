"""Look-up of claims: findings and their descriptions."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.facts.evaluators import describe_finding
from tests.agents.facts.examples import (
    PLACES,
    Rows,
    claim_outcomes,
    look_up_claims,
    make_facts,
    meals,
)
from tests.rows import all_rows

FACTS = make_facts()
FIND_PLACE = {"maps": "tests.agents.facts.examples.find_place"}


def finding(text: str, facts: Any = FACTS) -> dict[str, Any]:
    (one,) = meals(facts, text)
    return one


# Each outcome


@all_rows(
    ("text", "outcome"),
    [
        ("Coco Bambu, Rockford", "confirmed"),
        ("Coco Bambu, Rockford, 72", "confirmed"),
        ("Coco Bambu, Rockford, $72.00", "confirmed"),
        ("Coco  Bambu , Rockford", "confirmed"),
        ("Cafe\u0301 Southall, Rockford", "confirmed"),
        ("Coco Bambu, Rockford, 73", "differs"),
        ("Coco Bambu, Rockford, much", "differs"),
        ("Subway, Rockford", "elsewhere"),
        ("Coco Bambo, Rockford", "unknown"),
        ("Coco bambu, Rockford", "unknown"),
        ("Cafe Southall, Rockford", "unknown"),
        ("Coco Bambu", "unread"),
    ],
)
def test_outcomes_of_claims(text: str, outcome: str) -> None:
    assert claim_outcomes(FACTS, text) == [outcome]


def test_a_finding_holds_both_sides() -> None:
    facts = make_facts(claims={"beside": {"day": {"field": "days"}}})
    (one,) = look_up_claims(facts, [{"meal": "Coco Bambu, Rockford, 70", "days": 3}])["meals"]
    assert one == {
        "at": ["$[0]['meal']"],
        "text": "Coco Bambu, Rockford, 70",
        "found": "differs",
        "table": "places",
        "row": 1,
        "values": {"day": 3, "name": "Coco Bambu", "city": "Rockford", "cost": 72},
        "own": ["day"],
        "claimed": {"cost": "70"},
        "differs": ["cost"],
        "places": [],
    }


BY_NAME_AND_CITY = {"table": "places", "pattern": "(?P<name>[^,]+), (?P<city>[^,]+)"}


@pytest.mark.parametrize("empty", [None, "", " "])
def test_a_claim_without_a_part_of_the_key_matches_no_row(empty: Any) -> None:
    rows = [*PLACES, {"name": "Coco Bambu", "city": empty}, {"name": empty, "city": "Rockford"}]
    forms = [{"table": "places", "pattern": "(?P<name>[^,]*),(?P<city>.*)"}]
    facts = make_facts(rows, claims={"forms": forms})
    assert claim_outcomes(
        facts, "Coco Bambu,Rockford", "Coco Bambu,", ",Rockford", "Burger King,", ","
    ) == [
        "confirmed",
        "elsewhere",
        "unknown",
        "unknown",
        "unknown",
    ]
    assert finding("Coco Bambu,", facts)["places"] == ["Rockford"]
    assert finding("Coco Bambu,Peoria", facts)["places"] == ["Rockford"]


# Rows that share a key


SUBWAYS: Rows = [
    {"name": "Subway", "city": "Peoria", "cost": 30, "since": 2},
    {"name": "Subway", "city": "Peoria", "cost": 20, "since": 1},
]


@pytest.mark.parametrize(("order", "cost", "row"), [("since", 20, 2), (None, 30, 1)])
def test_the_first_row_of_a_key_counts(order: str | None, cost: int, row: int) -> None:
    right, wrong = meals(
        make_facts(SUBWAYS, order=order), f"Subway, Peoria, {cost}", "Subway, Peoria, 25"
    )
    assert [(one["found"], one["row"]) for one in (right, wrong)] == [
        ("confirmed", row),
        ("differs", row),
    ]
    text = f"'Subway, Peoria, 25' is there in places, but cost is {cost}, not 25"
    assert describe_finding(wrong) == text  # type: ignore[arg-type]


def test_a_tool_with_the_rows_gives_the_same_findings() -> None:
    """A tool is called for one key, so nothing is known about names elsewhere."""
    texts = [
        "Coco Bambu, Rockford",
        "Coco Bambu, Rockford, 7",
        "Subway, Rockford",
        "Coco, Rockford",
    ]
    by_tool = [one["found"] for one in meals(make_facts(tool="maps"), *texts, tools=FIND_PLACE)]
    assert by_tool == ["confirmed", "differs", "unknown", "unknown"]
    assert [one["found"] for one in meals(make_facts(), *texts)] == [
        "confirmed",
        "differs",
        "elsewhere",
        "unknown",
    ]


# Merged


NIGHTS = {"at": ["$[*].stay"], "forms": [BY_NAME_AND_CITY], "order": "days", "merged": "nights"}


def nights(*stays: str, rows: Rows = PLACES, **claims: Any) -> list[tuple[str, str, int]]:
    records = [{"stay": stay, "days": day} for day, stay in enumerate(stays, start=1)]
    findings = look_up_claims(make_facts(rows, claims={**NIGHTS, **claims}), records)["meals"]
    return [(one["text"], one["found"], one["values"]["nights"]) for one in findings]


def test_equal_successive_claims_are_merged_with_their_number() -> None:
    coco, mango = "Coco Bambu, Rockford", "Flying Mango, Rockford"
    assert nights(coco, coco, mango, "Coco  Bambu, Rockford") == [
        (coco, "confirmed", 2),
        (mango, "confirmed", 1),
        ("Coco  Bambu, Rockford", "confirmed", 1),
    ]
    assert nights(coco, "Coco  Bambu, Rockford", "-", "x", "x") == [
        (coco, "confirmed", 2),
        ("x", "unread", 2),
    ]


def test_equal_claims_with_a_gap_are_not_merged() -> None:
    coco = "Coco Bambu, Rockford"
    assert [number for _, _, number in nights(coco, "-", coco, coco)] == [1, 2]
    records = [{"stay": coco, "days": day} for day in ("soon", "soon", 1, 2)]
    findings = look_up_claims(make_facts(claims=NIGHTS), records)["meals"]
    assert [one["values"]["nights"] for one in findings] == [2, 1, 1]


@given(st.permutations(list(enumerate(["a, X", "a, X", "b, X", "b, Y", "b, Y", "-", "b, Y", "c"]))))
def test_the_order_of_the_records_changes_no_finding(stays: list[tuple[int, str]]) -> None:
    rows = [{"name": "a", "city": "X"}, {"name": "b", "city": "Y"}]
    records = [{"stay": stay, "days": day} for day, stay in stays]
    findings = look_up_claims(make_facts(rows, claims=NIGHTS), records)["meals"]
    assert [(one["text"], one["found"], one["values"]["nights"]) for one in findings] == [
        ("a, X", "confirmed", 2),
        ("b, X", "elsewhere", 1),
        ("b, Y", "confirmed", 2),
        ("b, Y", "confirmed", 1),
        ("c", "unread", 1),
    ]


# Hostile data


LONG = 10**6
HOSTILE = [
    "a" * LONG,
    ", " * LONG,
    "Coco Bambu, Rockford, " * (LONG // 22),
    "Coco\u0301\u0323" * (LONG // 6) + ", Rockford",
]
HOSTILE += [
    "Coco Bambu, Rockford, " + "7" * LONG,
    "Coco Bambu" + " " * LONG + "x, Rockford",
    "\ufdfa" * LONG + ", R",
]


@all_rows("text", HOSTILE)
def test_a_very_long_text_is_looked_up_and_not_found(text: str) -> None:
    assert claim_outcomes(FACTS, text) != ["confirmed"]


@pytest.mark.landing
def test_a_text_may_be_split_into_very_many_claims() -> None:
    assert Counter(claim_outcomes(make_facts(claims={"split": ","}), ", a" * 20_000)) == {
        "unread": 20_000
    }
