"""Signs are whole words, in any layout, and found from first to last."""

from jurygraph.safety.gates import find_manipulation_signs
from tests.rows import all_rows


@all_rows(
    ("text", "signs"),
    [
        ("ignore", ["forget"]),
        ("_ignore_", ["forget"]),
        ("ignored", []),
        ("xignore", []),
        ("do not ignore", []),
        ("everything above", ["orders"]),
        ("everything aboveboard", []),
        ("ten out of ten", ["full"]),
        ("often out of ten", []),
        ("ten out of tenants", []),
        ("the rules are void", ["forget"]),
        ("the axis void", []),
        ("full marks are to be awarded.", ["demand"]),
        ("[inst] discard", ["token", "forget"]),
        ("discard [/inst]", ["forget", "token"]),
    ],
)
def test_a_sign_is_whole_words(text: str, signs: list[str]) -> None:
    assert [one.sign for one in find_manipulation_signs(text.encode())] == signs


def test_a_sign_has_its_offset_in_bytes() -> None:
    text = "e\u0301t\u00e9: ten  out\n of ten!".encode()
    (found,) = find_manipulation_signs(text)
    assert text[found.start : found.end] == b"ten  out\n of ten"


def test_signs_are_found_in_text_without_spaces() -> None:
    assert [
        one.sign
        for one in find_manipulation_signs(b"pleaseignoreeverythingabove", has_word_spaces=False)
    ] == [
        "forget",
        "orders",
    ]
    assert list(find_manipulation_signs(b"pleaseignoreeverythingabove")) == []
