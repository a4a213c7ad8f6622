"""The notations of tasks: what is read, what is refused in which words, and that nothing makes them slow."""

import json
from typing import Any

import pytest

from jurygraph.agents import notation
from jurygraph.errors import ConfigError
from tests.rows import all_rows

BOMBS = [r"^(a+)+$", r"(a|a)+c", r"(a?){30}a{30}c", r"(.*)*c"]


def find_values(path: str, data: Any) -> list[Any]:
    return [node.value for node in notation.compile_jsonpath(path).find(data)]


@pytest.mark.parametrize("bomb", BOMBS)
def test_matching_time_of_a_pattern_is_linear_in_the_text(bomb: str) -> None:
    assert notation.compile_pattern(bomb).search("a" * 100_000 + "b") is None


def test_offsets_of_a_match_are_in_characters() -> None:
    match = notation.compile_pattern("é+").search("😀 ab éé")
    assert (match.start(), match.end(), match.group()) == (5, 7, "éé")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a(?=b)", "invalid perl operator: (?="),
        ("(?<!a)b", "invalid perl operator: (?<!"),
        (r"(a)\1", r"invalid escape sequence: \1"),
        ("(", "missing ): ("),
        ("a{5000}", "invalid repetition size: {5000}"),
    ],
)
def test_an_invalid_pattern_is_refused_with_a_message(text: str, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="is not a valid RE2 pattern") as caught:
        notation.compile_pattern(text)
    assert str(caught.value) == f"is not a valid RE2 pattern ({words}); RE2 has no look-around and no back references"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("$", [{"b": [{"n": 1}, {"n": 2}], "a": "x"}]),
        ("$.b[*].n", [1, 2]),
        ("$.b[-1].n", [2]),
        ("$..n", [1, 2]),
        ("$.b[?@.n > 1]", [{"n": 2}]),
        ("$.nothing[*]", []),
        ("$.a[*]", []),
    ],
)
def test_a_path_finds_its_values(path: str, values: list[Any]) -> None:
    assert find_values(path, {"b": [{"n": 1}, {"n": 2}], "a": "x"}) == values


@all_rows(
    "text", ["", "a", "$[", "$..", "$[?nothing(@.a)]", "$[?length(@.*) > 1]", "$[99999999999999999999]", "$['\\ud800']"]
)
def test_an_invalid_path_is_refused_with_a_message(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a valid JSONPath \(.+\); write one such as \$\[\*\]\.name"):
        notation.compile_jsonpath(text)


def test_match_takes_the_whole_text_and_search_any_part() -> None:
    data = ["ab", "cabd", 5, None, ["ab"]]
    assert find_values("$[?match(@, 'a[a-z]')]", data) == ["ab"]
    assert find_values("$[?search(@, 'a[a-z]')]", data) == ["ab", "cabd"]


@all_rows("function", ["match", "search"])
@all_rows("bomb", BOMBS)
def test_patterns_within_a_path_are_linear_too(function: str, bomb: str) -> None:
    assert find_values(f"$[?{function}(@.a, '{bomb}')]", [{"a": "a" * 10_000 + "b"}]) == []


@pytest.mark.parametrize("pattern", ["(", "(?=a)", 5, None, ["a"]])
def test_an_invalid_pattern_in_a_path_matches_nothing(pattern: Any) -> None:
    assert find_values("$[?search(@.a, @.b)]", [{"a": "aa", "b": pattern}, {"a": "aa", "b": "a"}]) == [
        {"a": "aa", "b": "a"}
    ]


def test_code_is_named_by_package_module_and_name() -> None:
    paths = {"dotted": "json.dumps", "colon": "json:dumps"}
    assert notation.import_named("functions", paths, "__call__", "a function") == dict.fromkeys(paths, json.dumps)
    for path in ("json.nothing", "no_such_package.name", "dumps", ".dumps"):
        with pytest.raises(ConfigError, match=rf"functions\.f: '{path}' cannot be imported"):
            notation.import_named("functions", {"f": path}, "__call__", "a function")
    with pytest.raises(ConfigError, match=r"functions\.f: 'json.__name__' is of type str; name a function"):
        notation.import_named("functions", {"f": "json.__name__"}, "__call__", "a function")
