"""Bare openers: texts that announce an answer, or a line of thought, and give neither.

They fool plain judges four times in five ("One Token to Fool LLM-as-a-Judge", Zhao et al., 2025).
"""

import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

import re2

from jurygraph.safety.folding import folded

_TAGS = "</?(?:think|thinking|thought|reasoning|analysis|scratchpad|solution|answer|output)[ /]*>"
_BETWEEN = r"(?:[^\pL\pM\pN\p{Sm}]|[+<=>|~]|</?[a-z][a-z0-9]*[ /]*>)"
"""What stands between openers: anything but letters, digits and signs of mathematics, and tags of layout."""


def is_bare_opener(read: str) -> bool:
    """Whether a folded text is nothing but openers, in any layout, number and mixture of 28 languages."""
    return _openers().fullmatch(read) is not None


@cache
def _openers() -> Any:
    options = re2.Options()
    options.never_capture = True
    options.log_errors = False
    options.max_mem = 1 << 26
    known = tomllib.loads(files("jurygraph.safety").joinpath("openings.toml").read_text(encoding="utf-8"))
    before = _any_of(known["before"])
    opener = _any_of(pattern for patterns in known["openers"].values() for pattern in patterns)
    return re2.compile(rf"{_BETWEEN}*(?:{before}{_BETWEEN}+)*(?:(?:{_TAGS}|{opener}){_BETWEEN}*)+", options)


def _any_of(patterns: Iterable[str]) -> str:
    """One of the patterns of `openings.toml`, as RE2 takes it."""
    plain = folded("|".join(patterns)).replace(" ?:", r"[\s*_]*:").replace(" ", r"[\s*_>#,-]+")
    return f"(?:{plain})"
