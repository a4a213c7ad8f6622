"""Find the unit that a question asks for."""

import re
from functools import lru_cache

from jurygraph.agents.maths.units import measure_of

_UNIT_WORD = re.compile(r"\b(?:how many(?: more| fewer| total| extra| whole)?|in) ([a-z]{2,12})\b", re.IGNORECASE)
_MOST_READ = 2_000  # characters at the end of a question


@lru_cache(maxsize=256)
def required_unit(query: str) -> str:
    """Return the one unit of measurement that the last sentence with "?" asks for, such as "dollars" in "how much in
    dollars" or "minutes" in "how many minutes"; empty if it names none or several."""
    sentence = re.split(r"[.!?\n]", query[-_MOST_READ:].rpartition("?")[0])[-1]
    units = {word.lower() for word in _UNIT_WORD.findall(sentence) if measure_of(word)}
    return units.pop() if len(units) == 1 else ""
