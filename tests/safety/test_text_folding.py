"""Folding makes look-alike texts equal: lower case, plain marks, and no invisible characters."""

import pytest

from jurygraph.messages import escape_hidden_characters
from jurygraph.safety.gates import fold_text, keep_letters_and_digits, remove_invisible
from tests.rows import all_rows


@all_rows(
    ("text", "plain"),
    [
        ("Roma\tand\nParis", "roma\tand\nparis"),
        ("Ro\x00m\x1ba\x7f", "roma"),
        ("‘a’ – “b” — «c»", '\'a\' - "b" - "c"'),
        ("one\u2028two", "one\ntwo"),
        ("Café, Cafe\u0301, Straße, Øl, Kırmızı", "cafe, cafe, strasse, ol, kirmizi"),
        ("Ｔｗｏ ﬁne ½", "two fine 1\u20442"),
        ("Gil\u200bded\u00ad é", "gilded e"),
        ("half\ud800 a character", "half a character"),
        ("\ufdfa", "\u0635"),
    ],
)
def test_a_text_is_folded_to_small_plain_letters_and_marks(text: str, plain: str) -> None:
    assert fold_text(text) == plain


def test_stacked_marks_on_a_letter_are_removed_except_those_of_its_script() -> None:
    assert fold_text("x" + "\u05b0" * 9 + "y") == "xy"
    assert fold_text("x" + "\u05b0" * 8 + "y") == "x" + "\u05b0" * 8 + "y"


@pytest.mark.parametrize("words", ["Café\u0301 “ﬁne”", "Ｔｗｏ\n\u0301x" + "\u05b0" * 9])
def test_a_long_text_is_folded_as_its_lines_are(words: str) -> None:
    assert fold_text(f"{words}\n" * 30_000) == fold_text(f"{words}\n") * 30_000


def test_only_invisible_characters_are_removed_from_a_visible_text() -> None:
    assert remove_invisible("A\u200b b\n\ufe0f\u3164c") == "A b\nc"


@pytest.mark.parametrize(
    ("read", "alone"), [("a-b 1_2.", "ab12"), ("é-b 1_2.", "éb12"), ("字、ж", "字ж")]
)
def test_letters_and_digits_are_taken_from_a_text(read: str, alone: str) -> None:
    assert keep_letters_and_digits(read) == alone


def test_what_could_control_a_terminal_is_written_as_its_escape() -> None:
    assert escape_hidden_characters("a\x1b[2Jb\u202ec\td é") == r"a\u001b[2Jb\u202ec\td é"
