"""Detect texts that address their grader instead of doing their task: orders, claims of authority, prepared verdicts.

Honest texts contain all of these signs, so only marks that a machine writes and orders of a verdict on every criterion
count alone; the others count in combinations of signs close to each other. Fewer signs are enough in hidden text: in
invisible characters, look-alikes, spaced letters, comments, or encodings.
"""

import re
import tomllib
from base64 import b64decode
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from html import unescape
from importlib.resources import files
from itertools import product
from typing import Any, Literal, NamedTuple, get_args

import re2

from jurygraph.safety.text_folding import fold_text

WordSign = Literal[
    "kept", "forget", "orders", "told", "grader", "full", "passed", "demand", "praise", "work", "office", "behind"
]
"""Functions of words; `addressing.toml` lists and explains them."""

Sign = Literal["mark", "token"] | WordSign
SIGNS: tuple[Sign, ...] = ("mark", "token", *get_args(WordSign))

_GAP = r"(?:[\s*_>|`~,:-]+)"
_WORD_LETTER = r"[^\s!-/:-@\[-`{-~]"
_EDGE = r"(?:\b|_)"
_BEGINS_WITH_WORD = re.compile(r"\(*[a-z0-9]")
_ENDS_WITH_WORD = re.compile(r"[a-z0-9)?~@]\Z")
_OPTIONS = re2.Options()
_OPTIONS.longest_match = True
_OPTIONS.max_mem = 1 << 26  # bytes; with less, RE2's searches are slow
_OPTIONS.log_errors = False
_SPACED = {
    " .. ": f"{_GAP}(?:{_WORD_LETTER}+{_GAP}){{0,2}}",
    " ": _GAP,
    "@": f"{_WORD_LETTER}+",
    "~": f"{_WORD_LETTER}*",
    "(": "(?:",
}
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
    for match in _any_sign(spaced).finditer(read):
        indices = _sign_set(spaced).Match(match[0])  # none if it is a sign only in its context
        if indices and (sign := SIGNS[min(indices)]) != "kept":
            yield Signal(sign, match.start(), match.end())


@cache
def _any_sign(spaced: bool) -> Any:
    """Return a pattern that finds all signs; of signs that begin at the same place the longest.

    Groups in so large a pattern would be slower, so that `_sign_set` tells which sign it is.
    """
    return re2.compile("|".join(_sign_patterns(spaced)), _OPTIONS)


@cache
def _sign_set(spaced: bool) -> Any:
    """Return a set of one pattern for each sign; it is made when the first sign is found, which most texts lack."""
    sign_set = re2.Set.FullMatchSet(_OPTIONS)
    for pattern in _sign_patterns(spaced):
        sign_set.Add(pattern)
    sign_set.Compile()
    return sign_set


@cache
def _sign_patterns(spaced: bool) -> list[str]:
    languages = _load("addressing").values()
    word_patterns = (
        [_expand(word, spaced) for words in languages for word in words[sign]] for sign in get_args(WordSign)
    )
    return ["|".join(alternatives) for alternatives in (_SIGNS["marks"], _SIGNS["tokens"], *word_patterns)]


def _load(name: str) -> dict[str, Any]:
    return tomllib.loads(files("jurygraph.safety").joinpath(f"{name}.toml").read_bytes().decode())


_SIGNS = _load("signs")


def _expand(pattern: str, spaced: bool) -> str:
    """Return a pattern of `addressing.toml` for RE2.

    With spaces between words, it is for whole words if it is ASCII, since RE2 has no other word boundaries.
    """
    plain = fold_text(pattern)
    notation = _SPACED if spaced else _UNSPACED
    expanded = f"(?:{_NOTATION.sub(lambda found: notation.get(found[0], found[0]), plain)})"
    if not spaced or not plain.isascii():
        return expanded
    before = _EDGE if _BEGINS_WITH_WORD.match(plain) else ""
    behind = _EDGE if _ENDS_WITH_WORD.search(plain) else ""
    return f"{before}{expanded}{behind}"


