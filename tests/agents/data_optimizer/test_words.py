"""What counts as a word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.agents.data_optimizer.words import grams, says, words


@pytest.mark.parametrize(
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


def test_a_text_does_not_become_short_by_being_written_in_one() -> None:
    assert len(words("a_b_c_d_" * 100)) == 40
    assert len(words("!" * 100)) == 5


@given(st.text())
def test_every_sign_but_blanks_is_in_a_word(text: str) -> None:
    assert "".join(words(text)) == "".join(text.casefold().split())
    assert all(1 <= len(word) <= 20 for word in words(text))


@pytest.mark.parametrize(("word", "says_so"), [("a", True), ("7", True), ("今", True), ("+", False), ("_", False)])
def test_a_word_says_something_where_there_is_a_letter_or_a_figure(word: str, says_so: bool) -> None:
    assert says(word) is says_so


def test_sequences_stand_beside_one_another() -> None:
    assert grams("abcd", 2) == [("a", "b"), ("b", "c"), ("c", "d")]
    assert grams("ab", 3) == []
