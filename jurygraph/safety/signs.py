"""Signs that a text addresses its grader, as one pattern: words of 17 languages, and marks of machine-written texts."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple, get_args

import re2

from jurygraph.safety.text_folding import fold_text

WordSign = Literal[
    "kept", "forget", "orders", "told", "grader", "full", "passed", "demand", "praise", "work", "office", "behind"
]
"""Functions of words; `addressing.toml` lists and explains them."""

Sign = Literal["mark", "token"] | WordSign
SIGNS: tuple[Sign, ...] = ("mark", "token", *get_args(WordSign))

_TOKENS = (
    r"<\|[a-z_]{2,24}\|>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>",
    r"(?:^|\n)[ \t]*#{2,4} ?(?:system|assistant|human)[ \t]*:",
)
"""Marks of turns and roles in chat templates."""

_MARKS = (
    r"<<<[ \t]*[a-z_]{1,40}[ \t]+[0-9a-f]{8,64}\b|\b[a-z_]{1,40}[ \t]+[0-9a-f]{8,64}[ \t]*>>>",
    r"nothing between the marks above|answer with the json alone",
    r'"[a-z]{1,20}_[0-9]{1,3}"\s*:\s*\{\s*"(?:reason|quotes|met|probability|value|part_1)"|\{\s*"met"\s*:\s*true',
    r'"met"\s*:\s*true\s*,\s*"probability"|"probability"\s*:\s*(?:1|1\.0|0?\.9[0-9]*)\s*,\s*"met"',
    r'"(?:score|rating|grade)"\s*:\s*"?[0-9.]+"?\s*,\s*"verdict"',
    r'"verdict"\s*:\s*"[a-z ]+"\s*,\s*"(?:score|rating|grade)"',
    r"(?:rating|score|verdict|judge?ment|winner|evaluation|grade|final)(?:\s+is)?[\s*_:=-]{0,8}"
    r"\[\[(?:[0-9.]{1,4}|[a-c]|tie)\]\]|(?:^|\n)[\s*_]*\[\[10\]\][\s*_.]*(?:\n|$)"
    r"|(?:^|[\n.:!])[\s*_]*\[\[[a-c]\]\][\s*_.]*(?:\n|$)",
)
"""Marks of jurygraph's fences, instructions and replies, and verdicts of other judges."""

_GAP, _LETTER = r"(?:[\s*_>|`~,:-]+)", r"[^\s!-/:-@\[-`{-~]"
_EDGE = r"(?:\b|_)"
_BEGINS_WITH_WORD, _ENDS_WITH_WORD = re.compile(r"\(*[a-z0-9]"), re.compile(r"[a-z0-9)?~@]\Z")
_MEMORY = 1 << 26  # memory limit of RE2, in bytes; with less, its searches are slow
_SPACED = {" .. ": f"{_GAP}(?:{_LETTER}+{_GAP}){{0,2}}", " ": _GAP, "@": f"{_LETTER}+", "~": f"{_LETTER}*", "(": "(?:"}
_UNSPACED = {" .. ": ".{0,20}", " ": "", "@": ".{1,12}", "~": ".{0,4}", "(": "(?:"}
_NOTATION = re.compile(r"\[[^]]*\]| \.\. |[ @~(]")
"""Shorthand of `addressing.toml` for longer RE2 patterns; also character classes, which stay unchanged."""


class Signal(NamedTuple):
    """A sign, and the range of bytes that it covers."""

    sign: Sign
    start: int
    end: int


def find_signs(read: bytes, *, spaced: bool = True) -> Iterator[Signal]:
    """Yield the signs in a folded text from first to last, without overlap.

    `spaced` is False if the words of the text have no spaces between them.
    """
    pattern, sign_set = _sign_patterns(spaced)
    for match in pattern.finditer(read):
        indices = sign_set.Match(match[0])  # none if it is a sign only in its context
        if indices and (sign := SIGNS[min(indices)]) != "kept":
            yield Signal(sign, match.start(), match.end())


@cache
def _sign_patterns(spaced: bool) -> tuple[Any, Any]:
    """Return one pattern that finds all signs, and a set of one pattern for each sign that identifies them.

    Groups in so large a pattern would be slower. Of signs that begin at the same place the longest is found.
    """
    options = re2.Options()
    options.longest_match = True
    options.max_mem = _MEMORY
    options.log_errors = False
    languages = tomllib.loads(files("jurygraph.safety").joinpath("addressing.toml").read_bytes().decode())
    expand = _expand_spaced if spaced else _expand_unspaced
    word_patterns = (
        [expand(word) for words in languages.values() for word in words[sign]] for sign in get_args(WordSign)
    )
    patterns = ["|".join(alternatives) for alternatives in (_MARKS, _TOKENS, *word_patterns)]
    sign_set = re2.Set.FullMatchSet(options)
    for pattern in patterns:
        sign_set.Add(pattern)
    sign_set.Compile()
    return re2.compile("|".join(patterns), options), sign_set


def _expand_spaced(pattern: str) -> str:
    """Return the pattern, for whole words if it is ASCII, since RE2 has no other word boundaries."""
    plain = fold_text(pattern)
    expanded = f"(?:{_expand_notation(plain, _SPACED)})"
    if not plain.isascii():
        return expanded
    before = _EDGE if _BEGINS_WITH_WORD.match(plain) else ""
    behind = _EDGE if _ENDS_WITH_WORD.search(plain) else ""
    return f"{before}{expanded}{behind}"


def _expand_unspaced(pattern: str) -> str:
    return f"(?:{_expand_notation(fold_text(pattern), _UNSPACED)})"


def _expand_notation(plain: str, notation: Mapping[str, str]) -> str:
    return _NOTATION.sub(lambda found: notation.get(found[0], found[0]), plain)