class View(NamedTuple):
    """One way to read a text, folded. `hidden` describes where the view was hidden if readers do not see it;
    `run_together` is True if it has lost the spaces between its words."""

    folded: bytes
    hidden: str = ""
    run_together: bool = False


_Combination = tuple[frozenset[Sign], int]
"""Signs that count when they occur together, and the number of characters that the passage may have (0: no limit)."""


class Address(NamedTuple):
    """A passage that addresses the grader, folded, and where it is hidden if readers do not see it."""

    passage: str
    hiding_place: str


def find_address(text: str, read: str, query: str, reference: str) -> Address | None:
    """Return the first passage in which a text addresses its grader; None if there is none. `read` is the folded text.

    Signs that the query or the reference shows or asks for do not count.
    """
    for view in find_views(text, read):
        for signs, passage in _find_combinations(view):
            if signs.isdisjoint(_allowed_signs(query, reference)):
                return Address(passage, view.hidden)
    return None


def _find_combinations(view: View) -> Iterator[tuple[frozenset[Sign], str]]:
    """Yield combinations of signs with their passages, in one pass: only the last of each sign counts."""
    combinations = _HIDDEN_COMBINATIONS_BY_SIGN if view.hidden else _COMBINATIONS_BY_SIGN
    last: dict[Sign, Signal] = {}
    for signal in find_signs(view.folded, spaced=not view.run_together):
        last[signal.sign] = signal
        for signs, within in combinations[signal.sign]:
            if signs <= last.keys():
                start = min(last[sign].start for sign in signs)
                passage = view.folded[start : signal.end]
                words = " ".join(passage.decode().split()) if not within or len(passage) <= 4 * within else None
                if words is not None and (not within or len(words) <= within):
                    yield signs, words


def _load_combinations(*names: str) -> Mapping[Sign, list[_Combination]]:
    combinations: list[Any] = [
        (frozenset(signs), entry["within"])
        for name in names
        for entry in _SIGNS[name]
        for signs in product(*map(str.split, entry["signs"]))
    ]
    return {sign: [combination for combination in combinations if sign in combination[0]] for sign in SIGNS}


_COMBINATIONS_BY_SIGN = _load_combinations("combinations")
_HIDDEN_COMBINATIONS_BY_SIGN = _load_combinations("combinations", "hidden_combinations")


@lru_cache(maxsize=16)
def _allowed_signs(query: str, reference: str) -> frozenset[Sign]:
    """Return the signs that the task shows in combination or asks for. Cached for all responses of a group."""
    folded_query = fold_text(query)
    allowed: set[Sign] = set()
    for text in (folded_query, fold_text(reference)):
        allowed.update(*(signs for signs, _ in _find_combinations(View(text.encode()))))
    for topic, signs in _SIGNS["allowed_signs"].items():
        if is_about(topic, folded_query):
            allowed.update(signs.split())
    return frozenset(allowed)


def is_about(topic: str, folded_query: str) -> bool:
    """Return whether a task is about one of the topics that `signs.toml` lists."""
    return re2.search("|".join(_SIGNS["topics"][topic]), folded_query) is not None


_BOXED = [f"{chr(first + at)}{chr(ord('a') + at)}" for first in (0x1F150, 0x1F170, 0x1F1E6) for at in range(26)]
_FOREIGN_PAIRS = _SIGNS["look_alikes"]["foreign"].split()
_ODD_PAIRS = [*_SIGNS["look_alikes"]["odd"].split(), *_BOXED]
_LOOKS_LIKE = {ord(pair[0]): pair[1] for pair in (*_FOREIGN_PAIRS, *_ODD_PAIRS)}
"""Latin letters by the look-alikes that folding does not replace."""

_FOREIGN, _ODD = ("".join(pair[0] for pair in pairs) for pairs in (_FOREIGN_PAIRS, _ODD_PAIRS))
_MIXED = re2.compile(f"[a-z][{_FOREIGN}]|[{_FOREIGN}][a-z]|[{_ODD}]")
"""Matches where a word mixes alphabets."""

