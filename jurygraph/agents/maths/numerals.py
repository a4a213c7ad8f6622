"""Read a text as one number with an optional unit: "1,000.50", "1 1/2 hours", "70k", "3.2 × 10^5 km", "2 h 30 min".

A compiled grammar: each pattern is anchored where the last one ended and no part of a text is matched in two ways, so
reading takes linear time, and nothing is evaluated: exponents have at most three digits.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from jurygraph.agents.maths.units import COUNT, Measures, Unit, measure_of, read_unit

_INTEGER = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)"
_DECIMAL = rf"(?:{_INTEGER}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{{1,3}}(?![0-9A-Za-z]))?"
_NUMBER = re.compile(
    rf"(?P<sign>[+-]?) ?(?:(?P<whole>[0-9]+) )?(?P<top>[0-9]+) ?/ ?(?P<bottom>[0-9]+)(?![0-9.,])"
    rf"|(?P<sign2>[+-]?) ?(?P<whole2>[0-9]+)? ?\\[dtc]?frac ?\{{ ?(?P<top2>[0-9]+) ?\}} ?\{{ ?(?P<bottom2>[0-9]+) ?\}}"
    rf"|(?P<decimal>[+-]? ?{_DECIMAL})(?![0-9.,])",
    re.ASCII,
)
_POWER_OF_TEN = re.compile(
    r" ?(?:\*|x|\\times|\\cdot) ?10 ?\^ ?(?:\{ ?([+-]?[0-9]{1,3}) ?\}|([+-]?[0-9]{1,3})(?![0-9]))"
)
_PERCENT = re.compile(r" ?(?:\\?%|(?:percent|per cent|pct)(?![A-Za-z]))")
_SWISS = re.compile(r"[+-]? ?[1-9][0-9]{0,2}(?:'[0-9]{3})+(?![0-9'])")  # 1'000'000
_DOTTED = re.compile(  # 1.000.000 and 1.000,50: with one dot alone, it is a decimal
    r"([+-]? ?[1-9][0-9]{0,2}(?:(?:\.[0-9]{3}){2,}|(?:\.[0-9]{3})+(?=,)))(?:,([0-9]{1,2}))?(?![0-9.,])"
)
_COMMA = re.compile(r"([+-]? ?[0-9]+),([0-9]{1,2})(?![0-9.,])")  # 3,50: a list, unless money or a measure follows
_LAKHS = re.compile(r"[+-]? ?[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}(?![0-9,])")  # 1,00,000: a list, unless it is rupees
_PART_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,6})?(?![0-9.,])")
_PART_WORD = re.compile(r" ?([A-Za-z]{1,12}|['\"])\.?")
_PART_JOIN = re.compile(r",? and |, | |(?=[0-9])")
_FEET_AND_INCHES = {"'": "foot", '"': "inch"}
_MOST_PARTS = 4


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written: exact value, `percent` if a percent sign follows, `decimal` if it has decimals."""

    value: Fraction
    percent: bool
    decimal: bool


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit, and as LaTeX without it."""

    number: Number
    unit: Unit
    latex: str


def read_quantity(text: str, money: Measures) -> Quantity | None:
    """Read a text as one number with an optional unit; `money` is the currency of a sign that stood at it."""
    text = _with_plain_separators(text, money)
    match = _NUMBER.match(text)
    value = _value(match) if match else None
    if match is None or value is None:
        return None
    latex = match.group().replace(",", "").replace(" ", "")
    end = match.end()
    ten = _POWER_OF_TEN.match(text, end) if match["decimal"] else None
    if ten:
        exponent = int(ten[1] or ten[2])
        end = ten.end()
        value = value * Fraction(10) ** exponent
        latex = rf"{latex} \cdot 10^{{{exponent}}}"
    percent = _PERCENT.match(text, end)
    unit = read_unit(text[percent.end() if percent else end :], money, is_one=value == 1)
    if unit is None or (percent and (unit.scale != 1 or unit.top)):
        return None
    decimal = "." in (match["decimal"] or "")
    value *= unit.scale
    if unit.is_letter and not money:
        latex = text  # a variable, beside another expression
    elif not ten and (not decimal or unit.scale != 1):
        latex = f"{value}"
    return Quantity(Number(value, bool(percent), decimal), unit, latex + (r"\%" if percent else ""))


def read_compound(text: str, money: Measures) -> Quantity | None:
    """Read a sum of falling units of one dimension, in its first unit: "2 hours 30 minutes" is 2.5 hours, "5' 6\\"" 5.5
    feet, "$3 and 50 cents" 3.5 dollars."""
    parts: list[tuple[Fraction, Measures]] = []
    is_decimal = False
    place = 0
    while place < len(text):
        number = _PART_NUMBER.match(text, place)
        if number is None or len(parts) == _MOST_PARTS or is_decimal:
            return None
        word = _PART_WORD.match(text, number.end())
        is_bare = money and not parts and (word is None or word[1] == "and")
        measures = money if is_bare else _part_measure(word[1], parts) if word else ()
        parts.append((Fraction(number.group()), measures))
        is_decimal = "." in number.group()
        end = number.end() if is_bare or word is None else word.end()
        join = _PART_JOIN.match(text, end)
        if end < len(text) and (join is None or join.end() == len(text)):
            return None
        place = join.end() if join and end < len(text) else end
    return _add_parts(parts, is_decimal) if len(parts) > 1 else None


def _part_measure(word: str, parts: list[tuple[Fraction, Measures]]) -> Measures:
    is_time = bool(parts) and any(measure.dimension == "time" for measure in parts[-1][1])
    return measure_of("min" if word == "m" and is_time else _FEET_AND_INCHES.get(word, word))


def _add_parts(parts: list[tuple[Fraction, Measures]], is_decimal: bool) -> Quantity | None:
    for first in parts[0][1]:
        sizes = [next((m.size for m in measures if m[:2] == first[:2]), None) for _, measures in parts]
        known = [size for size in sizes if size is not None]
        if len(known) == len(parts) and all(a > b for a, b in pairwise(known)):
            value = sum((count * size for (count, _), size in zip(parts, known, strict=True)), Fraction(0)) / first.size
            return Quantity(Number(value, False, is_decimal), Unit(top=(first,)), f"{value}")
    return None


def _with_plain_separators(text: str, money: Measures) -> str:
    """Return the text with "," between thousands and "." before decimals, if it unambiguously has others."""
    if "," not in text and "." not in text and "'" not in text:
        return text
    if swiss := _SWISS.match(text):
        return swiss.group().replace("'", "") + text[swiss.end() :]
    if dotted := _DOTTED.match(text):
        decimals = f".{dotted[2]}" if dotted[2] else ""
        return dotted[1].replace(".", "") + decimals + text[dotted.end() :]
    if comma := _COMMA.match(text):
        unit = read_unit(text[comma.end() :], money)
        is_decimal = unit is not None and (unit.scale != 1 or unit.top not in ((), COUNT))
        return f"{comma[1]}.{comma[2]}{text[comma.end() :]}" if is_decimal else text
    lakhs = _LAKHS.match(text) if money == measure_of("rupee") else None
    return lakhs.group().replace(",", "") + text[lakhs.end() :] if lakhs else text


def _value(match: re.Match[str]) -> Fraction | None:
    if len(match.group()) > 1000:
        return None
    if match["decimal"]:
        return Fraction(match["decimal"].replace(",", "").replace(" ", ""))
    suffix = "" if match["top"] else "2"
    sign, whole, top, bottom = (match[name + suffix] for name in ("sign", "whole", "top", "bottom"))
    if int(bottom) == 0 or (whole and int(top) >= int(bottom)):
        return None
    value = int(whole or 0) + Fraction(int(top), int(bottom))
    return -value if sign == "-" else value
