"""Read the words after a number: a scale ("million"), a unit of measurement ("cm") or what is counted ("duck eggs").

The sizes are a table of ours (`measures.toml`), not a library of physics, which reads "cats" as a pressure, "points" as
a length, "c" as the speed of light and "3 pm" as picometres, and knows neither dollars nor cents.

Doubtful words get no credit: "18 nope", "18 of", "18 halved" and "18 in debt" have no unit.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
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
    """The words after a number: the factor of its scale, and what is measured, per what; `is_rate` if "per" is there.

    `is_letter`: the scale is a letter, which may be a variable instead ("3k").
    """

    scale: int = 1
    top: Measures = ()
    bottom: Measures = ()
    is_rate: bool = False
    is_letter: bool = False


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
_MEASURES = _build_measures(_read_toml("measures.toml"))
_RATES = {word: (top, "hour") for word, top in {"mph": "mile", "kph": "km", "kmh": "km", "kmph": "km"}.items()}
_RATES |= {"mpg": ("mile", "gallon")}
_PAID = {"count", "dollar", "euro", "sterling", "rupee", "yen", "yuan", "peso", "franc", "ruble"}
_PAID |= {"canadian", "australian", "mass"}  # a pound is a mass too
_SCALES = {f"{word}{ending}": scale for word, scale in WORDS["scales"].items() for ending in ("", "s")}
_LETTERS = WORDS["letters"]
_MONEY_LETTERS = WORDS["letters"] | WORDS["money_letters"]
_UNIT_LETTERS = frozenset("mghslL")  # "18 s"; glued to a number only "18m", "18g", "18h": "5s" is a product
_GLUED_LETTERS = frozenset("mgh")
_TYPESET_LETTERS = _UNIT_LETTERS | frozenset("NJWVACF")  # "18\text{ N}"
_ONE = Fraction(1)
_RAISED = (("length", 1), ("time", 1))  # square metres, seconds squared
_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_OTHER_SIZES = ("nautical", "light", "metric", "imperial", "troy", "board")  # than that of the word alone
_COUNTED = frozenset(WORDS["counted"].split())
_ADJECTIVES = frozenset(WORDS["adjectives"].split())
_NOT_UNITS = frozenset(WORDS["not_units"].split())
_CLOSINGS = frozenset(tuple(closing.split()) for closing in WORDS["closings"])
_ORDINAL = r"(?:fif|six|seven|eigh|nin|ten|eleven|twelf|hundred|thousand)th|.*(?:teen|tie|illion)th"
_NO_NOUN = re.compile(rf".*(?:ly|[a-z]{{2}}ed|teens?|illions?|fold|less|ing|wards?|wise)|(?:{_ORDINAL})s?|[ivxlcdm]+")
_PLURAL = re.compile(r"[A-Za-z]?[a-z]{2,}[^sui\W]s")
_NOUN = re.compile(r"[A-Za-z]?[a-z]{2,}")
_GROUP = re.compile(r"\\(?:text|mathrm|mbox|textbf|mathbf|textit|mathit) ?\{([^{}\\]*)\}")
_DEGREES = re.compile(r"\^ ?\{? ?\\circ ?\}?|\\degrees?(?![A-Za-z])")
_POWER = re.compile(r"(?:(?<=[A-Za-z])|(?<=[A-Za-z]\})) ?\^ ?(?:([23])|\{ ?([23]) ?\})$")  # of a unit, not of a number
_TRAILING_WORDS = re.compile(r"(?<=[0-9})\] ])[A-Za-z][A-Za-z./-]*(?: [A-Za-z][A-Za-z./-]*){0,5}$")
_LETTER_SCALE = re.compile(r"( ?)([A-Za-z]{1,5})(?![A-Za-z])")


def measure_of(word: str) -> Measures:
    """Return what a word measures, such as "cm", "Dollars" or "degree"; empty if it measures nothing."""
    if len(word) <= 2:
        return _MEASURES.get(word, ())
    lower = word.lower()
    return _MEASURES.get(lower) or (_MEASURES.get(lower[:-1], ()) if lower[-1] == "s" and len(lower) > 3 else ())


def read_unit(rest: str, money: Measures = (), is_one: bool = False) -> Unit | None:
    """Return the unit in the words after a number; None if they are none.

    `money` is the currency of a sign at the number; `is_one`: the number is 1, so that its noun is in the singular.
    """
    letters = _MONEY_LETTERS if money else _LETTERS
    letter = _LETTER_SCALE.match(rest)
    if letter and letter[2] in letters and (money or not letter[1] or len(letter[2]) > 1):
        unit = _read_unit(rest[letter.end() :], money, is_one=False)
        return replace(unit, scale=letters[letter[2]], is_letter=True) if unit and unit.scale == 1 else None
    return _read_unit(rest, money, is_one)


def _read_unit(rest: str, money: Measures, is_one: bool) -> Unit | None:
    if not rest:
        return Unit(top=money)
    read = _words(rest)
    if read is None:
        return None
    words, power = read
    scale = 1
    count = 0
    while count < min(2, len(words)) and (factor := _SCALES.get(words[count].lower(), 0)) > scale:
        scale = scale * factor
        count = count + 1
    is_glued = rest[:1].isalpha() and not count
    is_typeset = bool(_GROUP.match(rest.lstrip()))
    letters_allowed = _GLUED_LETTERS if is_glued else _TYPESET_LETTERS if is_typeset else _UNIT_LETTERS
    unit = _read_phrase(words[count:], power, letters_allowed, is_glued=is_glued, is_one=is_one, money=bool(money))
    if unit is None or (money and not _fits_money(words[count:], unit, money)):
        return None
    return Unit(scale, money or unit.top, unit.bottom, unit.is_rate)


def unit_ratio(answer: Unit, reference: Unit) -> Fraction | None:
    """Return the factor that takes a number in the answer's unit to the reference's; None if they measure otherwise.

    A unit that is missing fits any. What is paid or counted may leave out per what; "18 km" is not "18 km per hour".
    """
    if not (answer.top and reference.top) and not (answer.bottom and reference.bottom):
        return _ONE
    top = _size_ratio(answer.top, reference.top)
    bottom = _size_ratio(answer.bottom, reference.bottom)
    if top is None or bottom is None:
        return None
    if answer.is_rate != reference.is_rate and reference.top and {each.dimension for each in answer.top} - _PAID:
        return None
    return top / bottom


def _size_ratio(answer: Measures, reference: Measures) -> Fraction | None:
    if not answer or not reference:
        return _ONE
    ratios = (a.size / b.size for a in answer for b in reference if a[:2] == b[:2])
    return next(ratios, None)


def _fits_money(words: list[str], unit: Unit, money: Measures) -> bool:
    """Return true if words can follow an amount with a currency sign: not "$18 mm", "$18 g" nor "$18 cents"."""
    if unit.top and unit.top != COUNT:
        return _size_ratio(unit.top, money) == 1
    return not words or len(words[0]) > 2 or words[0] in ("/", "a", "an", "us", "US", "in")


def _words(rest: str) -> tuple[list[str], int] | None:
    """Return the words after a number, including "/", and the power of the last; None if there is anything else."""
    rest = rest.rstrip(" .")
    power = _POWER.search(rest)
    bare = rest[: power.start()] if power else rest
    normalised = _DEGREES.sub(" degrees ", _GROUP.sub(r" \1", bare)).rstrip(" .")
    normalised = re.sub(r"(?<=[A-Za-z])-(?=[A-Za-z])|(?<=[A-Za-z])\.(?= )", " ", normalised)
    if not re.fullmatch(r"[A-Za-z/ ]{0,60}", normalised):
        return None
    words = normalised.replace("/", " / ").split()
    if power and not (words and measure_of(words[-1])):
        return None
    return words, int(power[1] or power[2]) if power else 1


def _read_phrase(
    words: list[str], power: int, letters: frozenset[str], *, is_glued: bool, is_one: bool, money: bool
) -> Unit | None:
    """Read `[adjectives] unit [of noun]`, `per unit` and "each", "in total" or similar, in order, each optional."""
    for length in (2, 1):
        if tuple(words[-length:]) in _CLOSINGS:
            words = words[:-length]
            break
    rate = next((i for i, word in enumerate(words) if word in ("/", "per", "a", "an", "each", "every")), len(words))
    head = words[:rate]
    below = words[rate:]
    if is_glued and head and not (_is_known(head[0], letters) or head[0].lower() in _ADJECTIVES):
        return None
    if len(head) == 1 and head[0].lower() in _RATES and not below and power == 1:
        counted, base = map(measure_of, _RATES[head[0].lower()])
        return Unit(1, counted, base, True)
    top: Measures | None = ()
    if head:
        top = _read_noun(head, 1 if below else power, letters, is_one)
    bottom = _read_denominator(below, power, bool(head) or money) if below else ()
    return None if top is None or bottom is None else Unit(1, top, bottom, bool(below))


def _read_noun(words: list[str], power: int, letters: frozenset[str], is_one: bool = False) -> Measures | None:
    """Return what a noun with adjectives measures; None if it is none, as in "18 halved"."""
    if "of" in words[1:-1]:  # "cups of flour"
        place = words.index("of")
        if len(words) - place > 3 or not all(_is_plain(word) for word in words[place + 1 :]):
            return None
        words = words[:place]
    *adjectives, noun = words
    lowers = [word.lower() for word in adjectives]
    if lowers in (["degree"], ["degrees"]) and noun.lower() in ("c", "f", "celsius", "fahrenheit"):
        return measure_of(noun.upper() if len(noun) == 1 else noun)
    if _is_known(noun, letters):
        return _measure_with_adjectives(lowers, noun, power)
    is_noun = _PLURAL.fullmatch(noun) or (is_one and _NOUN.fullmatch(noun))
    if power != 1 or not is_noun or not _is_plain(noun) or len(adjectives) > 2:
        return None
    return COUNT if all(_is_adjective(word) and not _is_known(word, letters) for word in adjectives) else None


def _measure_with_adjectives(adjectives: Sequence[str], noun: str, power: int) -> Measures | None:
    """Return what a known noun measures, to a power; None if its adjectives do not fit it."""
    if noun.lower() in ("unit", "units"):  # "square units" are any
        return ()
    word = adjectives[0] if len(adjectives) == 1 else ""
    power = _POWERS.get(word, 1) if power == 1 else power
    measures = measure_of(noun)
    if word in ("fluid", "fl"):
        measures = tuple(measure for measure in measures if measure.dimension == "length")
    elif word in _OTHER_SIZES:
        is_tonne = word == "metric" and noun.lower() in ("ton", "tons")
        other = Measure(f"{word} {noun.lower().removesuffix('s')}", 1, Fraction(1))
        measures = measure_of("tonne") if is_tonne else (other,)
    elif word not in (*_POWERS, "us") and not all(_is_adjective(each) and not measure_of(each) for each in adjectives):
        return None
    if power == 1:
        return measures or COUNT
    return tuple(Measure(m.dimension, power, m.size**power) for m in measures if m[:2] in _RAISED) or None


def _read_denominator(words: list[str], power: int, has_unit: bool) -> Measures | None:
    """Return what "per day" or "/ square foot" measures; a bare "18/x" divides."""
    sign, *noun = words
    if len(noun) not in (1, 2):
        return None
    if len(noun) == 2:
        return _measure_with_adjectives([noun[0].lower()], noun[1], power) if measure_of(noun[1]) else None
    is_known = _is_known(noun[0], _UNIT_LETTERS)
    is_named = has_unit or (is_known and len(noun[0]) > 2)  # "18/day" is a rate, "18/x" a fraction
    if sign in ("/", "a", "an") and not (is_named and (is_known or sign == "/")):
        return None
    if not is_known and (not _is_plain(noun[0]) or power != 1):
        return None
    return _measure_with_adjectives([], noun[0], power)


def _is_known(word: str, letters: frozenset[str]) -> bool:
    if len(word) == 1:
        return word in letters
    lower = word.lower()
    return bool(measure_of(word)) or lower in _COUNTED or lower.removesuffix("s") in _COUNTED or lower in _RATES


def _is_plain(word: str) -> bool:
    return _is_adjective(word) and not _NO_NOUN.fullmatch(word.lower())


def _is_adjective(word: str) -> bool:
    lower = word.lower()
    is_number = lower in _NOT_UNITS or lower in _SCALES or re.fullmatch(f"(?:{_ORDINAL})s?", lower)
    return bool(_NOUN.fullmatch(word)) and not is_number


def split_unit(text: str, money: Measures) -> tuple[str, Unit]:
    r"""Return an expression without the unit at its end, and the unit: `6\pi \text{ cm}^2`, "x+1 apples"."""
    shorter = _POWER.sub("", text)
    group = re.search(r"\\(?:text|mathrm|mbox) ?\{[^{}\\]*\}$", shorter)
    tail = group or _TRAILING_WORDS.search(shorter)
    whole = text, Unit(top=money)
    if tail is None or tail.start() == 0 or text[: tail.start()].rstrip().endswith("%"):
        return whole
    rest = text[tail.start() :]
    read = _words(rest)
    if not read or not read[0] or not (group or all(len(word) > 1 for word in read[0] if word != "/")):
        return whole
    is_glued = not group and text[tail.start() - 1] != " "
    letters = _GLUED_LETTERS if is_glued else _TYPESET_LETTERS if group else _UNIT_LETTERS
    unit = _read_phrase(*read, letters, is_glued=is_glued, is_one=False, money=bool(money))
    if unit is None or (money and not _fits_money(read[0], unit, money)):
        return whole
    return text[: tail.start()].rstrip(), Unit(1, money or unit.top, unit.bottom, unit.is_rate)
