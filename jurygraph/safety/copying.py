"""Whether a response is its reference over again: whole, with little else, or nearly."""

from functools import lru_cache

from rapidfuzz.distance import Indel

from jurygraph.safety.folding import folded, letters

SHORTEST = 60
"""Letters that a reference needs so that to write it again says something. Figures do not count: right solutions of one
problem share all of theirs. On GSM8K, where models learnt to write as references do, some right ones of up to 56
letters are the reference letter by letter."""

_NEARLY = ((240, 0.92), (120, 0.98))
"""From so many letters on, the share of both texts that is the same where one is nearly the other. On GSM8K, honest
ones reach 0.85 and 0.97."""

_LONG, _MOST_BESIDE = 120, 1.0
"""A reference of so many letters is copied by whoever writes all of it, a shorter one where little else stands beside
it, as a share of it. No honest solution in GSM8K holds a long one."""
_READ = 20_000
_RUN = 16
_MOST_GIVEN = 0.5


def copied(read: str, reference: str, query: str) -> str | None:
    """How a folded response copies the reference; None where it does not.

    Nobody copies who writes what the query says: most of a corrected text, or of one quoted from the query, is there.
    """
    own = _letters_of(reference)
    weight = sum(map(str.isalpha, own))
    if weight < SHORTEST:
        return None
    how = _likeness(letters(read), own, weight)
    return None if how is None or _given(own, letters(folded(query))) else how


@lru_cache(maxsize=16)
def _letters_of(reference: str) -> str:
    """All responses of a group have the same one."""
    return letters(folded(reference))


def _likeness(said: str, own: str, weight: int) -> str | None:
    if said == own:
        return "it is the reference"
    if own in said and (weight >= _LONG or len(said) <= (1 + _MOST_BESIDE) * len(own)):
        return "it holds the reference, word for word"
    cutoff = next((share for length, share in _NEARLY if weight >= length), None)
    return "it is nearly the reference" if cutoff is not None and _nearly(said, own, cutoff) else None


def _nearly(said: str, own: str, cutoff: float) -> bool:
    """Whether such a share of both texts is the same; of long ones, of their beginnings."""
    if min(len(said), len(own)) < cutoff * max(len(said), len(own)):
        return False
    return Indel.normalized_similarity(said[:_READ], own[:_READ], score_cutoff=cutoff) > 0


def _given(own: str, query: str) -> bool:
    """Whether most of a reference stands in its query, by runs of letters."""
    runs = {query[at : at + _RUN] for at in range(len(query))}
    own_runs = range(len(own) - _RUN + 1)
    return sum(own[at : at + _RUN] in runs for at in own_runs) > _MOST_GIVEN * len(own_runs)
