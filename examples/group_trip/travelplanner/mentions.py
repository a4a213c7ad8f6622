"""How a query mentions something: as wanted, denied or indifferent, by the words of its clause."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Literal

from examples.group_trip.travelplanner.vocabulary import compile_words, load_vocabulary, pattern

_KINDS = ("rules", "rooms", "modes", "cuisines")
Mention = Literal["wanted", "denied", "indifferent", "unclear"]


@cache
def _words_of(kind: str) -> Mapping[str, str]:
    """Return the patterns of the things of a kind (rules, rooms, modes or cuisines), by name."""
    things = load_vocabulary()[kind]
    if isinstance(things, Mapping):
        return things
    exceptions = load_vocabulary()["patterns"]["no_food"]
    return {name: rf"\b{name}\b{exceptions}" for name in things}


def classify_all(query: str, kind: str) -> dict[str, Mention | None]:
    """Classify how a query mentions each of the things of a kind."""
    return {name: _classify_thing(query, kind, words) for name, words in _words_of(kind).items()}


def names_mentioned(mentions: Mapping[str, Mention | None], *kinds: Mention) -> Iterator[str]:
    """Yield the names with a mention of these kinds."""
    return (name for kind in kinds for name, mention in mentions.items() if mention == kind)


def _classify_thing(query: str, kind: str, words: str) -> Mention | None:
    """Classify the first mention that is not indifferent; None if there is no mention."""
    found = [_classify(query, kind, match) for match in compile_words(words).finditer(query)]
    return next(
        (mention for mention in found if mention != "indifferent"), found[0] if found else None
    )


def _classify(query: str, kind: str, match: re.Match[str]) -> Mention:
    before, after = _clause_around(query, match)
    before = _after_other_kinds(before, kind, after)
    is_forbidding_rule = pattern("no_rule").search(after) is not None
    if is_forbidding_rule:
        before = re.sub(r"\bno[- ]$", "", before, flags=re.IGNORECASE)
    if kind == "rules" and _is_of_the_stay(before, after):
        return "wanted"
    if pattern("indifferent").search(before) or pattern("open_to").search(before):
        return "indifferent"
    if pattern("indifferent_after").search(after):
        return "indifferent"
    denials = _count_denials(before, match[0], after)
    if is_forbidding_rule or _is_restricted(before, match[0], after):
        denials += 1
        return "wanted" if denials == 2 else "denied" if denials == 1 else "unclear"
    return ("wanted", "denied")[denials] if denials < 2 else "unclear"


def _is_of_the_stay(before: str, after: str) -> bool:
    """Return True if the stay, not the travellers, is said to be fine with a mention.

    "A host who doesn't mind pets", "rooms where smoking is fine", and "avoid places that don't allow parties".
    """
    if pattern("host_minds_not").search(before) or pattern("avoids_refusal").search(before):
        return True
    return (
        pattern("in_a_place").search(before) is not None
        and pattern("indifferent_after").search(after) is not None
    )


def _clause_around(query: str, match: re.Match[str]) -> tuple[str, str]:
    """Return the words of the clause before and after a mention, without denials that have another meaning."""
    ends = [end.span() for end in pattern("clause_end").finditer(query)]
    ends += [(end.end() - 1, end.end()) for end in pattern("subordinate").finditer(query)]
    start = max((end for _, end in ends if end <= match.start()), default=0)
    stop = min((begin for begin, _ in ends if begin >= match.end()), default=len(query))
    return pattern("no_denial").sub("", query[start : match.start()]), query[match.end() : stop]


def _after_other_kinds(before: str, kind: str, after: str) -> str:
    """Return the words after the last comma that parts a denied thing of another kind from this one.

    "No flights, private rooms" denies flights alone; "no flights, self-driving" and "avoid flights, shared rooms" deny
    both, and so does a list that goes on with "or".
    """
    kinds = {name: "|".join(_words_of(name).values()) for name in _KINDS}
    while pattern("avoided").search(before + after) is None:
        comma = next(
            (
                place.end()
                for place in re.finditer(",", before)
                if _parts(before[: place.start()], kind, kinds)
            ),
            0,
        )
        if comma == 0:
            break
        before = before[comma:]
    return before


def _parts(words: str, kind: str, kinds: Mapping[str, str]) -> bool:
    named = {name for name in kinds if compile_words(kinds[name]).search(words)}
    return bool(named) and kind not in named and pattern("denial").search(words) is not None


def _count_denials(before: str, words: str, after: str) -> int:
    """Return the number of denials; "neither … nor" is one."""
    pairs = len(re.findall(r"\bneither\b.*\bnor\b", before, re.IGNORECASE))
    return (
        len(pattern("denial").findall(before + words))
        - pairs
        + bool(pattern("denied_after").search(after))
    )


def _is_restricted(before: str, words: str, after: str) -> bool:
    """Return True if the words around a mention say that it is prohibited or limited."""
    is_before = pattern("restricted").search(before[-40:] + words) is not None
    return is_before or pattern("restricted_after").search(after) is not None
