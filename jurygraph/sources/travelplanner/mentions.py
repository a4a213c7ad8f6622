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
    ends = [end.span() for end in pattern("clause_end").finditer(query)]
    ends += [(end.end() - 1, end.end()) for end in pattern("subordinate").finditer(query)]
    start = max((end for _, end in ends if end <= match.start()), default=0)
    before = pattern("no_denial").sub("", query[start : match.start()])
    after = query[match.end() : min((stop for stop, _ in ends if stop >= match.end()), default=len(query))]
    if pattern("indifferent").search(before) or pattern("open_to").search(before):
        return "indifferent"
    if pattern("indifferent_after").search(after):
        return "indifferent"
    denials = len(pattern("denial").findall(before)) - len(re.findall(r"\bneither\b.*\bnor\b", before, re.IGNORECASE))
    denials += pattern("denied_after").search(after) is not None
    if (
        pattern("restricted").search(before[-40:])
        or pattern("restricted").search(match[0])
        or pattern("restricted_after").search(after)
    ):
        denials += 1
        return "wanted" if denials == 2 else "denied" if denials == 1 else "unclear"
    return ("wanted", "denied")[denials] if denials < 2 else "unclear"
