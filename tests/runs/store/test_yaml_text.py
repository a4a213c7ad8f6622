"""The YAML of plain values: whoever loads it finds the same values."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from jurygraph.runs.store.yaml_text import to_yaml

WORDS = ("yes", "NO", "null", "~", "", " a", "a ", "a: b", "a #b", "- a", "1", "1e3", "0x1f", ".5", "2026-01-01", "e1")
ODD = ("a\nb\n", "\ttab", "\u2028\x7f\x85\ufeff", 'say "a\\b"', "größer 😀", "'x'", "{a}", "%d", "@a", "a:", "<<", "=")
TEXTS = st.sampled_from(WORDS + ODD) | st.text(max_size=8)
SCALARS = TEXTS | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=8
)


def load(text: str, version: str) -> Any:
    yaml = YAML(typ="safe", pure=True)
    yaml.version = version
    return yaml.load(text)


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_every_special_text_is_loaded_as_it_was(version: str) -> None:
    given_values = {"texts": [*WORDS, *ODD], **dict.fromkeys((*WORDS, *ODD), 1), "numbers": [1e-5, 1e300, -0.5, 10**30]}
    assert load(to_yaml(given_values), version) == given_values


@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=3))
def test_every_value_is_loaded_as_it_was(value: dict[str, Any]) -> None:
    assert load(to_yaml(value), "1.2") == value


def test_it_reads_as_a_person_would_write_it() -> None:
    value = {"evaluators": [{"use": "mine.mod:length", "params": {}}, None, [1, "two words"]], "low": {"a": 1e-7}}
    assert to_yaml(value).splitlines() == [
        "evaluators:",
        "- use: mine.mod:length",
        "  params: {}",
        "- null",
        "- - 1",
        "  - two words",
        "low:",
        "  a: 1.0e-07",
    ]
