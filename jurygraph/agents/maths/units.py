"""Read the words after a number: a scale ("million"), a unit of measurement ("cm") or what is counted ("duck eggs").

The sizes are a table of ours (`measures.toml`): math-verify ignores units, and a library of physics reads "cats" as a
pressure, "points" as a length and "3 pm" as picometres, and knows neither dollars nor cents. Doubtful words get no
credit: "18 nope", "18 of", "18 halved" and "18 in debt" have no unit.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias


class Measure(NamedTuple):
    """A unit of measurement: its dimension, to a power, and its size in the dimension's base unit."""

    dimension: str
    power: int
    size: Fraction


Measures: TypeAlias = tuple[Measure, ...]
"""What a word may measure: a pound is a mass or money. Empty for no word at all."""

COUNT: Measures = (Measure("count", 1, Fraction(1)),)
"""What any noun measures that is counted: "eggs" and "pages" are not told apart."""


@dataclass(frozen=True, slots=True)
class Unit:
    """The words after a number: the factor of its scale, and what is measured, per what."""

    scale: int = 1
    top: Measures = ()
    bottom: Measures = ()


def _read_toml(name: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(name).read_text("utf-8"))


def _build_measures(tables: Mapping[str, Mapping[str, str]]) -> dict[str, Measures]:
    measures: dict[str, Measures] = {}
    for heading, table in tables.items():
        dimension, _, power = heading.partition("^")
        for words, size in table.items():
            for word in words.split():
                measures[word] = (*measures.get(word, ()), Measure(dimension, int(power), Fraction(size)))
    return measures


WORDS = _read_toml("answer_words.toml")
SCALES = {f"{word}{ending}": scale for word, scale in WORDS["scales"].items() for ending in ("", "s")}
_MEASURES = _build_measures(_read_toml("measures.toml"))
_COUNTED = frozenset(WORDS["counted"].split())
_NOT_UNITS = frozenset(WORDS["not_units"].split())
_OTHER_SIZES = frozenset(WORDS["other_sizes"].split())
_CLOSINGS = re.compile(rf" (?:{'|'.join(WORDS['closings'])})$")
_ORDINAL = r"(?:fif|six|seven|eigh|nin|ten|eleven|twelf|hundred|thousand)th|.*(?:teen|tie|illion)th"
_NO_NOUN = re.compile(rf".*(?:ly|[a-z]{{2}}ed|teens?|illions?|fold|less|ing|wards?|wise)|(?:{_ORDINAL})s?|[ivxlcdm]+")
_PLURAL = re.compile(r"[A-Za-z]?[a-z]{2,}[^sui\W]s")
_NOUN = re.compile(r"[A-Za-z]?[a-z]{2,}")
_PHRASE = re.compile(r"(?: ?[A-Za-z$€£¥₹/][A-Za-z$€£¥₹/ ]{0,80}(?: ?\^ ?(?:[23]|\{ ?[23] ?\}))?)?")
_JOINT = re.compile(r"(?<=[A-Za-z])(?:-(?=[A-Za-z])|\.(?= |$))")  # "sq. ft."
_RAISED = (("length", 1), ("time", 1))  # square metres, seconds squared
_TEMPERATURES = ("c", "f", "celsius", "fahrenheit")
_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_RATES = {"mph": "mile / hour", "kph": "km / hour", "kmh": "km / hour", "kmph": "km / hour", "mpg": "mile / gallon"}
_GLUED = frozenset("mgh")  # "18m", but "5s" and "5t" are products
_SPACED = _GLUED | frozenset("slLNJWVCF")


def measure_of(word: str) -> Measures:
    """Return what a word measures, such as "cm", "Dollars" or "degree"; empty if it measures nothing."""
    if len(word) <= 2:
        return _MEASURES.get(word, ())
    lower = word.lower()
    return _MEASURES.get(lower) or (_MEASURES.get(lower[:-1], ()) if lower[-1] == "s" and len(lower) > 3 else ())


