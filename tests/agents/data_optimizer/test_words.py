"""The definition of a word."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.data_optimizer.measures import MAX_WORD_LENGTH, words
from jurygraph.safety.text_folding import remove_invisible
from tests.rows import all_rows


@all_rows(
    ("text", "found"),
    [
        ("", []),
        (" \n\t", []),
        ("The Cat's mat.", ["the", "cat", "'", "s", "mat", "."]),
        ("17 + 25=42", ["17", "+", "25", "=", "42"]),
        ("今天 tea", ["今", "天", "tea"]),
        ("STRASSE straße", ["strasse", "strasse"]),
        ("naïve Ältere", ["naïve", "ältere"]),
        ("--->", ["--->"]),
    ],
)
def test_words_are_letters_signs_and_what_is_written_without_blanks(text: str, found: list[str]) -> None:
    assert words(text) == found


PROSE = "the quick brown fox jumps over the lazy dog and then it goes home to sleep until morning comes again"


@pytest.mark.parametrize("joint", ["_", "__", "\u3164", "\u2800", "\uffa0", " \u200b", "\u115f"])
def test_space_like_characters_separate_words(joint: str) -> None:
    assert words(PROSE.replace(" ", joint)) == PROSE.split()


@pytest.mark.parametrize("joint", ["", "\u200b", "\u2060", "\u00ad"])
def test_joining_words_does_not_shorten_a_text(joint: str) -> None:
    assert len(words(PROSE.replace(" ", joint))) == 17
    assert len(words("!" * 100)) == 20


def test_a_word_of_15_signs_is_one() -> None:
    assert words("responsibilitys") == ["responsibilitys"]
    assert words("responsibilities") == ["respo", "nsibi", "litie", "s"]


@given(st.text())
def test_every_visible_sign_is_in_a_word(text: str) -> None:
    seen = re.sub("[_\u115f\u1160\u2800\u3164\uffa0]", " ", text)
    assert "".join(words(text)) == "".join(remove_invisible(seen).casefold().split())
    assert all(1 <= len(word) <= MAX_WORD_LENGTH for word in words(text))
