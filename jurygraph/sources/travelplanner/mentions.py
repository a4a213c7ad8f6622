"""How a query mentions something: as wanted, denied or indifferent, by the words of its clause."""

import re
from collections.abc import Iterator, Mapping
from typing import Literal

from jurygraph.sources.travelplanner.vocabulary import compile_words, pattern

Mention = Literal["wanted", "denied", "indifferent", "unclear"]


def classify_all(query: str, patterns: Mapping[str, str]) -> dict[str, Mention | None]:
    """Classify how a query mentions each of some things, given by the patterns of their names."""
    return {name: classify_mention(query, words) for name, words in patterns.items()}


def names_mentioned(mentions: Mapping[str, Mention | None], *kinds: Mention) -> Iterator[str]:
    """Yield the names with a mention of these kinds."""
    return (name for kind in kinds for name, mention in mentions.items() if mention == kind)


def classify_mention(query: str, words: str) -> Mention | None:
    """Classify the first mention that is not indifferent; None if there is no mention."""
    found = [_classify(query, match) for match in compile_words(words).finditer(query)]
    return next((mention for mention in found if mention != "indifferent"), found[0] if found else None)


def _classify(query: str, match: re.Match[str]) -> Mention:
    before, after = _clause_around(query, match)
    is_forbidding_rule = pattern("no_rule").search(after) is not None
    if is_forbidding_rule:
        before = re.sub(r"\bno[- ]$", "", before, flags=re.IGNORECASE)
    if pattern("indifferent").search(before) or pattern("open_to").search(before):
        return "indifferent"
    if pattern("indifferent_after").search(after):
        return "indifferent"
    denials = _count_denials(before, match[0], after)
    if is_forbidding_rule or _is_restricted(before, match[0], after):
        denials += 1
        return "wanted" if denials == 2 else "denied" if denials == 1 else "unclear"
    return ("wanted", "denied")[denials] if denials < 2 else "unclear"


def _clause_around(query: str, match: re.Match[str]) -> tuple[str, str]:
    """Return the words of the clause before and after a mention, without denials that have another meaning."""
    ends = [end.span() for end in pattern("clause_end").finditer(query)]
    ends += [(end.end() - 1, end.end()) for end in pattern("subordinate").finditer(query)]
    start = max((end for _, end in ends if end <= match.start()), default=0)
    stop = min((begin for begin, _ in ends if begin >= match.end()), default=len(query))
    return pattern("no_denial").sub("", query[start : match.start()]), query[match.end() : stop]


def _count_denials(before: str, words: str, after: str) -> int:
    """Return the number of denials; "neither … nor" is one."""
    pairs = len(re.findall(r"\bneither\b.*\bnor\b", before, re.IGNORECASE))
    return len(pattern("denial").findall(before + words)) - pairs + bool(pattern("denied_after").search(after))


def _is_restricted(before: str, words: str, after: str) -> bool:
    """Return True if the words around a mention say that it is prohibited or limited."""
    is_before = pattern("restricted").search(before[-40:] + words) is not None
    return is_before or pattern("restricted_after").search(after) is not None
