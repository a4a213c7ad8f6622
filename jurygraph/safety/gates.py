"""Response gates, applied before any model call: empty responses, copies of the reference, messages to the grader.

A judge model can be persuaded to score such responses. The gates only decide questions to models: facts and checks are
evaluated as usual.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import re2

from jurygraph.messages import quote
from jurygraph.safety.addresses import find_address
from jurygraph.safety.copied_text import describe_copy
from jurygraph.safety.openers import is_bare_opener
from jurygraph.safety.text_folding import INVISIBLE, fold_text, letters_and_digits, remove_invisible
from jurygraph.schema.safety import RESPONSE_GATES, ResponseGate


class GateResult(NamedTuple):
    """The gate that stops a response, and the reason, a sentence that quotes the passage."""

    gate: ResponseGate
    reason: str


class _ReadResponse(NamedTuple):
    """A response as the gates read it: original and folded text, and the query and reference of its task."""

    text: str
    read: str
    query: str
    reference: str


def stopping_gate(
    text: str, gates: Collection[ResponseGate], *, query: str = "", reference: str | None = None
) -> GateResult | None:
    """Return the first of these gates, in the order of `RESPONSE_GATES`, that stops a response; None if none does.

    Depends on the texts alone, and takes time proportional to their length. Passages that the query or reference
    contains as well do not count against a response.
    """
    response = _ReadResponse(text, fold_text(text), query, reference or "")
    for gate in RESPONSE_GATES:
        if gate in gates:
            reason = _GATES[gate](response)
            if reason is not None:
                return GateResult(gate, reason)
    return None


_VISIBLE = re.compile(f"[^\\s{INVISIBLE}]")
_WORD_CHARACTER = re.compile(f"(?![{INVISIBLE}])[^\\W_]")
_ASKS_FOR_SIGNS = re2.compile(
    r"emoji|emoticon|\bmorse\b|ascii.?art|braille"
    r"|\b(?:which|what) (?:[a-z]+ )?(?:sign|mark|symbol|operator|character)\b"
)
_ASKS_FOR_WORD = re2.compile(
    r"synonym|antonym|translat|rhyme|anagram|crossword|\bwhat is\b.*\bcalled\b|\b(?:which|what) word\b"
    r"|\b(?:another|a|the|one) (?:word|term) (?:for|that)\b|ubersetz|traduis|traduce|traduz|traduci|vertaal|przetlumacz"
    r"|переведи|翻译|翻訳|번역|ترجم|अनुवाद"
)
_MAX_WORD_LENGTH = 30


def _check_empty(response: _ReadResponse) -> str | None:
    return "there is nothing in it that can be seen" if _VISIBLE.search(response.text) is None else None


def _check_punctuation(response: _ReadResponse) -> str | None:
    if _has_only_signs(response.text) and not (_has_only_signs(response.reference) or _is_sign_query(response.query)):
        return f"there is no word and no figure in it: {quote(_first_line(response.text))}"
    return None


def _has_only_signs(text: str) -> bool:
    return _VISIBLE.search(text) is not None and not _has_meaning(text)


def _is_sign_query(query: str) -> bool:
    return _ASKS_FOR_SIGNS.search(fold_text(query)) is not None


def _has_meaning(text: str) -> bool:
    """Return whether there is a letter, digit or mathematical sign, or a character that represents one, such as ㈱."""
    return _WORD_CHARACTER.search(text) is not None or any(map(_is_meaningful, set(remove_invisible(text))))


def _is_meaningful(char: str) -> bool:
    if not char.isascii() and unicodedata.category(char) == "Sm":
        return True
    return any(part.isalnum() for part in unicodedata.normalize("NFKC", char))


def _check_opener(response: _ReadResponse) -> str | None:
    if is_bare_opener(response.read) and not _is_expected_word(response):
        return f"it announces an answer and gives none: {quote(_first_line(response.text))}"
    return None


def _is_expected_word(response: _ReadResponse) -> bool:
    """Return whether the opener is a word that the query asks for or that a short reference contains."""
    if len(response.text) > _MAX_WORD_LENGTH:
        return False
    reference = letters_and_digits(fold_text(response.reference))
    is_in_reference = len(response.reference) <= _MAX_WORD_LENGTH and letters_and_digits(response.read) in reference
    return is_in_reference or _ASKS_FOR_WORD.search(fold_text(response.query)) is not None


def _check_copy(response: _ReadResponse) -> str | None:
    description = describe_copy(response.read, response.reference, response.query)
    return None if description is None else f"{description}: {quote(_first_line(response.reference))}"


def _check_address(response: _ReadResponse) -> str | None:
    address = find_address(response.text, response.read, response.query, response.reference)
    if address is None:
        return None
    return f"it speaks to its grader{address.hiding_place and f', {address.hiding_place}'}: {quote(address.passage)}"


def _first_line(text: str) -> str:
    """Return the beginning of a text, on one line."""
    return " ".join(remove_invisible(text[:200]).split())


_GATES: Mapping[ResponseGate, Callable[[_ReadResponse], str | None]] = {
    "empty-response": _check_empty,
    "punctuation-only": _check_punctuation,
    "bare-opener": _check_opener,
    "reference-copy": _check_copy,
    "addresses-grader": _check_address,
}
"""Functions that return the reason why a gate stops a response, or None if it does not."""
