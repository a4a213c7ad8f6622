"""Responses as their policy wrote them: variants in their own words, by what `extract` reads in them."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jurygraph as jg
from jurygraph.agents.presentation.prose import (
    Prose,
    first_difference,
    join_pieces,
    keep_faithful_variants,
    make_prose_presentations,
    read_prose,
    split_into_pieces,
)
from jurygraph.agents.presentation.variants import Presentation, PresentationSet
from jurygraph.planner import Planner
from jurygraph.schema import Response, TaskView
from tests.rows import all_rows

PEOPLE = ("ann", "bob", "cy")
TEXT = """\
## Itinerary

We take the ferry at 9:00. Ann, Bob and Cy share a cabin.

## For everybody

1. Ann gets the step-free ferry. She is fine.
2. Bob gets time for photos.
3. Cy gets no hike, which was too long.

Ann: mobility met. Bob: quiet not met. Cy: hiking not met.

We gave up the hike for Ann. Dinner is early for Cy. One museum had to go.
"""
RECORDS: dict[str, list[dict[str, Any]]] = {
    "itinerary": [{"quote": "We take the ferry at 9:00", "what": "ferry"}],
    "stakeholders": [
        {"quote": "Ann gets the step-free ferry", "person": "ann"},
        {"quote": "Bob gets time for photos", "person": "bob"},
        {"quote": "Cy gets no hike", "person": "cy"},
    ],
    "summary": [
        {"quote": "Ann: mobility met", "person": "ann", "need": "mobility", "status": "met"},
        {"quote": "Bob: quiet not met", "person": "bob", "need": "quiet", "status": "not met"},
        {"quote": "Cy: hiking not met", "person": "cy", "need": "hiking", "status": "not met"},
    ],
    "shared": [{"quote": "Ann, Bob and Cy share a cabin", "item": "cabin"}],
    "tradeoffs": [
        {"quote": "We gave up the hike for Ann", "what": "hike"},
        {"quote": "Dinner is early for Cy", "what": "Dinner"},
        {"quote": "One museum had to go", "what": "museum"},
    ],
}
VIEW = TaskView(id="t", query="A day out?")


def reads(*replies: Mapping[str, Any]) -> jg.testing.ScriptedJudge:
    return jg.testing.ScriptedJudge([json.dumps(reply) for reply in replies])


def read(
    text: str = TEXT,
    records: Mapping[str, Any] = RECORDS,
    people: Sequence[str] = PEOPLE,
) -> Prose | str:
    response = Response(id="a", text=text)
    with jg.Jury(model=reads(records, records), evaluators=["criteria"]) as jury:
        return jury.run(
            Planner(jury).arun_with_client(
                lambda client: read_prose(VIEW, response, people, client)
            )
        )


@pytest.fixture(scope="module")
def prose() -> Prose:
    found = read()
    assert isinstance(found, Prose)
    return found


# Pieces


@given(st.text(alphabet="Ab. \n-#1:*|!?“”。", max_size=60))
def test_the_pieces_of_any_text_are_the_text(text: str) -> None:
    pieces, end = split_into_pieces(text)
    assert join_pieces(pieces, end) == text
    assert all(piece.text.strip() == piece.text != "" for piece in pieces)


@all_rows(
    ("text", "pieces"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("At 5 p.m. it is 3.5 km, e.g. by ferry.", ["At 5 p.m. it is 3.5 km, e.g. by ferry."]),
        ("- One. Two.\n2) Three", ["One.", "Two.", "Three"]),
        ("# Head. Line\nFor Ann:\nText.", ["Head. Line", "For Ann:", "Text."]),
        ("| a. b | c |", ["| a. b | c |"]),
    ],
)
def test_a_piece_is_a_heading_an_item_or_a_sentence(text: str, pieces: list[str]) -> None:
    assert [piece.text for piece in split_into_pieces(text)[0]] == pieces


def test_a_piece_is_about_what_is_recorded_from_it(prose: Prose) -> None:
    about = {piece.text: (set(piece.topics), set(piece.people)) for piece in prose.pieces}
    assert about["Bob gets time for photos."] == ({"stakeholders"}, {"bob"})
    assert about["Bob: quiet not met."] == ({"summary"}, {"bob"})
    assert about["She is fine."] == (set(), set())
    assert about["One museum had to go."] == ({"tradeoffs"}, set())


# Families


def variants(prose: Prose, family: str) -> list[str]:
    made = make_prose_presentations(prose)
    return [variant.text for variant in made.variants if variant.family == family]


def test_each_family_has_five_texts_of_the_policys_own_words(prose: Prose) -> None:
    made = make_prose_presentations(prose)
    assert made.original.text == TEXT
    assert made.undefined == {}
    assert len({variant.text for variant in made.variants} | {TEXT}) == 36
    words = Counter(TEXT.split())
    orders = ("stakeholder-section-order", "satisfaction-summary-order", "trade-off-order")
    for family in orders:
        assert all(Counter(text.split()) == words for text in variants(prose, family))
    assert make_prose_presentations(prose) == made


def test_the_section_of_a_person_moves_with_what_follows_it_and_numbers_stay(prose: Prose) -> None:
    for text in variants(prose, "stakeholder-section-order"):
        lines = [line for line in text.splitlines() if line[:2] in ("1.", "2.", "3.")]
        assert [line[:3] for line in lines] == ["1. ", "2. ", "3. "]
        assert {line[3:] for line in lines} == {
            "Ann gets the step-free ferry. She is fine.",
            "Bob gets time for photos.",
            "Cy gets no hike, which was too long.",
        }


def test_names_that_share_something_change_places(prose: Prose) -> None:
    texts = variants(prose, "shared-benefit-attribution")
    assert any("Cy, Bob and Ann share a cabin" in text for text in texts)
    assert all(text.count(" share a cabin") == 1 for text in texts)


def test_headings_that_are_known_are_renamed(prose: Prose) -> None:
    texts = variants(prose, "section-header")
    assert texts[0].startswith("## Schedule\n\nWe take")


@all_rows(
    ("text", "family"),
    [
        ("Ann walks far. But Bob stays near.", "stakeholder-section-order"),
        ("## For Ann\nAnn walks far.\n\nBob stays near.", "stakeholder-section-order"),
        ("Ann walks far. Bob stays near.", "stakeholder-section-order"),
        ("Ann walks far. Bob stays near.", "shared-benefit-attribution"),
        ("Ann walks far. Bob stays near.", "section-header"),
        ("Ann walks far | Bob stays near.", "format-conversion"),
        ("| Ann walks far |\n|---|\n\nBob stays near.", "stakeholder-section-order"),
        ("| Ann walks far |\n|---|\n\nBob stays near.", "low-level-formatting"),
    ],
)
def test_a_family_is_undefined_where_the_text_has_no_such_thing(text: str, family: str) -> None:
    """Such as a passage that refers back, one person with a heading, two with one other order, or no known heading."""
    records = {kind: [] for kind in RECORDS}
    records["stakeholders"] = [
        {"quote": "Ann walks far", "person": "ann"},
        {"quote": "Bob stays near", "person": "bob"},
    ]
    found = read(text, records)
    assert isinstance(found, Prose)
    assert family in make_prose_presentations(found).undefined


def test_people_are_those_of_the_text_where_the_task_names_none() -> None:
    records = {kind: [] for kind in RECORDS}
    records["stakeholders"] = [
        {"quote": "Ann walks far", "person": "Ann"},
        {"quote": "Bob stays near", "person": "Bob"},
    ]
    found = read("Ann walks far. Bob stays near. Ann and Bob dine.", records, ())
    assert isinstance(found, Prose)
    assert found.people == ("Ann", "Bob")


@all_rows("text", ["", "  \n", "A text of which no record is found."])
def test_what_cannot_be_read_is_left_out_with_the_reason(text: str) -> None:
    assert isinstance(read(text), str)


# What a model writes of it


def test_statements_are_the_pieces_with_their_values_and_people(prose: Prose) -> None:
    statements = {statement.text: statement for statement in prose.statements_by_name().values()}
    assert "Itinerary" not in statements
    ferry = statements["We take the ferry at 9:00."]
    assert (ferry.kind, ferry.verbatim_values, ferry.is_constraint_unmet) == (
        "itinerary",
        ("ferry",),
        False,
    )
    bob = statements["Bob: quiet not met."]
    assert (bob.people, bob.is_constraint_unmet) == (frozenset({"bob"}), True)


@all_rows(
    ("change", "difference"),
    [
        ({}, None),
        ({"itinerary": "We take the ferry at 10:00"}, "numbers, read back"),
        ({"summary": "not met"}, "statuses, read back"),
        ({"tradeoffs": "No museum had to go"}, "negations, read back"),
        ({"tradeoffs": "One more museum had to go"}, "comparatives, read back"),
        ({"tradeoffs": "Dora had to go"}, None),
    ],
)
def test_what_is_read_back_is_compared(
    prose: Prose, change: dict[str, str], difference: str | None
) -> None:
    """The last is what it cannot see: a name of nobody in the task."""
    records = json.loads(json.dumps(RECORDS))
    text = TEXT
    for kind, words in change.items():
        if kind == "summary":
            records[kind][0]["status"] = words
            continue
        old = records[kind][-1]["quote"]
        text = text.replace(old, words)
        records[kind][-1] |= {"quote": words}
        if "museum" not in words and kind == "tradeoffs":
            records[kind][-1]["what"] = "Dora"
    found = read(text, records)
    assert isinstance(found, Prose)
    assert first_difference(prose.text_facts, found.text_facts) == difference


def test_a_written_variant_that_reads_otherwise_makes_its_family_undefined(prose: Prose) -> None:
    other = TEXT.replace("9:00", "10:00")
    kept = [Presentation("paraphrase", 1, f"Well. {TEXT}", None)]
    texts = [*kept, Presentation("topic-position", 1, other, None)]
    written = PresentationSet(prose.original, texts, broken=Counter(names=1))
    changed = {**RECORDS, "itinerary": [{"quote": "We take the ferry at 10:00", "what": "ferry"}]}
    judge = jg.testing.ScriptedJudge({"10:00": json.dumps(changed), "": json.dumps(RECORDS)})
    with jg.Jury(model=judge, evaluators=["criteria"]) as jury:
        checked = jury.run(
            Planner(jury).arun_with_client(
                lambda client: keep_faithful_variants(prose, VIEW, written, client)
            )
        )
    assert checked.variants == kept
    assert checked.undefined == {"topic-position": "0 of 1 versions are left"}
    assert checked.broken == {"names": 1, "numbers, read back": 1}
