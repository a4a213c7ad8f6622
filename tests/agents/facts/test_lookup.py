"""Look-up of claims: findings and their descriptions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.facts.lookup import describe_finding
from jurygraph.agents.facts.values import normalise, value_sort_key
from tests.agents.facts.examples import (
    PLACES,
    Rows,
    claim_outcomes,
    look_up_claims,
    make_facts,
    meals,
    rows_of_tools,
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
        "alternatives": [],
    }


BY_NAME_AND_CITY = {"table": "places", "pattern": "(?P<name>[^,]+), (?P<city>[^,]+)"}


@pytest.mark.parametrize("empty", [None, "", " "])
def test_a_claim_without_a_part_of_the_key_matches_no_row(empty: Any) -> None:
    rows = [*PLACES, {"name": "Coco Bambu", "city": empty}, {"name": empty, "city": "Rockford"}]
    forms = [{"table": "places", "pattern": "(?P<name>[^,]*),(?P<city>.*)"}]
    facts = make_facts(rows, claims={"forms": forms})
    assert claim_outcomes(facts, "Coco Bambu,Rockford", "Coco Bambu,", ",Rockford", "Burger King,", ",") == [
        "confirmed",
        "elsewhere",
        "unknown",
        "unknown",
        "unknown",
    ]
    assert finding("Coco Bambu,", facts)["places"] == ["Rockford"]
    assert finding("Coco Bambu,Peoria", facts)["places"] == ["Rockford"]


# Attributes


ROUTES = [
    {"route": "F1", "on": "2022-03-01", "to": "Rome", "cost": 100},
    {"route": "F2", "on": None, "to": "Rome", "cost": 100},
    {"route": "F3", "to": "Rome", "cost": 100},
]


def look_up_legs(*records: Mapping[str, Any], **form: Any) -> list[dict[str, Any]]:
    claims = {
        "at": ["$[*].leg"],
        "forms": [{"table": "routes", "pattern": r"(?P<route>\w+)(?: to (?P<to>\w+))?(?: for (?P<cost>.+))?", **form}],
        "beside": {"on": {"field": "days", "map": {"1": "2022-03-01", "2": "2022-03-02"}}},
    }
    facts = {"tables": {"routes": {"key": ["route"], "rows": ROUTES}}, "claims": {"legs": claims}}
    return look_up_claims(facts, list(records))["legs"]


def test_a_date_comes_from_the_day_of_the_record() -> None:
    right, wrong = look_up_legs({"leg": "F1", "days": 1}, {"leg": "F1", "days": 2})
    assert (right["found"], wrong["found"]) == ("confirmed", "differs")
    assert wrong["differs"] == ["on"]
    assert describe_finding(wrong) == "'F1' is there in routes, but on is 2022-03-01, not 2022-03-02"  # type: ignore[arg-type]


# Rows that share a key


SUBWAYS: Rows = [
    {"name": "Subway", "city": "Peoria", "cost": 30, "since": 2},
    {"name": "Subway", "city": "Peoria", "cost": 20, "since": 1},
    {"name": "Subway", "city": "Peoria", "cost": 20.0, "since": 3},
]


def test_the_first_row_of_a_key_counts_and_differing_ones_are_listed() -> None:
    facts = make_facts(SUBWAYS, order="since")
    right, wrong, silent = meals(facts, "Subway, Peoria, 20", "Subway, Peoria, 30", "Subway, Peoria")
    assert [right["found"], wrong["found"], silent["found"]] == ["confirmed", "differs", "confirmed"]
    assert [one["row"] for one in (right, wrong, silent)] == [2, 2, 2]
    assert [one["alternatives"] for one in (right, wrong, silent)] == [[1], [1], [1]]
    assert describe_finding(silent) == "'Subway, Peoria' is there in places (rows 1 say otherwise)"  # type: ignore[arg-type]
    assert (
        describe_finding(wrong)
        == "'Subway, Peoria, 30' is there in places, but cost is 20, not 30 (rows 1 say otherwise)"
    )  # type: ignore[arg-type]


CITIES = ["Rockford", "Peoria"]
NAMES = ["Coco Bambu", "Coco Bambo", "Café", "Cafe", "Cafe\u0301", "Subway"]
COSTS = [None, 7, 7.0, 25.5, 1200]
some_rows = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(NAMES),
            "city": st.sampled_from(CITIES),
            "cost": st.sampled_from(COSTS),
            "since": st.integers(1, 3),
        }
    ),
    min_size=1,
    max_size=12,
)
some_texts = st.lists(
    st.builds(
        ", ".join,
        st.tuples(st.sampled_from([*NAMES, "Coco"]), st.sampled_from(CITIES))
        | st.tuples(
            st.sampled_from(NAMES), st.sampled_from(CITIES), st.sampled_from(["7", "$7.0", "25.5", "1,200", "x"])
        ),
    ),
    min_size=1,
    max_size=6,
)


def without_row_number(one: Mapping[str, Any], rows: Rows) -> list[Any]:
    """Return a finding with the content of its row in place of the row's number."""
    content = {
        column: sorted((c, value_sort_key(v)) for c, v in one[column].items()) for column in ("values", "claimed")
    }
    others = sorted(
        sorted((c, value_sort_key(v)) for c, v in rows[number - 1].items()) for number in one["alternatives"]
    )
    return [one[field] for field in ("found", "text", "differs", "places")] + [content, others]


