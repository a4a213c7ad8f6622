"""Openers and fillers are distinguished from texts with content."""

from jurygraph.safety.gates import is_empty_talk
from tests.rows import all_rows


@all_rows(
    ("text", "nothing"),
    [
        ("yes yes yes", True),
        ("yes yes", False),
        ("42 42 42", False),
        ("<b>solution:</b>", True),
        ("as requested.", True),
        ("as requested: paris", False),
        ("", True),
        ("?!", True),
    ],
)
def test_openers_fillers_and_a_repeated_word_are_empty_talk(text: str, nothing: bool) -> None:
    assert is_empty_talk(text) == nothing
