"""The YAML of plain values: whoever loads it finds the same values."""

from ruamel.yaml import YAML

from jurygraph.runs.store.folder import to_yaml

WORDS = "yes|NO|null|~|| a|a |a: b|a #b|- a|1|1e3|0x1f|0o17|.5|2026-01-01|e1".split("|")
ODD = (
    "a\nb\n",
    "\ttab",
    "\u2028\x7f\x85\ufeff",
    'say "a\\b"',
    "größer 😀",
    "'x'",
    "{a}",
    "%d",
    "@a",
    "a:",
    "<<",
    "=",
)
NESTED = [[], {}, [[1], {"a": [{}, {"b": None}]}], True, -0.5, 1e-5, 1e300, 10**30]


def test_every_value_is_loaded_as_it_was() -> None:
    value = {
        "texts": [*WORDS, *ODD],
        **{key: {"inner": 1} for key in (*WORDS, *ODD)},
        "nested": NESTED,
    }
    assert YAML(typ="safe", pure=True).load(to_yaml(value)) == value


def test_it_reads_as_a_person_would_write_it() -> None:
    value = {
        "evaluators": [{"use": "mine.mod:length", "params": {}}, None, [1, "two words"]],
        "größe": {"a": 1e-7},
    }
    expected = "evaluators:\n- use: mine.mod:length\n  params: {}\n- null\n- - 1\n  - two words\ngröße:\n  a: 1e-07\n"
    assert to_yaml(value) == expected
