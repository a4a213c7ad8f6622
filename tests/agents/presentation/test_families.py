"""Rule-based variants say what the original says: their texts are read back, whatever stands in them."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph.agents.presentation.variants import (
    FAMILIES,
    FactDocument,
    Layout,
    Presentation,
    data_to_document,
    document_to_data,
    parse_document,
    present,
    render_document,
    write_canonical_form,
)

TRIPS = Path(__file__).parents[3] / "examples" / "group_trip" / "tasks.jsonl.gz"
NASTY = [
    "",
    " ",
    "3",
    "null",
    "true",
    "[a, b]",
    "a; b: c",
    "it is",
    "Its x is y.",
    "Entry 1",
    "- a",
    "2) b",
    "|x|",
    "## For",
]
TEXT = st.one_of(
    st.text(max_size=12), st.sampled_from(NASTY), st.text('abc ;:,.|*"\\[]#\n-1', max_size=12)
)
SCALAR = st.one_of(TEXT, st.integers(-99, 99), st.floats(-1e6, 1e6), st.booleans(), st.none())
RECORD = st.dictionaries(
    TEXT, st.one_of(SCALAR, st.lists(TEXT, max_size=3)), min_size=1, max_size=4
)
NAMES = st.lists(TEXT, min_size=2, max_size=4, unique=True)


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(NAMES)
    sentences = st.lists(TEXT, min_size=1, max_size=3)
    status = st.dictionaries(
        TEXT.filter(lambda name: name != "stakeholder"),
        st.sampled_from(["met", "not met"]),
        max_size=3,
    )
    shared = st.fixed_dictionaries({"item": TEXT, "serves": st.permutations(names)})
    return {
        "itinerary": draw(st.lists(RECORD, min_size=1, max_size=4)),
        "stakeholders": {name: draw(sentences) for name in names},
        "summary": {name: draw(status) for name in names},
        "shared": draw(st.lists(shared, max_size=4)),
        "tradeoffs": draw(st.lists(TEXT, max_size=4)),
    }


def without_empty(plan: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in plan.items() if part}


@given(plans())
def test_every_variant_says_the_same_and_nothing_is_discarded(plan: dict[str, Any]) -> None:
    check_variants(plan)


@pytest.mark.exhaustive
@settings(max_examples=1000, deadline=None)
@given(plans())
def test_so_do_the_variants_of_a_thousand_plans(plan: dict[str, Any]) -> None:
    check_variants(plan)


def check_variants(plan: dict[str, Any]) -> None:
    found = present(plan)
    assert found is not None
    assert found.original.data == without_empty(plan)
    assert found.discarded == {}
    document = data_to_document(plan)
    assert document is not None
    texts = [found.original.text, *(variant.text for variant in found.variants)]
    assert len(set(texts)) == len(texts)
    for text in texts:
        assert write_canonical_form(parse_document(text)) == write_canonical_form(document)


@given(st.lists(RECORD, min_size=1, max_size=4))
def test_a_list_of_records_is_an_itinerary_whose_order_stays(records: list[dict[str, Any]]) -> None:
    found = present(records)
    assert found is not None
    assert {json.dumps(one.data, sort_keys=True) for one in (found.original, *found.variants)} == {
        json.dumps(records, sort_keys=True)
    }


def trip(people: int) -> dict[str, Any]:
    names = [f"user{number}" for number in range(1, people + 1)]
    return {
        "itinerary": [
            {"time": "09:00", "what": "Gulangyu", "price": 35},
            {"time": "12:00", "what": "noodles"},
        ],
        "stakeholders": {name: [f"{name} is served at noon"] for name in names},
        "summary": {name: {"budget": "met"} for name in names},
        "shared": [{"item": item, "serves": names} for item in ("noodles", "ferry", "park")],
        "tradeoffs": ["no hike for user2", "an early start", "one museum less"],
    }


def test_the_two_orders_of_people_are_undefined_for_two_and_no_family_is_padded() -> None:
    two = present(trip(2))
    three = present(trip(3))
    assert two is not None
    assert three is not None
    orders = {"stakeholder-section-order", "satisfaction-summary-order"}
    assert two.undefined == dict.fromkeys(orders, "1 of 5 versions exist")
    assert three.undefined == {}
    assert [variant.family for variant in three.variants] == [
        name for name in FAMILIES for _ in range(5)
    ]
    assert present("a text") is None
    assert present({"itinerary": [], "budget": []}) is None


def test_a_variant_that_says_something_else_is_discarded_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planted: families that change a price or a status, leave a person out, or drop the order of the day."""
    document = data_to_document(trip(3))
    assert document is not None
    shown = render_document(document)
    person = '## For user3\n- text: "user3 is served at noon"\n'
    for before, after in [
        ("price: 35", "price: 36"),
        ("budget: met", "budget: not met"),
        (person, ""),
    ]:
        assert write_canonical_form(
            parse_document(shown.replace(before, after, 1))
        ) != write_canonical_form(document)

    def plant(document: FactDocument, rng: Any) -> Iterator[tuple[FactDocument, Layout]]:
        itinerary = document[0]._replace(records=document[0].records[::-1])
        yield from [
            (document[1:], Layout()),
            (document[:-1], Layout()),
            ((itinerary, *document[1:]), Layout()),
        ]

    monkeypatch.setitem(FAMILIES, "section-header", plant)
    found = present(trip(3))
    assert found is not None
    assert found.discarded == {"section-header": 3}
    assert found.undefined["section-header"] == "0 of 5 versions exist"


def trip_presentations() -> Iterator[tuple[Any, Presentation]]:
    with gzip.open(TRIPS, "rt", encoding="utf-8") as file:
        for line in file:
            for response in json.loads(line)["responses"]:
                found = present(response["data"])
                assert found is not None
                yield from ((response["data"], one) for one in (found.original, *found.variants))


def test_all_plans_of_the_group_trips_are_read_back_as_they_were() -> None:
    found = list(trip_presentations())
    assert len(found) == 60 * 16
    assert all(one.data == data for data, one in found)
    document = data_to_document(found[0][0])
    assert document is not None
    assert document_to_data(document) == found[0][0]