def read_unit(rest: str, *, is_one: bool = False) -> Unit | None:
    """Return the unit in the words after a number; None if they are none.

    They are `[scales] [adjectives] unit [of noun]`, `per unit` and "each", "in total" or similar, in order, each
    optional. `is_one`: the number is 1, so that its noun is in the singular.
    """
    rest = _JOINT.sub(" ", rest)
    if not _PHRASE.fullmatch(rest):
        return None
    power = 1
    if rest.endswith("}") or rest[-1:].isdigit():
        rest, _, exponent = rest.partition("^")
        power = int(exponent.strip("{} "))
    words = rest.replace("/", " / ").split()
    is_glued = rest[:1].isalpha()
    phrase = f" {' '.join(words)}".replace(" metric ton", " tonne")
    words = _CLOSINGS.sub("", phrase).split()
    scale = 1
    while words and SCALES.get(words[0].lower(), 0) > scale:
        scale *= SCALES[words.pop(0).lower()]
    if len(words) == 1 and words[0].lower() in _RATES:
        words = _RATES[words[0].lower()].split()
    letters = _GLUED if is_glued else _SPACED
    if is_glued and words and not (_is_known(words[0], letters) or words[0] in _POWERS):
        return None
    place = next((i for i, word in enumerate(words) if word in ("/", "per", "a", "an", "each", "every")), len(words))
    head = words[:place]
    below = words[place + 1 :]
    top = _read_noun(head, 1 if below else power, letters, is_one=is_one) if head else ()
    bottom: Measures | None = ()
    if place < len(words):
        is_known = bool(below) and _is_known(below[-1], letters) and (bool(head) or len(below[-1]) > 2)
        if words[place] in ("a", "an", "/") and not is_known and not (words[place] == "/" and head):
            return None  # "18/day" is a rate, "18/x" a fraction
        bottom = _read_noun(below, power, letters, is_one=True) if 0 < len(below) < 3 else None
    if top is None or bottom is None or (power != 1 and not top and not bottom):
        return None
    return Unit(scale, top, bottom)


def _read_noun(words: list[str], power: int, letters: frozenset[str], *, is_one: bool) -> Measures | None:
    if "of" in words[1:-1]:  # "cups of flour"
        place = words.index("of")
        if len(words) - place > 3 or not all(_is_plain(word) for word in words[place + 1 :]):
            return None
        words = words[:place]
    *adjectives, noun = words
    adjectives = [word for word in adjectives if word not in ("us", "US", "fl", "fluid")]
    if [word.lower() for word in adjectives] in (["degree"], ["degrees"]):
        return measure_of(noun.upper() if len(noun) == 1 else noun) if noun.lower() in _TEMPERATURES else None
    if power == 1 and adjectives and adjectives[0] in _POWERS:
        power = _POWERS[adjectives.pop(0)]
    is_known = _is_known(noun, letters)
    if len(adjectives) > 2 or not all(_is_adjective(word) and not measure_of(word) for word in adjectives):
        return None
    if measure_of(noun) and set(adjectives) & _OTHER_SIZES:
        return None
    if noun in ("unit", "units"):  # "square units" are any
        return ()
    measures = measure_of(noun) if is_known else ()
    if power != 1:
        return tuple(Measure(m.dimension, power, m.size**power) for m in measures if m[:2] in _RAISED) or None
    if not is_known and not ((_PLURAL.fullmatch(noun) or (is_one and _NOUN.fullmatch(noun))) and _is_plain(noun)):
        return None
    return measures or COUNT


def _is_known(word: str, letters: frozenset[str]) -> bool:
    if len(word) == 1 and word.isalpha():
        return word in letters
    lower = word.lower()
    return bool(measure_of(word)) or lower in _COUNTED or lower.removesuffix("s") in _COUNTED


def _is_plain(word: str) -> bool:
    return _is_adjective(word) and not _NO_NOUN.fullmatch(word.lower())


def _is_adjective(word: str) -> bool:
    lower = word.lower()
    is_number = lower in _NOT_UNITS or lower in SCALES or re.fullmatch(f"(?:{_ORDINAL})s?", lower)
    return bool(_NOUN.fullmatch(word)) and not is_number


def unit_ratio(answer: Unit, reference: Unit) -> Fraction | None:
    """Return the factor that takes a number in the answer's unit to the reference's; None if they measure otherwise.

    A unit that is missing fits any. What is paid or counted may leave out per what; "18 km" is not "18 km per hour".
    """
    if not (answer.top and reference.top) and not (answer.bottom and reference.bottom):
        return Fraction(1)
    top = _size_ratio(answer.top, reference.top)
    bottom = _size_ratio(answer.bottom, reference.bottom)
    if top is None or bottom is None:
        return None
    is_length = any(measure.dimension == "length" and measure.power == 1 for measure in answer.top)
    return None if is_length and bool(answer.bottom) != bool(reference.bottom) else top / bottom


def _size_ratio(answer: Measures, reference: Measures) -> Fraction | None:
    if not answer or not reference:
        return Fraction(1)
    return next((a.size / b.size for a in answer for b in reference if a[:2] == b[:2]), None)


_ASKED = re.compile(r"\b(?:how many(?: more| fewer| total| extra| whole)?|in) ([a-z]{2,12})\b", re.IGNORECASE)


@lru_cache(maxsize=256)
def required_unit(query: str) -> str:
    """Return the one unit of measurement that the last sentence with "?" asks for, such as "dollars" in "how much in
    dollars" or "minutes" in "how many minutes"; empty if it names none or several."""
    sentence = re.split(r"[.!?\n]", query[-2_000:].rpartition("?")[0])[-1]
    units = {word.lower() for word in _ASKED.findall(sentence) if measure_of(word)}
    return units.pop() if len(units) == 1 else ""