_TAGS = re2.compile("[\U000e0020-\U000e007e]+")
_SELECTORS = re2.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")
_COMMENT = re2.compile(r"<!--((?s:.*?))(?:-->|\z)|\[(?://|comment)\]: ?#([^\n]*)")
_CODE = re2.compile(r"[A-Za-z0-9+/_-]{24,}(?:\r?\n[A-Za-z0-9+/_-]+)*")
_LETTER = r"[^\s[:punct:]\d]"
_SEPARATOR = r"[\s[:punct:]]{1,3}"
_SPACED_LETTERS = re2.compile(f"{_LETTER}(?:{_SEPARATOR}{_LETTER}){{9,}}")
_SEPARATORS = re.compile(rb"[\s!-/:-@\[-`{-~]+")
_BACKWARD_WORDS = re2.compile(r"erongi|snoitcurtsni|redarg|rotaulave|egduj|erocs|skram|airetirc|esnopser|rewsna")
_DIRECTION_CONTROLS = re2.compile("[\u202d\u202e\u2066\u2067]")
_HIDING_IN_ASCII = re2.compile(
    "|".join(["&#", *(e.pattern for e in (_COMMENT, _CODE, _SPACED_LETTERS, _BACKWARD_WORDS))])
)
"""Matches in every folded ASCII text that hides another one: most texts are searched for this only."""


def find_views(text: str, read: str) -> Iterator[View]:
    """Yield a text and all texts that are hidden in it; `read` is the folded text.

    Takes time proportional to the length of the text.
    """
    raw = text.encode("utf-8", "replace")
    content = read.encode()
    yield View(content)
    if text.isascii() and _HIDING_IN_ASCII.search(content) is None:
        return
    unusual = b"" if text.isascii() else raw  # what may have tags, selectors and direction controls
    if not read.isascii() and _MIXED.search(content) is not None:
        yield View(read.translate(_LOOKS_LIKE).encode())
    if b"&#" in raw:
        yield View(fold_text(unescape(text)).encode())
    tagged = ("".join(chr(ord(char) - 0xE0000) for char in run.decode()) for run in _TAGS.findall(unusual))
    selected = (
        bytes(map(_selector_byte, run.decode())).decode("utf-8", "ignore") for run in _SELECTORS.findall(unusual)
    )
    comments = b"\n".join(match[1] or match[2] for match in _COMMENT.finditer(content))
    backwards = set(_BACKWARD_WORDS.findall(content))  # one of them may occur by chance
    hidden = {
        "in characters that nobody sees": "\n".join([*tagged, *selected]),
        "in a comment": comments.decode(),
        "in base64": "\n".join(filter(None, (_decode_base64(match[0]) for match in _CODE.finditer(raw)))),
        "backwards": read[::-1] if len(backwards) > 1 or _DIRECTION_CONTROLS.search(unusual) is not None else "",
    }
    yield from (View(fold_text(hidden_text).encode(), place) for place, hidden_text in hidden.items() if hidden_text)
    if spaced := b"\n".join(_SEPARATORS.sub(b"", match[0]) for match in _SPACED_LETTERS.finditer(content)):
        yield View(spaced, "in spaced letters", run_together=True)


def _selector_byte(selector: str) -> int:
    code = ord(selector)
    return code - 0xFE00 if code < 0xE0100 else code - 0xE0100 + 16


def _decode_base64(code: bytes) -> str:
    """Return the text that a base64 code, in either alphabet, encodes; "" if it encodes no text."""
    plain = b"".join(code.split()).translate(bytes.maketrans(b"-_", b"+/"))
    start = b64decode(plain[:24]).decode("utf-8", "replace")[:-1]  # the last letter may be incomplete
    if "\ufffd" in start or not all(map(str.isprintable, start.split())):
        return ""
    return b64decode(plain[: len(plain) // 4 * 4]).decode("utf-8", "ignore")