@given(rows=some_rows, texts=some_texts, order=st.sampled_from([None, "since"]), data=st.data())
def test_the_order_of_the_rows_changes_nothing_but_their_numbers(
    rows: Rows, texts: Sequence[str], order: str | None, data: st.DataObject
) -> None:
    turned = data.draw(st.permutations(rows))
    one, other = (meals(make_facts(each, order=order), *texts) for each in (rows, turned))
    assert [without_row_number(each, rows) for each in one] == [without_row_number(each, turned) for each in other]


@given(rows=some_rows, texts=some_texts)
def test_a_tool_with_the_rows_gives_the_same_findings(rows: Rows, texts: Sequence[str]) -> None:
    """A tool is called for one key, so nothing is known about names nearby or elsewhere."""
    rows = [{**row, "name": normalise(row["name"])} for row in rows]
    with rows_of_tools(rows):
        by_tool = meals(make_facts(tool="maps"), *texts, tools=FIND_PLACE)
    for one, other in zip(meals(make_facts(rows), *texts), by_tool, strict=True):
        if one["row"] is None:
            assert (other["found"], other["row"]) == ("unknown", None)
        else:
            given = [
                row for row in rows if (row["name"], row["city"]) == (one["values"]["name"], one["values"]["city"])
            ]
            assert without_row_number(one, rows) == without_row_number(other, given)


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
    assert nights(coco, "Coco  Bambu, Rockford", "-", "x", "x") == [(coco, "confirmed", 2), ("x", "unread", 2)]


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
HOSTILE = {
    "one letter": "a" * LONG,
    "commas": ", " * (LONG // 2),
    "names and cities": "Coco Bambu, Rockford, " * (LONG // 22),
    "brackets": "(" * LONG,
    "marks": "Coco\u0301\u0323" * (LONG // 6) + ", Rockford",
    "digits": "Coco Bambu, Rockford, " + "7" * LONG,
    "white space": "Coco Bambu" + " " * LONG + "x, Rockford",
    "ligatures": "\ufdfa" * LONG + ", Rockford",
}


@all_rows("text", HOSTILE.values())
def test_a_very_long_text_is_looked_up_and_not_found(text: str) -> None:
    assert claim_outcomes(FACTS, text) != ["confirmed"]


@pytest.mark.landing
def test_a_text_may_be_split_into_very_many_claims() -> None:
    assert Counter(claim_outcomes(make_facts(claims={"split": ","}), ", a" * 20_000)) == {"unread": 20_000}
