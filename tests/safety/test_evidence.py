"""Evidence: a quotation is found where its letters stand, in whatever white space and Unicode forms; else nowhere."""

import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jurygraph.safety.evidence import Passage, Text
from jurygraph.safety.folding import visible
from tests.examples import at_most

ODD = (
    *("a", "B", " ", "\n", "\t", "\u00a0", "\u3000", "\u2028", "e\u0301", "é", "\u0301", "\u0327", "ﬁ", "½", "…"),
    *("’", "“", "–", "中", "が", "か\u3099", "ｶﾞ", "\uff9e", "가", "\u1100\u1161", "\u11a8", "ﷺ", "\u0344"),
    *("я", "ά", "😀", "\u200d", "1", "."),
)
TEXTS = st.lists(st.sampled_from(ODD), max_size=12).map("".join) | st.text(st.characters(codec="utf-8"), max_size=30)
SPACES = st.text(" \n\t\u00a0\u3000", min_size=1, max_size=3)
FORMS = st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"])
PLAN = "Day 1: we take the 7:40 flight to New Orleans.\n\nLunch at  Café Coeur, dinner at Roma; 12 € each."


def folded(text: str) -> str:
    """What two texts have in common that differ in white space and Unicode forms alone, in the plainest words."""
    alike = text.translate(str.maketrans("‘’ʼ“”‐‑‒–—―", "'''\"\"------"))
    plain = visible(re.sub(r"\s+", " ", unicodedata.normalize("NFKC", alike)))
    return re.sub(r"\s+", " ", plain).strip()


def stands(found: Passage | None, text: str) -> bool:
    return found is not None and text[found.start : found.end] == found.text


@st.composite
def quoted(draw: st.DrawFn) -> tuple[str, str]:
    """A text, and a passage of it as somebody may write it down."""
    before, passage, after = draw(TEXTS), f"({draw(TEXTS)})", draw(TEXTS)
    words = re.split(r"\s+", unicodedata.normalize(draw(FORMS), passage))
    return f"{before}\n{passage}\n{after}", draw(SPACES).join(words)


@given(quoted())
@settings(max_examples=at_most(500))
def test_a_passage_is_found_whatever_its_white_space_and_unicode_forms(case: tuple[str, str]) -> None:
    text, quotation = case
    found = Text(text).find(quotation)
    assert stands(found, text)
    assert found is not None
    assert folded(found.text) == folded(quotation)


@given(TEXTS, TEXTS)
@settings(max_examples=at_most(1000))
@example("xe\u0301", "e")
@example("x\u0301 y", "x")
def test_the_offsets_are_right_for_whatever_is_found(text: str, quotation: str) -> None:
    found = Text(text).find(quotation)
    if found is not None:
        assert stands(found, text)
        assert folded(found.text) == folded(quotation)
        assert folded(quotation) in folded(text)


@given(TEXTS, TEXTS)
def test_what_stands_nowhere_in_a_text_is_not_found(text: str, quotation: str) -> None:
    if folded(quotation) not in folded(text):
        assert Text(text).find(quotation) is None


@given(TEXTS, st.data())
def test_every_passage_between_words_that_weighs_enough_bears_a_verdict(text: str, data: st.DataObject) -> None:
    whole = f"The plan says {text} and nothing else matters"
    assert stands(Text(whole).supports("and nothing else matters"), whole)


WORDS = re.findall(r"\w+", PLAN)


@pytest.mark.parametrize("place", range(len(WORDS)))
def test_a_quotation_with_one_word_changed_is_lost(place: int) -> None:
    spans = [found.span() for found in re.finditer(r"\w+", PLAN)]
    start, end = spans[place]
    for other in ("never", WORDS[place] + "s", WORDS[place][:-1], WORDS[place].swapcase()):
        if other != WORDS[place]:
            assert Text(PLAN).find(PLAN[:start] + other + PLAN[end:]) is None


@pytest.mark.parametrize(
    "quotation",
    [
        "we take the 7:40 flight",
        "Lunch at Café Coeur",
        "Lunch at Cafe\u0301 Coeur,\tdinner at Roma",
        "… dinner at Roma; 12 € each.",
        "...we take the 7:40 flight to New Orleans...",
        PLAN,
    ],
)
def test_what_stands_in_the_response_bears_a_verdict(quotation: str) -> None:
    assert stands(Text(PLAN).supports(quotation), PLAN)


@pytest.mark.parametrize(
    ("quotation", "why"),
    [
        ("", "blank"),
        (" \n", "blank"),
        ("...", "blank"),
        ("Roma", "anybody hits upon four letters"),
        ("7:40", "anybody hits upon three digits"),
        ("ake the 7:40 flight", "it begins within a word"),
        ("we take the 7:40 fli", "it ends within a word"),
        ("We take the 7:40 flight", "a letter is another"),
        ("we take the 7:40 train", "a word is another"),
        ("we take the … flight to New Orleans", "something is left out within it"),
        ("dinner at Roma. Lunch at Café Coeur", "the order is another"),
    ],
)
def test_what_anybody_could_have_said_bears_none(quotation: str, why: str) -> None:
    assert Text(PLAN).supports(quotation) is None, why


def test_a_whole_line_bears_a_verdict_however_short() -> None:
    assert Text("18").supports("18") == Passage(0, 2, "18")
    assert Text("So:\n 18 \nas asked").supports("18") == Passage(5, 7, "18")
    assert Text("So 18 it is, as asked").supports("18") is None


def test_letters_that_are_words_weigh_more() -> None:
    assert Text("我们坐早上的航班去新奥尔良").supports("航班") is not None
    assert Text("我们坐早上的航班去新奥尔良").supports("坐") is None


def test_a_letter_is_never_cut_from_its_accent() -> None:
    assert Text("Cafe\u0301 Roma").find("Cafe") is None
    assert Text("Cafe\u0301 Roma").find("Café") == Passage(0, 5, "Cafe\u0301")
    assert Text("ﬁne").find("ine") is None


def test_the_first_of_several_passages_is_found() -> None:
    assert Text("to be, to be").find("to be") == Passage(0, 5, "to be")


def test_what_leaves_no_mark_is_none_of_the_letters() -> None:
    text = "Dinner at The Gil\u200bded Lan\u00adtern."
    found = Text(text).supports("The Gilded Lantern")
    assert found is not None
    assert found.text == "The Gil\u200bded Lan\u00adtern"
    assert Text("Dinner at The Gilded Lantern.").supports("The Gil\u200bded Lantern") is not None


def test_a_number_is_never_cut() -> None:
    for text, quotation in (
        ("It costs 1,250 dollars per night.", "250 dollars per night"),
        ("Use 0.5 litres of water.", "5 litres of water"),
        ("It is -5 degrees outside.", "5 degrees outside"),
        ("The total is 12,500 in all.", "The total is 12"),
    ):
        assert Text(text).find(quotation) is not None
        assert Text(text).supports(quotation) is None
    assert Text("Lunch is at 12, dinner at 7.").supports("Lunch is at 12") is not None


def test_a_line_of_signs_bears_nothing() -> None:
    assert Text("- \nIt is kind.\n-").supports("-") is None


@pytest.mark.parametrize(
    ("text", "quotation"),
    [("a " * 200_000, "a"), ("a" + "\u0301\u0316" * 50_000, "a\u0301"), ("a\n" * 200_000, "b")],
)
def test_a_long_text_takes_no_longer_than_it_must(text: str, quotation: str) -> None:
    """With the square of their length these would take minutes."""
    assert Text(text).supports(quotation) in (None, Text(text).find(quotation))
