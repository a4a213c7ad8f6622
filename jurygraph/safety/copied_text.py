"""Detect responses that copy their reference: exactly, with little else, or nearly."""

from functools import lru_cache

from rapidfuzz.distance import Indel

from jurygraph.safety.text_folding import fold_text, letters_and_digits

MIN_LETTERS = 60
"""Minimum number of letters of a reference for a copy of it to be suspicious. Digits do not count: correct solutions of
a problem share all of theirs. On GSM8K, where models learnt to write as references do, some correct solutions of up to
56 letters equal the reference letter by letter."""

_NEAR_COPY_CUTOFFS = ((240, 0.92), (120, 0.98))
"""Minimum numbers of letters, each with the similarity from which a text is nearly the reference. On GSM8K, honest
solutions reach similarities of 0.85 and 0.97."""

_LONG, _MAX_EXTRA = 120, 1.0
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
    return (
        None
        if description is None or _is_in_query(reference_letters, letters_and_digits(fold_text(query)))
        else description
    )


@lru_cache(maxsize=16)
def _letters_of(reference: str) -> str:
    """Return the letters of a reference. Cached, since all responses of a group have the same reference."""
    return letters_and_digits(fold_text(reference))


def _describe_likeness(response: str, reference: str, weight: int) -> str | None:
    if response == reference:
        return "it is the reference"
    if reference in response and (weight >= _LONG or len(response) <= (1 + _MAX_EXTRA) * len(reference)):
        return "it holds the reference, word for word"
    cutoff = next((share for length, share in _NEAR_COPY_CUTOFFS if weight >= length), None)
    return "it is nearly the reference" if cutoff is not None and _is_near_copy(response, reference, cutoff) else None


def _is_near_copy(response: str, reference: str, cutoff: float) -> bool:
    """Return whether the similarity reaches the cutoff; of long texts, only the beginnings are compared."""
    if min(len(response), len(reference)) < cutoff * max(len(response), len(reference)):
        return False
    return Indel.normalized_similarity(response[:_COMPARED], reference[:_COMPARED], score_cutoff=cutoff) > 0


def _is_in_query(reference: str, query: str) -> bool:
    """Return whether the query contains most of the runs of letters of a reference."""
    runs = {query[at : at + _RUN_LENGTH] for at in range(len(query))}
    starts = range(len(reference) - _RUN_LENGTH + 1)
    return sum(reference[at : at + _RUN_LENGTH] in runs for at in starts) > _MAX_SHARE_IN_QUERY * len(starts)
