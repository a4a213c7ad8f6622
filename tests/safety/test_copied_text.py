"""Copies of a reference are detected if it is long enough."""

import pytest

from jurygraph.safety.gates import describe_reference_copy

WORDS = "the quick brown fox jumps over a lazy dog and runs away from every hound in town before it naps "


def letters_of(number: int) -> str:
    return "".join(filter(str.isalpha, WORDS * 4))[:number]


@pytest.mark.parametrize(
    ("number", "how"), [(59, None), (60, "it is the reference"), (200, "it is the reference")]
)
def test_a_reference_is_compared_from_sixty_letters_on(number: int, how: str | None) -> None:
    assert describe_reference_copy(letters_of(number), letters_of(number), "") == how


@pytest.mark.parametrize(
    ("number", "beside", "found"),
    [(119, 119, True), (119, 120, False), (120, 121, True), (120, 5000, True)],
)
def test_a_short_reference_counts_as_copied_if_the_other_text_is_no_longer(
    number: int, beside: int, found: bool
) -> None:
    text = letters_of(number) + "z" * beside
    assert (
        describe_reference_copy(text, letters_of(number), "")
        == "it holds the reference, word for word"
    ) == found


@pytest.mark.parametrize(
    ("number", "changed", "found"),
    [(239, 5, False), (240, 5, True), (119, 1, False), (120, 1, True)],
)
def test_a_long_reference_is_copied_nearly(number: int, changed: int, found: bool) -> None:
    own = letters_of(number)
    places = range(5, number, number // changed)
    text = "".join(
        "q" if place in list(places)[:changed] else letter for place, letter in enumerate(own)
    )
    assert (describe_reference_copy(text, own, "") == "it is nearly the reference") == found


@pytest.mark.parametrize(("kept", "how"), [(230, "it is nearly the reference"), (229, None)])
def test_a_text_much_shorter_than_the_reference_is_no_copy_of_it(
    kept: int, how: str | None
) -> None:
    assert describe_reference_copy(letters_of(250)[:kept], letters_of(250), "") == how


def test_a_long_text_twice_the_length_of_another_is_not_its_copy() -> None:
    own = letters_of(250) * 100
    assert describe_reference_copy(own[:-1], own, "") == "it is nearly the reference"
    assert describe_reference_copy(own[:24_000] + "z" * 26_000, own, "") is None


@pytest.mark.parametrize(
    ("number", "given", "found"), [(75, 45, True), (75, 46, False), (76, 46, False)]
)
def test_a_reference_is_copied_unless_the_query_says_more_than_half_of_it(
    number: int, given: int, found: bool
) -> None:
    """Half is counted in runs of 16 letters, of which a reference of 75 letters has 60."""
    own = letters_of(number)
    assert (describe_reference_copy(own, own, own[:given]) is not None) == found
