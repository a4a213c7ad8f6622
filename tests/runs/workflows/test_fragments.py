"""A text and its long quotations are found in all forms; common fragments are ignored."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.runs.workflows.fragments import MIN_QUOTATION_LENGTH, MIN_SEARCHED_LENGTH, Fragments

TEXT = "My own words, which\nI take back: «naïve» 'quoted' \"twice\" \\ und 日本語で書いたもの。"

words = st.text(alphabet='abcdefgh ij\n"\\é日🙂', min_size=MIN_SEARCHED_LENGTH, max_size=200).filter(
    lambda text: len(set(text)) > 5
)


def as_json(text: str, times: int = 1, ascii_only: bool = True) -> bytes:
    for _ in range(times):
        text = json.dumps(text, ensure_ascii=ascii_only)
    return text.encode()


@given(words, st.binary(max_size=50))
def test_a_text_is_found_in_every_form(text: str, before: bytes) -> None:
    fragments = Fragments([text])
    forms = [text.encode(), *(as_json(text, times, plain) for times in (1, 2) for plain in (False, True))]
    assert all(fragments.is_found_in(before + form) for form in forms)


@given(words.filter(lambda text: len(text) >= MIN_QUOTATION_LENGTH), st.data())
def test_a_long_quotation_is_found_wherever_it_begins(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - MIN_QUOTATION_LENGTH))
    quotation = text[start : start + MIN_QUOTATION_LENGTH]
    if all(
        len(set(quotation[i : i + MIN_SEARCHED_LENGTH])) >= 5
        for i in range(MIN_QUOTATION_LENGTH - MIN_SEARCHED_LENGTH + 1)
    ):
        assert Fragments([text]).is_found_in(b"He wrote: " + quotation.encode())


@pytest.mark.parametrize("other", ["", "My own words, which", "words of somebody else about something else", "-" * 99])
def test_other_texts_are_not_found(other: str) -> None:
    assert not Fragments([TEXT]).is_found_in(other.encode())


def test_fragments_of_other_texts_are_discarded() -> None:
    fragments = Fragments(["Dear Sir or Madam, thank you very much for it.", TEXT])
    fragments.discard_fragments_in([b"Dear Sir or Madam, thank you very much for it. It arrived."])
    assert not fragments.is_found_in(b"Dear Sir or Madam, thank you very much for it.")
    assert fragments.is_found_in(TEXT.encode())


def test_short_texts_give_no_fragments() -> None:
    fragments = Fragments(["forty-two", "x" * (MIN_SEARCHED_LENGTH - 1)])
    assert not fragments
    assert not fragments.is_found_in(b"forty-two" + b"x" * 40)


def test_a_repetitive_text_is_found() -> None:
    assert Fragments(["ab" * 40]).is_found_in(b"ab" * 40)


def test_a_lone_surrogate_is_accepted() -> None:
    assert Fragments(["\ud800 and so on, for a good while"]).is_found_in(b"and so on, for a good while") is False
