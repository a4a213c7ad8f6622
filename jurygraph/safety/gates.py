"""Response gates, applied before any model call: empty responses, copies of the reference, messages to the grader.

A judge model can be persuaded to score such responses. The gates only decide questions to models: facts and checks are
evaluated as usual.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.distance import Indel

from jurygraph.messages import quote
from jurygraph.safety.addresses import find_address, is_about
from jurygraph.safety.openers import is_bare_opener
from jurygraph.safety.text_folding import INVISIBLE, fold_text, letters_and_digits, remove_invisible
from jurygraph.schema.verdict import RESPONSE_GATES, ResponseGate


class TextGateResult(NamedTuple):
    """The gate that stops a response, and the reason, a sentence that quotes the passage."""

    gate: ResponseGate
    reason: str


def stopping_gate(
    text: str, gates: Collection[ResponseGate], *, query: str = "", reference: str | None = None
) -> TextGateResult | None:
    """Return the first of these gates, in the order of `RESPONSE_GATES`, that stops a response; None if none does.

    Depends on the texts alone, and takes time proportional to their length. Passages that the query or reference
    contains as well do not count against a response.
    """
    read = fold_text(text)
    reference = reference or ""
    reasons: Mapping[ResponseGate, Callable[[], str | None]] = {
        "empty-response": lambda: "there is nothing in it that can be seen" if not _VISIBLE.search(text) else None,
        "punctuation-only": lambda: _check_punctuation(text, query, reference),
        "bare-opener": lambda: _check_opener(text, read, query, reference),
        "reference-copy": lambda: _check_copy(read, query, reference),
        "addresses-grader": lambda: _check_address(text, read, query, reference),
    }
    for gate in RESPONSE_GATES:
        if gate in gates and (reason := reasons[gate]()) is not None:
            return TextGateResult(gate, reason)
    return None


_VISIBLE = re.compile(f"[^\\s{INVISIBLE}]")
_WORD_CHARACTER = re.compile(f"(?![{INVISIBLE}])[^\\W_]")
_MAX_WORD_LENGTH = 30


def _check_punctuation(text: str, query: str, reference: str) -> str | None:
    if not _has_only_signs(text) or _has_only_signs(reference) or is_about("punctuation", fold_text(query)):
        return None
    return f"there is no word and no figure in it: {quote(_first_line(text))}"


def _has_only_signs(text: str) -> bool:
    """Return whether nothing to be seen is or represents (as ㈱ does) a letter, digit or mathematical sign."""
    if _VISIBLE.search(text) is None or _WORD_CHARACTER.search(text) is not None:
        return False
    return not any(
        (not char.isascii() and unicodedata.category(char) == "Sm")
        or any(map(str.isalnum, unicodedata.normalize("NFKC", char)))
        for char in set(remove_invisible(text))
    )


def _check_opener(text: str, read: str, query: str, reference: str) -> str | None:
    if not is_bare_opener(read):
        return None
    if len(text) <= _MAX_WORD_LENGTH:  # it may be a word that the query asks for, or that a short reference contains
        is_short = len(reference) <= _MAX_WORD_LENGTH
        if is_short and letters_and_digits(read) in letters_and_digits(fold_text(reference)):
            return None
        if is_about("words", fold_text(query)):
            return None
    return f"it announces an answer and gives none: {quote(_first_line(text))}"


def _check_copy(read: str, query: str, reference: str) -> str | None:
    description = describe_copy(read, reference, query)
    return description and f"{description}: {quote(_first_line(reference))}"


def _check_address(text: str, read: str, query: str, reference: str) -> str | None:
    address = find_address(text, read, query, reference)
    if address is None:
        return None
    return f"it speaks to its grader{address.hiding_place and f', {address.hiding_place}'}: {quote(address.passage)}"


def _first_line(text: str) -> str:
    return " ".join(remove_invisible(text[:200]).split())


MIN_LETTERS = 60
"""Minimum number of letters of a reference for a copy of it to be suspicious. Digits do not count: correct solutions of
a problem share all of theirs. On GSM8K, where models learnt to write as references do, some correct solutions of up to
56 letters equal the reference letter by letter."""

_NEAR_COPY_CUTOFFS = ((240, 0.92), (120, 0.98))
"""Minimum numbers of letters, each with the similarity from which a text is nearly the reference. On GSM8K, honest
solutions reach similarities of 0.85 and 0.97."""

_LONG = 120
_MAX_EXTRA = 1.0
"""A reference of at least `_LONG` letters is copied by any response that contains all of it; a shorter one only if the
rest of the response is at most `_MAX_EXTRA` times as long. No honest solution in GSM8K contains a long one."""
_COMPARED = 20_000
_RUN_LENGTH = 16
_MAX_SHARE_IN_QUERY = 0.5


def describe_copy(read: str, reference: str, query: str) -> str | None:
    """Return how a folded response copies the reference, as a sentence; None if it does not.

    A reference that is mostly in the query, as in tasks that correct or quote a text, cannot be copied.
    """
    reference_letters = _letters_of(reference)
    weight = sum(map(str.isalpha, reference_letters))
    if weight < MIN_LETTERS:
        return None
    description = _describe_likeness(letters_and_digits(read), reference_letters, weight)
    if description is None:
        return None
    letters = letters_and_digits(fold_text(query))
    runs = {letters[at : at + _RUN_LENGTH] for at in range(len(letters))}
    starts = range(len(reference_letters) - _RUN_LENGTH + 1)
    shared = sum(reference_letters[at : at + _RUN_LENGTH] in runs for at in starts)
    return None if shared > _MAX_SHARE_IN_QUERY * len(starts) else description


@lru_cache(maxsize=16)
def _letters_of(reference: str) -> str:
    return letters_and_digits(fold_text(reference))


def _describe_likeness(response: str, reference: str, weight: int) -> str | None:
    if response == reference:
        return "it is the reference"
    if reference in response and (weight >= _LONG or len(response) <= (1 + _MAX_EXTRA) * len(reference)):
        return "it holds the reference, word for word"
    cutoff = next((share for length, share in _NEAR_COPY_CUTOFFS if weight >= length), None)
    if cutoff is None or min(len(response), len(reference)) < cutoff * max(len(response), len(reference)):
        return None
    compared = response[:_COMPARED], reference[:_COMPARED]  # the beginnings of long texts
    is_near = Indel.normalized_similarity(*compared, score_cutoff=cutoff) > 0
    return "it is nearly the reference" if is_near else None
