"""Repetition of word sequences (MACRM, §3: R_rep)."""

import re

_WORD = re.compile(r"\w+")


def repetition(text: str, n: int = 3) -> float:
    """Return 1 − distinct / total n-grams over the lower-cased words of `text`: 0 if none repeats, always below 1.

    A text of fewer than `n` words has no n-gram and scores 0.

    Raises:
        ValueError: `n` is below 1.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n}")
    words = _WORD.findall(text.lower())
    grams = list(zip(*(words[i:] for i in range(n)), strict=False))
    return 1 - len(set(grams)) / len(grams) if grams else 0.0
