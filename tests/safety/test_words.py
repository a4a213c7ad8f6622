"""Boundaries of words and numbers: no quotation cuts one, in any language."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.safety.evidence import SearchableText, is_word_letter
from tests.rows import all_rows

CUT = [
    ("A 3-day trip costs 500 dollars", "day trip costs"),
    ("It is a well-known hotel", "known hotel"),
    ("A non\u2011refundable ticket", "refundable ticket"),
    ("The beach isn't crowded at all", "The beach isn"),
    ("They don\u2019t like the museum", "They don"),
    ("Set max_retries to three", "retries to three"),
    ("It costs 1,250 dollars per night", "250 dollars per night"),
    ("It costs 1\u00a0250 dollars per night", "250 dollars per night"),
    ("It costs 1_250 dollars per night", "250 dollars per night"),
    ("It costs 1\u2019250 dollars per night", "250 dollars per night"),
    ("A 3\uff0dday trip costs 500 dollars", "day trip costs"),
    ("Use 0.5 litres of water", "5 litres of water"),
    ("Use .5 litres of water", "5 litres of water"),
    (".5 litres of water", "5 litres of water"),
    ("It is -5 degrees outside", "5 degrees outside"),
    ("It is \u22125 degrees outside", "5 degrees outside"),
    ("The bus leaves at 17:40 sharp", "40 sharp today or leaves at 17"),
    ("Take 3/4 cup of sugar", "4 cup of sugar"),
    ("Each side is 12 m\u00b2 wide", "Each side is 12 m"),
    ("3-day trips cost a lot", "day trips cost a lot"),
    ("They say it isn't", "They say it isn"),
    ("I know that they're", "I know that they'"),
    ("Use x'1ab' for the value", "1ab' for the value"),
    ("The hotel costs 1\u00a0250", "The hotel costs 1"),
    ("There are 2\u00bd cups of milk", "There are 2"),
    ("\uff11\uff12\u65e5\u306e\u6771\u4eac\u65c5\u884c", "2日の東京旅行"),
    (
        "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e \u0938\u0941\u0902\u0926\u0930",
        "\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e \u0938\u0941\u0902\u0926\u0930",
    ),
]
"""Texts, and words of them that begin or end within a word or number."""


@all_rows(("text", "quotation"), CUT)
def test_a_quotation_that_cuts_a_word_or_number_supports_no_verdict(
    text: str, quotation: str
) -> None:
    assert SearchableText(text).find_support(quotation) is None
    assert SearchableText(text).find_support(text) is not None


WHOLE = [
    ("A 3-day trip costs 500 dollars", "3-day trip costs"),
    ("We leave at nine\u2014the bus waits outside", "the bus waits outside"),
    ("Open 9:00\u201317:00 every day of the week", "17:00 every day"),
    ("Nous prenons l'h\u00f4tel est calme", "h\u00f4tel est calme"),
    ("Cette fois l'eau est froide", "eau est froide"),
    ("The dogs' owner is 'very happy' there", "very happy"),
    ("-day trips cost a lot", "day trips cost a lot"),
    ("They wrote -happy days are here", "happy days are here"),
    ("It takes (5 litres of water)", "5 litres of water"),
    ("Perfume No.5 litres of water", "5 litres of water"),
    ("The rooms are 12\u00a034", "The rooms are 12"),
    ("- dinner is at Roma", "dinner is at Roma"),
    ("Lunch is at 12, dinner at 7.", "Lunch is at 12"),
    ("Bring water (two litres), please", "two litres"),
    (
        "\u0e40\u0e23\u0e32\u0e08\u0e30\u0e1e\u0e31\u0e01\u0e17\u0e35\u0e48\u0e42\u0e23\u0e07\u0e41\u0e23\u0e21\u0e43\u0e19\u0e40\u0e21\u0e37\u0e2d\u0e07",
        "\u0e1e\u0e31\u0e01\u0e17\u0e35\u0e48\u0e42\u0e23\u0e07\u0e41\u0e23\u0e21",
    ),
    (
        "\u6211\u4eec\u5750\u65e9\u4e0a\u7684\u822a\u73ed\u53bb\u65b0\u5965\u5c14\u826f",
        "\u65e9\u4e0a\u7684\u822a\u73ed",
    ),
    (
        "\u671d\u306e\u98db\u884c\u6a5f\u3067\u6771\u4eac\u306b\u884c\u304d\u307e\u3059",
        "\u98db\u884c\u6a5f\u3067\u6771\u4eac",
    ),
    ("3\u65e5\u9593\u306e\u65c5\u884c\u3067\u3059", "\u65e5\u9593\u306e\u65c5\u884c"),
]


@all_rows(("text", "quotation"), WHOLE)
def test_a_quotation_of_whole_words_supports_a_verdict(text: str, quotation: str) -> None:
    assert SearchableText(text).find_support(quotation) is not None


WORDS = st.sampled_from(
    [
        "trip",
        "day",
        "isn't",
        "3",
        "1,250",
        "well-known",
        "a",
        "caf\u00e9",
        "max_size",
        "7:40",
        "m\u00b2",
    ]
)
GAPS = st.sampled_from([" ", "\n", ", ", " (", ") ", "; ", "\u2014", ". "])


@given(st.lists(st.tuples(WORDS, GAPS), min_size=1, max_size=12), st.data())
def test_support_always_consists_of_whole_words(
    parts: list[tuple[str, str]], data: st.DataObject
) -> None:
    """The words are known here, so that where they begin and end is, too."""
    text = "".join(word + gap for word, gap in parts)
    inside = {
        at
        for found in re.finditer(r"[\w,:'\u00b2-]*\w", text)
        for at in range(found.start() + 1, found.end())
    }
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    found = SearchableText(text).find_support(text[start:end])
    if found is not None:
        assert found.start not in inside
        assert found.end not in inside


THAI = [chr(code) for code in range(0x0E01, 0x0E2F)]
HAN, KANA = (
    [chr(code) for code in range(0x4E00, 0x4E40)],
    [chr(code) for code in range(0x3042, 0x3082)],
)


@given(st.sampled_from([THAI, HAN, KANA, HAN + KANA]), st.data())
def test_every_passage_is_whole_in_a_language_without_spaces(
    letters: list[str], data: st.DataObject
) -> None:
    text = data.draw(st.text(st.sampled_from(letters), min_size=10, max_size=40))
    start = data.draw(st.integers(0, len(text) - 8))
    end = data.draw(st.integers(start + 8, len(text)))
    assert SearchableText(text).find_support(text[start:end]) is not None


@pytest.mark.parametrize("char", ["a", "7", "\u0915", "\u0301", "\u093f"])
def test_letters_digits_and_marks_join_a_word(char: str) -> None:
    assert is_word_letter(char)


@all_rows("char", ["\u0e01", "\u0f00", "\u1000", "\u4e2d", "\uff21", "\uaa7f", "\uffdc", "-"])
def test_letters_of_languages_without_spaces_join_no_word(char: str) -> None:
    assert not is_word_letter(char)
