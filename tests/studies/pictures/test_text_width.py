"""Wrapping of texts into lines."""

from unicodedata import category

from hypothesis import given
from hypothesis import strategies as st

from jurygraph.studies.pictures.text_width import escape_invisible, wrap_text


def test_words_are_not_broken_if_they_fit() -> None:
    assert wrap_text("one two three four", 60.0, 9) == ["one two", "three", "four"]


def test_text_that_fits_is_complete() -> None:
    assert " ".join(wrap_text("a rather long sentence about nothing at all", 90.0, 9)) == (
        "a rather long sentence about nothing at all"
    )


def test_a_word_wider_than_a_line_is_broken() -> None:
    lines = wrap_text("x" * 40, 60.0, 20)
    assert len(lines) > 1
    assert "".join(lines) == "x" * 40


def test_wide_letters_are_wrapped_without_spaces() -> None:
    assert wrap_text("引用适用的法律条文", 36.0, 9) == ["引用适", "用的法", "律条文"]


def test_an_ellipsis_replaces_omitted_text() -> None:
    lines = wrap_text("one two three four five six", 60.0, 2)
    assert len(lines) == 2
    assert lines[-1].endswith("…")


def test_very_long_text_is_truncated() -> None:
    lines = wrap_text("word " * 200_000, 60.0, 3)
    assert len(lines) == 3
    assert lines[-1].endswith("…")


def test_no_line_begins_with_a_combining_mark() -> None:
    for word in ("e\u0301" * 40, "か\u3099" * 40, "क\u093f" * 40, "x" * 7 + "e\u0301" * 9):
        lines = wrap_text(word, 60.0, 40)
        assert len(lines) > 1
        assert "".join(lines) == word
        assert not any(category(line[0]).startswith("M") for line in lines)


def test_the_number_of_combining_marks_in_a_line_is_limited() -> None:
    assert max(map(len, wrap_text("e" + "\u0301" * 1000, 60.0, 99))) < 40


@given(st.text(max_size=60), st.integers(1, 4))
def test_line_count_is_limited_and_no_invisible_characters_remain(text: str, most: int) -> None:
    lines = wrap_text(text, 50.0, most)
    assert 1 <= len(lines) <= most
    assert lines == [escape_invisible(line) for line in lines]


def test_invisible_characters_are_escaped() -> None:
    assert escape_invisible("a\x00b\u202ec\nd\ufffe") == "a\\u0000b\\u202ec d\\ufffe"
