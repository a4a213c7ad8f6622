"""Read an answer as ONE value before any mathematics: any remaining text is a reason to refuse it.

math-verify searches for mathematics inside a text, and gives credit where it should not: it reads "17 1", "18_20" and
"17=18" as 18, "5t" as 5. Here an answer is a number with an optional unit, or an expression with nothing around it,
which is left to math-verify. Anything else cannot equal anything. Nothing here calls sympy, and
no part of a text is matched in two ways, so reading takes linear time.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from jurygraph.agents.maths.units import COUNT, SCALES, WORDS, Measures, Unit, measure_of, read_unit, unit_ratio

_LETTERS: Mapping[str, str] = WORDS["letters"]
_MONEY_LETTERS = {**_LETTERS, **WORDS["money_letters"]}
_SIGNS = str.maketrans(WORDS["signs"])
_ROOT = re.compile(r"√ ?(?:([0-9]+)(?![0-9]|\.[0-9])|(?=\())")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
_VULGAR = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_LEADING_VULGAR = re.compile(rf"([+-]? ?(?:[0-9]+ ?)?)([{_VULGAR}])(?=[ A-Za-z\\]|$)")
_EN_DASH_MINUS = re.compile(r"(^|[=(,\[{]) ?–")  # elsewhere it marks a range
_MINUS_WORD = re.compile(r"^(?i:minus|negative) (?=[0-9.\\$])")
_LATEX_THOUSANDS = re.compile(
    r"(?<![0-9.,}!])[1-9][0-9]{0,2}(?:(?:\{,\}[0-9]{3})+(?!\{,\}|[0-9])|(?:,?\\[,!][0-9]{3})+(?![0-9]))"
)
_LATEX_MARK = re.compile(r"\{,\}|,?\\[,!]")
_LATEX_COMMA = re.compile(r"(?<=[0-9])\{,\}(?=[0-9])")
_DECIMAL_COMMA = re.compile(
    r"([+-]? ?[0-9]+),[0-9]{1,2}(?![0-9.,])"
)  # "3,50": a list, unless money or a measure follows
_SPACING = re.compile(r"\\(?:left|right|displaystyle)(?![A-Za-z])")
_BLANK = re.compile(r"\\(?:quad|qquad)(?![A-Za-z])|\\[,;:! ]|~")
_WRAPPER = re.compile(
    r"\\(?:boxed|fbox|text|mathrm|mathbf|textbf|mbox|mathit|textit) ?\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}"
)
_PAIRS = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("**", "**"), ("`", "`"))
_GROUP = re.compile(r"\\(?:text|mathrm|mbox|textbf|mathbf|textit|mathit) ?\{([A-Za-z /.-]*)\}")
_DEGREES = re.compile(r"\^ ?\{? ?\\circ ?\}?|\\degrees?(?![A-Za-z])")
_SPACED_THOUSANDS = re.compile(r"([+-]? ?\$?[1-9][0-9]{0,2})((?: [0-9]{3})+)")
_AMOUNT = (
    rf"\.?[0-9](?:[0-9.,]*[0-9])?(?: (?:{'|'.join(SCALES)})(?![a-z])| ?(?:{'|'.join(_MONEY_LETTERS)})(?![A-Za-z]))*"
)
_MONEY = re.compile(
    r"(?P<sign>[+-]? ?)(?P<money>(?:(?:US|CA|AU|C|A)?\$|[£€¥₹]|USD|EUR|GBP|INR|JPY|CHF|Rs\.?) ?)"
    rf"(?P<amount>[+-]?{_AMOUNT})"
    r"(?: (?:US )?(?:dollars?|USD)(?![A-Za-z]))?"
)
_CURRENCY = re.compile(r"((?:US|CA|AU|C|A)?\$|[£€¥₹])")
_SCALE_LETTER = re.compile(rf"([0-9]) ?({'|'.join(_MONEY_LETTERS)})(?![A-Za-z])")
_THOUSANDS_LETTER = re.compile(rf"^([+-]? ?[0-9][0-9.,]*)({'|'.join(_LETTERS)})(?= [A-Za-z$€£]|/|$)")
_INTEGER = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)"
_DECIMAL = rf"(?:{_INTEGER}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{{1,3}}(?![0-9A-Za-z]))?"
_NUMBER = re.compile(
    r"(?P<sign>[+-]?) ?(?:(?:(?P<whole>[0-9]+) )?(?P<top>[0-9]+) ?/ ?(?P<bottom>[0-9]+)"
    rf"|(?P<decimal>{_DECIMAL}))(?![0-9.,])",
    re.ASCII,
)
_FRACTION = re.compile(r"^([+-]? ?[0-9]*) ?\\[dtc]?frac ?\{ ?([0-9]+) ?\} ?\{ ?([0-9]+) ?\}")
_POWER_OF_TEN = re.compile(
    r" ?(?:\*|x|\\times|\\cdot) ?10 ?\^ ?(?:\{ ?([+-]?[0-9]{1,3}) ?\}|([+-]?[0-9]{1,3})(?![0-9]))"
)
_PERCENT = re.compile(r" ?(?:\\?%|(?:percent|per cent|pct)(?![A-Za-z]))")
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?([A-Za-z$€£]{1,12}|['\"])\.?(?:,? and |, | |(?=[0-9])|$)")
_FEET_AND_INCHES = {"'": "foot", '"': "inch"}
_FUNCTIONS = {word: f"\\{word} " for word in ("sin", "cos", "tan", "log", "ln", "exp", "pi", "sqrt", "max", "min")}
_FUNCTIONS |= {"infinity": r"\infty ", "inf": r"\infty ", "oo": r"\infty "}
_KNOWN = re.compile(rf"(?<![A-Za-z\\])(?:{'|'.join(_FUNCTIONS)})(?![A-Za-z])")
_SQRT_CALL = re.compile(r"\\sqrt ?\(([^()]*)\)")
_TRAILING_WORDS = re.compile(r"(?<=[0-9})\] ]) ?[A-Za-z$€£][A-Za-z$€£./-]*(?: [A-Za-z][A-Za-z./-]*){0,5}(?:\^[23])?$")
_PROSE = re.compile(
    r"(?<![A-Za-z\\])(?:[A-Za-z]{4,}|(?:not?|nor|but|to|is|of|mod|mil)(?![A-Za-z]))"
    r"|^(?=[A-Za-z ,.'-]+$).*[A-Za-z]{3}"
)
_ENVIRONMENT = re.compile(r"\\(?:begin|end|operatorname) ?\{[a-zA-Z]{1,12}\}")
_REFUSED = re.compile(
    r"(?<!_)[0-9.}] +[0-9.]|[0-9})]_|\.[0-9]+\.|[0-9]{1001}|[0-9],[0-9]{4}"  # two numbers, a base, not a number
    r"|\\(?:boxed|fbox|text|mbox|mathrm|def|input|[()\[\]])|[\"'`?;#@$£€¥₹]|:(?!=)(?! ?[0-9])"
    r"|\\(?:[bp]?mod|pod)(?![A-Za-z])|[-+*/^<>_]$|^[-+] ?[-+]"  # a remainder, half an expression
    r"|^[-+]? ?0[.0]* ?[A-Za-z]"  # "0 BC" would be 0
    rf"|[0-9] ?\\[dtc]?frac ?\{{[0-9 ]+\}} ?\{{[0-9 ]+\}} ?\^|% ?\^|[–—{_VULGAR}]"  # no unit, a range
)
_EQUALS_SIGN = re.compile(r" ?= ?")
_EQUALS = re.compile(r"(?<![<>!:\\])=|\\approx(?![A-Za-z])")
_VALUES = re.compile(r",|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])")
_SYMBOL = re.compile(r" ?\\?[A-Za-z]{1,7}(?:_\{?[A-Za-z0-9]{1,3}\}?)? ?(?:\( ?[A-Za-z] ?\))? ?$")
_LONGEST_SUM = 200  # characters of a sum of units


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written: exact value, `percent` if a percent sign follows, `decimal` if it has decimals."""

    value: Fraction
    percent: bool
    decimal: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer as one value: its LaTeX for math-verify, its unit, and `number` if it is a plain number."""

    latex: str
    number: Number | None = None
    unit: Unit = Unit()  # noqa: RUF009 - it is frozen


def fold_text(text: str) -> str:
    """Return `text` stripped and case-folded, with inner blanks folded to one space, and to none around "=".

    Equal texts need no reading.
    """
    return _EQUALS_SIGN.sub("=", " ".join(text.split())).casefold()


def parse_answer(text: str) -> Reading | None:
    r"""Read an answer as one value.

    Removes one pair of `$…$`, `\(…\)`, `\boxed{…}`, `\text{…}` or emphasis around the whole, a full stop, a unit after
    a number or an expression. "2 million" is 2,000,000, "70k" 70,000, "1 000" 1,000, "1{,}5" 1.5. Returns None if the
    text is prose, has adjacent numbers, or is otherwise more than one value.
    """
    bare = _strip_formatting(text)
    return _read_quantity(bare) or _read_compound(bare) or _read_expression(bare)


def _strip_formatting(text: str) -> str:
    bare = _SUPERSCRIPT.sub(lambda power: f"^{{{unicodedata.normalize('NFKC', power.group())}}}", text)
    bare = _ROOT.sub(lambda root: rf"\sqrt{{{root[1]}}}" if root[1] else r"\sqrt", bare.translate(_SIGNS))
    bare = _LATEX_THOUSANDS.sub(lambda number: _LATEX_MARK.sub("", number.group()), bare)
    bare = _BLANK.sub("  ", _SPACING.sub("", _LATEX_COMMA.sub(".", bare).replace("{,}", ",")))
    for _ in range(8):
        shorter = _unwrap(bare.strip())
        if shorter == bare:
            break
        bare = shorter
    bare = _GROUP.sub(_write_out_letter, _DEGREES.sub(" degrees ", bare.replace(r"\$", "$"))).strip()
    if thousands := _SPACED_THOUSANDS.fullmatch(bare):
        bare = thousands[1] + thousands[2].replace(" ", "")
    bare = _EN_DASH_MINUS.sub(r"\1-", _MINUS_WORD.sub("-", " ".join(bare.split())))
    bare = _MONEY.sub(_move_currency, bare)
    bare = _THOUSANDS_LETTER.sub(lambda amount: f"{amount[1]} {_LETTERS[amount[2]]}", bare)
    if vulgar := _LEADING_VULGAR.match(bare):
        top, bottom = unicodedata.normalize("NFKC", vulgar[2]).split("\u2044")
        bare = rf"{vulgar[1]}\frac{{{top}}}{{{bottom}}}{bare[vulgar.end() :]}"
    return bare


def _unwrap(text: str) -> str:
    for mark_open, mark_close in _PAIRS:
        inner = text[len(mark_open) : -len(mark_close)]
        if len(text) > 2 * len(mark_open) and text.startswith(mark_open) and text.endswith(mark_close):
            return text if mark_open in inner.replace(r"\$", "") or inner.endswith("\\") else inner
    wrapper = _WRAPPER.fullmatch(text)
    return wrapper[1] if wrapper else text.removesuffix(".")


def _write_out_letter(group: re.Match[str]) -> str:
    words = group[1].strip()
    return f" {WORDS['typeset'].get(words, words)}"


def _move_currency(money: re.Match[str]) -> str:
    amount = _SCALE_LETTER.sub(lambda scaled: f"{scaled[1]} {_MONEY_LETTERS[scaled[2]]}", money["amount"])
    return f"{money['sign'].strip()}{amount} {money['money'].strip()}"


def _read_quantity(text: str) -> Reading | None:
    """Read a text as one number with an optional unit: "1,000.50", "1 1/2 hours", "3.2 × 10^5 km"."""
    text = _FRACTION.sub(r"\1 \2/\3", text).strip()
    comma = _DECIMAL_COMMA.match(text)
    measured = read_unit(text[comma.end() :]) if comma else None
    if comma and measured and (measured.scale != 1 or measured.top not in ((), COUNT)):
        text = f"{comma[1]}.{text[comma.end(1) + 1 :]}"
    match = _NUMBER.match(text)
    value = _value(match) if match else None
    if match is None or value is None:
        return None
    end = match.end()
    ten = _POWER_OF_TEN.match(text, end) if match["decimal"] else None
    if ten:
        end = ten.end()
        value *= Fraction(10) ** int(ten[1] or ten[2])
    percent = _PERCENT.match(text, end)
    unit = read_unit(text[percent.end() if percent else end :], is_one=value == 1)
    if unit is None or (percent and (unit.scale != 1 or unit.top)):
        return None
    is_decimal = "." in (match["decimal"] or "")
    is_as_written = is_decimal and not ten and unit.scale == 1
    latex = match.group().replace(",", "").replace(" ", "") if is_as_written else f"{value * unit.scale}"
    number = Number(value * unit.scale, bool(percent), is_decimal)
    return Reading(latex + (r"\%" if percent else ""), number, unit)


def _value(match: re.Match[str]) -> Fraction | None:
    if len(match.group()) > 1000:
        return None
    if match["decimal"]:
        value = Fraction(match["decimal"].replace(",", ""))
    else:
        top = int(match["top"])
        bottom = int(match["bottom"])
        if bottom == 0 or (match["whole"] and top >= bottom):
            return None
        value = int(match["whole"] or 0) + Fraction(top, bottom)
    return -value if match["sign"] == "-" else value


def _read_compound(text: str) -> Reading | None:
    """Read a sum of falling units of one dimension, in its first unit: "2 hours 30 minutes", "$3 and 50 cents"."""
    if len(text) > _LONGEST_SUM:
        return None
    parts = list(_PART.finditer(text))
    if len(parts) < 2 or "".join(part.group() for part in parts) != text:
        return None
    names = [_FEET_AND_INCHES.get(part[2], part[2]) for part in parts]
    for first in measure_of(names[0]):
        is_time = first.dimension == "time"
        measures = [measure_of("min" if is_time and name == "m" else name) for name in names]
        sizes = [size for size in (_size_in(first.dimension, each) for each in measures) if size is not None]
        if len(sizes) == len(parts) and all(a > b for a, b in pairwise(sizes)):
            value = sum((Fraction(part[1]) * size for part, size in zip(parts, sizes, strict=True)), Fraction(0))
            number = Number(value / first.size, False, "." in text)
            return Reading(f"{number.value}", number, Unit(top=(first,)))
    return None


def _size_in(dimension: str, measures: Measures) -> Fraction | None:
    return next((measure.size for measure in measures if measure[:2] == (dimension, 1)), None)


def _read_expression(text: str) -> Reading | None:
    signs = set(_CURRENCY.findall(text))
    unit = Unit(top=measure_of(signs.pop())) if len(signs) == 1 else Unit()
    tail = None if unit.top else _TRAILING_WORDS.search(text)
    if unit.top:  # "$20 - $5 = $15"
        text = " ".join(_CURRENCY.sub(" ", text).split())
    elif tail and tail.start() and all(len(word) > 1 for word in re.findall("[A-Za-z]+", tail.group())):
        found = read_unit(text[tail.start() :])
        if found is not None and found.scale == 1 and not text[: tail.start()].rstrip().endswith("%"):
            unit = found
            text = text[: tail.start()].rstrip()
    bare = _KNOWN.sub(lambda word: _FUNCTIONS[word.group()], text).strip()
    bare = _SQRT_CALL.sub(r"\\sqrt{\1}", bare)
    if not bare or _REFUSED.search(bare) or _PROSE.search(_ENVIRONMENT.sub("", bare)):
        return None
    return Reading(bare, unit=unit)


def compare_plainly(answer: Reading, reference: Reading) -> bool | None:
    """Return true if two answers are equal numbers; None if one is another expression, which math-verify compares.

    Units of one dimension are converted; of two, they make the answers different, and so do "%" and a unit. If one has
    no unit, the number decides.
    """
    ratio = unit_ratio(answer.unit, reference.unit)
    if ratio is None:
        return False
    if answer.number is None or reference.number is None:
        return None
    if answer.number.percent != reference.number.percent and (answer.unit.top or reference.unit.top):
        return False
    return are_equal_numbers(replace(answer.number, value=answer.number.value * ratio), reference.number)


def are_equal_numbers(answer: Number, reference: Number) -> bool:
    """Return true if two plain numbers are equal; "50%" equals both "0.5" and "50".

    Whole numbers and fractions are compared exactly. If one has decimals, both must agree when rounded to six
    (math-verify's rule) and also to a relative 1e-6, so that nothing small equals 0.
    """
    a = answer.value
    b = reference.value
    pairs = [(a, b)]
    if answer.percent != reference.percent:
        pairs.append((a / 100, b) if answer.percent else (a, b / 100))
    has_decimals = answer.decimal or reference.decimal
    return any(
        a == b or (has_decimals and round(a, 6) == round(b, 6) and abs(a - b) <= max(abs(a), abs(b)) / 10**6)
        for a, b in pairs
    )


def claimed_expressions(answer: str, reference: str) -> Sequence[str]:
    """Return the LaTeX expressions that must all equal `reference` for `answer` to be right.

    An answer "3+15 = 18" claims 3+15 and 18, "x = 18" only 18, "17 = 18" both 17 and 18; "x=17, x=18" claims the set
    of both. math-verify alone compares the last of them. Empty if the equations do not make a single claim.
    """
    if (":" in answer) != (":" in reference):  # math-verify divides, so that "18:1" would be 18
        return ()
    sides = _split(answer, _EQUALS)
    if len(sides) == 1:
        return (answer,)
    if not all(side.strip() for side in sides):
        return ()
    has_symbol = bool(_SYMBOL.match(sides[0]))
    if len(_split(reference, _EQUALS)) > 1:
        return [f"{sides[0]}={side}" for side in sides[1:]] if has_symbol and len(sides) > 2 else (answer,)
    values = [_split(part, _EQUALS) for part in _split(answer, _VALUES)]
    if len(sides) == 2 or len(values) == 1:
        return sides[1:] if has_symbol else sides
    are_assignments = all(len(part) == 2 and _SYMBOL.match(part[0]) for part in values)
    return [",".join(part[1] for part in values)] if are_assignments else ()  # "x=17 or x=18"


def _split(text: str, separator: re.Pattern[str]) -> list[str]:
    parts = []
    depth = 0
    start = 0
    searched = 0
    for mark in separator.finditer(text):
        between = text[searched : mark.start()]
        depth += sum(map(between.count, "([{")) - sum(map(between.count, ")]}"))
        searched = mark.end()
        if depth == 0:
            parts.append(text[start : mark.start()])
            start = mark.end()
    return [*parts, text[start:]]
