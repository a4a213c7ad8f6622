"""Signs that a text speaks to its grader, as one pattern: words of 17 languages, and marks of machines' own texts."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple, get_args

import re2

from jurygraph.safety.folding import folded

Said = Literal[
    "kept", "forget", "orders", "told", "grader", "full", "passed", "demand", "praise", "work", "office", "behind"
]
"""What words may do; `addressing.toml` has them, and says what each of these means."""

Sign = Literal["mark", "token"] | Said
SIGNS: tuple[Sign, ...] = ("mark", "token", *get_args(Said))

_TOKENS = (
    r"<\|[a-z_]{2,24}\|>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>",
    r"(?:^|\n)[ \t]*#{2,4} ?(?:system|assistant|human)[ \t]*:",
)
"""Marks of turns and roles in the templates of chats."""

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
"""Marks of our fences, our instructions and our replies, and other judges' verdicts."""

_GAP, _LETTER = r"(?:[\s*_>|`~,:-]+)", r"[^\s!-/:-@\[-`{-~]"
_EDGE = r"(?:\b|_)"
_BEGINS_WITH_WORD, _ENDS_WITH_WORD = re.compile(r"\(*[a-z0-9]"), re.compile(r"[a-z0-9)?~@]\Z")
_MEMORY = 1 << 26  # bytes that RE2 may take; with fewer it searches slowly
_SPACED = {" .. ": f"{_GAP}(?:{_LETTER}+{_GAP}){{0,2}}", " ": _GAP, "@": f"{_LETTER}+", "~": f"{_LETTER}*", "(": "(?:"}
_UNSPACED = {" .. ": ".{0,20}", " ": "", "@": ".{1,12}", "~": ".{0,4}", "(": "(?:"}
_NOTATION = re.compile(r"\[[^]]*\]| \.\. |[ @~(]")
"""What `addressing.toml` writes shorter than RE2, and classes of characters, which stay as they are."""


class Signal(NamedTuple):
    """A sign, and the bytes in which it stands."""

    sign: Sign
    start: int
    end: int


def signals(read: bytes, *, spaced: bool = True) -> Iterator[Signal]:
    """The signs in a folded text, from first to last; none overlaps another. `spaced`: its words have spaces."""
    pattern, apart = _known(spaced)
    for found in pattern.finditer(read):
        known = apart.Match(found[0])  # none where it is a sign by what stands beside it alone
        if known and (sign := SIGNS[min(known)]) != "kept":
            yield Signal(sign, found.start(), found.end())


@cache
def _known(spaced: bool) -> tuple[Any, Any]:
    """All signs as one pattern, which finds them, and as a set of one pattern each, which tells them apart: groups in
    so large a pattern would cost more. Of signs that begin together the longest is found."""
    options = re2.Options()
    options.longest_match = True
    options.max_mem = _MEMORY
    options.log_errors = False
    languages = tomllib.loads(files("jurygraph.safety").joinpath("addressing.toml").read_bytes().decode())
    written = _between_words if spaced else _run_together
    said = ([written(one) for words in languages.values() for one in words[sign]] for sign in get_args(Said))
    patterns = ["|".join(alternatives) for alternatives in (_MARKS, _TOKENS, *said)]
    apart = re2.Set.FullMatchSet(options)
    for pattern in patterns:
        apart.Add(pattern)
    apart.Compile()
    return re2.compile("|".join(patterns), options), apart


def _between_words(pattern: str) -> str:
    """The pattern, for whole words where they are ASCII: RE2 knows no others."""
    plain = folded(pattern)
    written = f"(?:{_written(plain, _SPACED)})"
    if not plain.isascii():
        return written
    before = _EDGE if _BEGINS_WITH_WORD.match(plain) else ""
    behind = _EDGE if _ENDS_WITH_WORD.search(plain) else ""
    return f"{before}{written}{behind}"


def _run_together(pattern: str) -> str:
    return f"(?:{_written(folded(pattern), _UNSPACED)})"


def _written(plain: str, notation: Mapping[str, str]) -> str:
    return _NOTATION.sub(lambda found: notation.get(found[0], found[0]), plain)
