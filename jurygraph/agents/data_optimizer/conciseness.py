"""Length, redundancy and compression of a text, each as a score that is 1 if nothing is wasted; our formulas."""

import re
from collections.abc import Sequence
from statistics import median

from jurygraph.agents.data_optimizer.words import grams, words

MAX_CHARACTERS = 100_000
"""The number of characters in which repetitions are searched; longer texts are cut there."""

_UNIT_END = re.compile(r"\n+|(?<=[.!?])\s+|(?<=[。！？])")
_MAX_UNIT_WORDS = 40
_MIN_OVERLAP = 0.8
_GRAM_SIZE = 3

MIN_COMPRESSED_CHARACTERS = 200
"""The shortest text, in characters, whose compression is scored; shorter ones never count as redundant by it."""

ORDINARY_COMPRESSION = 0.55
"""The smallest compressed size of ordinary text, as a share: solutions of GSM8K .68 (99 in 100), prose of 4,000
characters .70 and of 100,000 .61, Python .58 and .54. Below that, a text repeats itself."""

_MIN_BITS = 8


def brevity(length: int, baseline: float, limit: float) -> float:
    """Return 1 up to the `baseline`, falling linearly to 0 at `limit` times the baseline; lengths are in words.

    `baseline` is above 0 and `limit` above 1. An empty text is not brief: it scores 0.
    """
    if length == 0:
        return 0.0
    return min(1.0, max(0.0, (limit - length / baseline) / (limit - 1.0)))


def baseline(reference: int, group: Sequence[int]) -> float:
    """Return the number of words that cost nothing: the reference's, or the group's median if that is less.

    `reference` is 0 without one. Empty responses do not count.
    """
    lengths = [length for length in group if length > 0]
    median_length = float(median(lengths)) if lengths else 0.0
    return min(reference or median_length, median_length)


def freshness(text: str) -> float:
    """Return 1 - the share of the text's words in sentences that repeat earlier ones; 0 for a text without words.

    A sentence, or a piece of 40 words of one, is a repetition if it occurred before unchanged, or if at least 0.8 of
    its distinct 3-grams occurred in earlier sentences.
    """
    seen_units: set[tuple[str, ...]] = set()
    seen_grams: set[tuple[str, ...]] = set()
    total = repeated = 0
    for unit in _units(text[:MAX_CHARACTERS]):
        unit_grams = set(grams(unit, _GRAM_SIZE))
        is_repeated = unit in seen_units or (
            bool(unit_grams) and len(unit_grams & seen_grams) >= _MIN_OVERLAP * len(unit_grams)
        )
        total, repeated = total + len(unit), repeated + (len(unit) if is_repeated else 0)
        seen_units.add(unit)
        seen_grams |= unit_grams
    return 1.0 - repeated / total if total else 0.0


def _units(text: str) -> list[tuple[str, ...]]:
    """Return sentences and lines as words, cut after 40, so that text without sentence ends is compared too."""
    sentences = (tuple(words(sentence)) for sentence in _UNIT_END.split(text))
    return [
        sentence[start : start + _MAX_UNIT_WORDS]
        for sentence in sentences
        for start in range(0, len(sentence), _MAX_UNIT_WORDS)
    ]


def compressed_share(text: str) -> float:
    """Return the size of a text compressed by LZ78 (Ziv and Lempel, 1978), as a share of its size; above 1 if it grows.

    A character takes 8 bits, or the number that distinguishes all characters of the text; a phrase takes those of the
    character that it adds, and of the number of an earlier phrase. Not zlib, since its builds differ in their output.
    `text` is not empty.
    """
    width = max(_MIN_BITS, len(set(text)).bit_length())
    phrases: dict[tuple[int, str], int] = {}
    phrase = bits = 0
    for char in text:
        longer = phrases.get((phrase, char))
        if longer is not None:
            phrase = longer
            continue
        phrases[phrase, char] = len(phrases) + 1
        bits += len(phrases).bit_length() + width
        phrase = 0
    rest_bits = len(phrases).bit_length() if phrase else 0
    return (bits + rest_bits) / (width * len(text))


def density(text: str) -> float:
    """Return min(1, compressed share / EXPECTED); 1 if the text is too short to tell."""
    read = text[:MAX_CHARACTERS]
    return 1.0 if len(read) < MIN_COMPRESSED_CHARACTERS else min(1.0, compressed_share(read) / ORDINARY_COMPRESSION)
