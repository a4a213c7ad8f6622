"""The words of TravelPlanner's queries, tables and plans: `vocabulary.yaml`, and its patterns."""

import re
from functools import cache
from importlib.resources import files
from typing import Any

from jurygraph.sources.config import Document


@cache
def load_vocabulary() -> Any:
    """Return the content of `vocabulary.yaml`."""
    return Document(
        files(__package__).joinpath("vocabulary.yaml").read_text(encoding="utf-8")
    ).value


@cache
def compile_words(words: str) -> re.Pattern[str]:
    """Compile a regular expression for any case; `{{other}}` in it is replaced by a pattern of that name."""
    vocabulary = load_vocabulary()
    numerals = "|".join(
        [r"\d+", *(name for name in vocabulary["numbers"] if name not in ("a", "an"))]
    )
    lists = {name: "|".join(vocabulary[name]) for name in ("months", "ordinals", "cuisines")}
    named = {**vocabulary["patterns"], **lists, "numeral": rf"(?:{numerals})"}
    while "{{" in words:
        words = re.sub(r"\{\{(\w+)\}\}", lambda other: named[other[1]], words)
    return re.compile(words, re.IGNORECASE)


def pattern(name: str) -> re.Pattern[str]:
    """Return a pattern by its name."""
    return compile_words(load_vocabulary()["patterns"][name])


def parse_number(text: str) -> int:
    """Return a whole number, written in digits or as a word."""
    number = load_vocabulary()["numbers"].get(text.lower())
    return int(text) if number is None else int(number)
