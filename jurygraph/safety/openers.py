"""Bare openers: texts that announce an answer, or a line of thought, and contain neither.

They fool undefended judges four times in five ("One Token to Fool LLM-as-a-Judge", Zhao et al., 2025).
"""

import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any

import re2

from jurygraph.safety.text_folding import fold_text

_TAGS = "</?(?:think|thinking|thought|reasoning|analysis|scratchpad|solution|answer|output)[ /]*>"
_MIN_WORDS = 3
_MEMORY = 1 << 26  # memory limit of RE2, in bytes
_LAYOUT_TAG = "</?[a-z][a-z0-9]*[ /]*>"
_BETWEEN = rf"(?:[^\pL\pM\pN\p{{Sm}}]|[+<=>|~]|{_LAYOUT_TAG})"
"""Matches between openers: anything but letters, digits and mathematical signs; also layout tags."""

_LAYOUT_TAGS = re2.compile(_LAYOUT_TAG)
_WORDS = re2.compile(r"[\pL\pN]+")


def is_bare_opener(read: str) -> bool:
    """Return whether a folded text consists only of openers, in any layout, number and mixture of 28 languages."""
    return _patterns()[0].fullmatch(read) is not None


def is_empty_talk(read: str) -> bool:
    """Return whether a folded text has only openers, fillers ("As requested.") or empty words, or repeats one word."""
    untagged = str(_LAYOUT_TAGS.sub("\n", read))
    words = _WORDS.findall(untagged)
    _, fillers, empty_words = _patterns()
    is_repetition = len(set(words)) == 1 and words[0].isalpha()
    if len(words) >= _MIN_WORDS and (is_repetition or empty_words.issuperset(words)):
        return True
    return not words or fillers.fullmatch(untagged) is not None


@cache
def _patterns() -> tuple[Any, Any, frozenset[str]]:
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    options.never_capture = True  # to report hundreds of groups takes most of a search
    lists = tomllib.loads(files("jurygraph.safety").joinpath("openings.toml").read_bytes().decode())
    before = _any_of(lists["before"])
    opener = f"(?:{_TAGS}|{_any_of(chain.from_iterable(lists['openers'].values()))})"
    filler = _any_of(chain.from_iterable(lists["fillers"].values()))
    openers = rf"{_BETWEEN}*(?:{before}{_BETWEEN}+)*(?:{opener}{_BETWEEN}*)+"
    either = f"(?:{opener}|{filler})"
    fillers = rf"{_BETWEEN}*(?:{before}{_BETWEEN}+)*{either}(?:{_BETWEEN}+{either})*{_BETWEEN}*"
    empty_words = frozenset(chain.from_iterable(lists["empty_words"].values()))
    return re2.compile(openers, options), re2.compile(fillers, options), empty_words


def _any_of(patterns: Iterable[str]) -> str:
    plain = fold_text("|".join(patterns)).replace(" ?:", r"[\s*_]*:").replace(" ", r"[\s*_>#,-]+")
    return f"(?:{plain})"
