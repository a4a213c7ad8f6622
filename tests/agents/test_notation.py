"""The notations of tasks: what is read, what is refused in which words, and that nothing makes them slow."""

from typing import Any

import pytest

from jurygraph.agents import notation
from tests.rows import all_rows


@all_rows("bomb", [r"^(a+)+$", r"(a|a)+c", r"(a?){30}a{30}c", r"(.*)*c"])
def test_matching_time_of_a_pattern_is_linear_in_the_text(bomb: str) -> None:
    assert notation.compile_pattern(bomb).search("a" * 100_000 + "b") is None


def test_offsets_of_a_match_are_in_characters() -> None:
    match = notation.compile_pattern("é+").search("😀 ab éé")
    assert (match.start(), match.end(), match.group()) == (5, 7, "éé")


def test_an_invalid_pattern_is_refused_and_nothing_is_printed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    for text, words in {"a(?=b)": "invalid perl operator: (?=", "(": "missing ): ("}.items():
        with pytest.raises(ValueError, match="is not a valid RE2 pattern") as caught:
            notation.compile_pattern(text)
        assert str(caught.value).endswith(
            f" ({words}); RE2 has no look-around and no back references"
        )
    assert capfd.readouterr() == ("", "")


PATHS: dict[str, list[Any]] = {
    "$.b[*].n": [1, 2],
    "$.b[-1].n": [2],
    "$..n": [1, 2],
    "$.b[?@.n > 1]": [{"n": 2}],
    "$.nothing[*]": [],
}


@all_rows(("path", "values"), PATHS.items())
def test_a_path_finds_its_values(path: str, values: list[Any]) -> None:
    nodes = notation.compile_jsonpath(path).find({"b": [{"n": 1}, {"n": 2}], "a": "x"})
    assert [node.value for node in nodes] == values


@all_rows(
    "text", ["", "a", "$[", "$..", "$[?nothing(@.a)]", "$[?match(@.a, 'b')]", "$[?search(@, 'b')]"]
)
def test_an_invalid_path_is_refused_with_a_message(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"is not a valid JSONPath \(.+\); write one such as \$\[\*\]\.name"
    ):
        notation.compile_jsonpath(text)
