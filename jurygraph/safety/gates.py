"""Gates before any model: responses that say nothing, copy their reference, or speak to their grader.

A judge that is asked about them can be talked into a score. They answer nothing but questions to models: facts and
checks are decided as ever.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import re2

from jurygraph.safety.addressing import addressed
from jurygraph.safety.copying import copied
from jurygraph.safety.folding import INVISIBLE, folded, letters, visible
from jurygraph.safety.openings import is_bare_opener
from jurygraph.schema.safety import RESPONSE_GATES, ResponseGate
from jurygraph.sources.complaint import quoted


class Gated(NamedTuple):
    """The gate that stops a response, and why, in a sentence that quotes the telling passage."""

    gate: ResponseGate
    reason: str


class _Read(NamedTuple):
    """A response as a gate reads it: as it stands and folded, and what of its task is said beside it."""

    text: str
    read: str
    query: str
    reference: str


def gated(text: str, gates: Collection[ResponseGate], *, query: str = "", reference: str | None = None) -> Gated | None:
    """The first of these gates, in the order of `RESPONSE_GATES`, that stops a response; None where none does.

    Depends on the texts alone, and takes time in proportion to them. What query and reference say too is not held
    against a response.
    """
    response = _Read(text, folded(text), query, reference or "")
    for gate in RESPONSE_GATES:
        if gate in gates:
            reason = _GATES[gate](response)
            if reason is not None:
                return Gated(gate, reason)
    return None


_SEEN = re.compile(f"[^\\s{INVISIBLE}]")
_SAYS = re.compile(f"(?![{INVISIBLE}])[^\\W_]")
_NO_WORDS_ASKED = re2.compile(
    r"emoji|emoticon|\bmorse\b|ascii.?art|braille"
    r"|\b(?:which|what) (?:[a-z]+ )?(?:sign|mark|symbol|operator|character)\b"
)
_WORD_ASKED = re2.compile(
    r"synonym|antonym|translat|rhyme|anagram|crossword|\bwhat is\b.*\bcalled\b|\b(?:which|what) word\b"
    r"|\b(?:another|a|the|one) (?:word|term) (?:for|that)\b|ubersetz|traduis|traduce|traduz|traduci|vertaal|przetlumacz"
    r"|переведи|翻译|翻訳|번역|ترجم|अनुवाद"
)
_LONGEST_WORD = 30


def _empty(response: _Read) -> str | None:
    return "there is nothing in it that can be seen" if _SEEN.search(response.text) is None else None


def _punctuation(response: _Read) -> str | None:
    if _only_signs(response.text) and not (_only_signs(response.reference) or _asks_for_signs(response.query)):
        return f"there is no word and no figure in it: {quoted(_line(response.text))}"
    return None


def _only_signs(text: str) -> bool:
    return _SEEN.search(text) is not None and not _says(text)


def _asks_for_signs(query: str) -> bool:
    return _NO_WORDS_ASKED.search(folded(query)) is not None


def _says(text: str) -> bool:
    """Whether there is a letter, a digit or a sign of mathematics, or what stands for one, as ㈱ does."""
    return _SAYS.search(text) is not None or any(map(_meaningful, set(visible(text))))


def _meaningful(char: str) -> bool:
    if not char.isascii() and unicodedata.category(char) == "Sm":
        return True
    return any(part.isalnum() for part in unicodedata.normalize("NFKC", char))


def _opener(response: _Read) -> str | None:
    if is_bare_opener(response.read) and not _is_the_word(response):
        return f"it announces an answer and gives none: {quoted(_line(response.text))}"
    return None


def _is_the_word(response: _Read) -> bool:
    """Whether the opener is a word that is asked for, or that a reference as short says."""
    if len(response.text) > _LONGEST_WORD:
        return False
    reference = letters(folded(response.reference))
    meant = len(response.reference) <= _LONGEST_WORD and letters(response.read) in reference
    return meant or _WORD_ASKED.search(folded(response.query)) is not None


def _copy(response: _Read) -> str | None:
    how = copied(response.read, response.reference, response.query)
    return None if how is None else f"{how}: {quoted(_line(response.reference))}"


def _addressed(response: _Read) -> str | None:
    found = addressed(response.text, response.read, response.query, response.reference)
    if found is None:
        return None
    return f"it speaks to its grader{found.hidden and f', {found.hidden}'}: {quoted(found.passage)}"


def _line(text: str) -> str:
    """The beginning of a text, on one line."""
    return " ".join(visible(text[:200]).split())


_GATES: Mapping[ResponseGate, Callable[[_Read], str | None]] = {
    "empty-response": _empty,
    "punctuation-only": _punctuation,
    "bare-opener": _opener,
    "reference-copy": _copy,
    "addresses-grader": _addressed,
}
"""By gate, why a response is stopped; None where it is not."""
