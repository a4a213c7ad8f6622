r"""Read an answer as ONE value before any mathematics: any remaining text is a reason to refuse it.

math-verify searches for mathematics inside a text, and gives credit where it should not: it reads "17 1", "18_20" and
"17=18" as 18, "5t" as 5. Here an answer is a number with an optional unit, or an expression with nothing around it.
Anything else cannot equal anything. Nothing here calls sympy.

Doubtful cases get no credit: the text after a number must be a unit (see `units`).
"""

import re
from dataclasses import dataclass
from fractions import Fraction

from jurygraph.agents.maths.units import remove_unit, unit_scale

_SIGNS = str.maketrans(
    {"−": "-", "×": "*", "∗": "*", "·": "*", "⋅": "*", "÷": "/", "π": r"\pi ", "∞": r"\infty ", "≈": r"\approx "}
    | {"≤": r"\le ", "≥": r"\ge ", "\u00a0": " ", "\u202f": " ", "\u2009": " ", "°": r"^\circ "}
    | dict.fromkeys("\n\t\r\v\f", "  ")  # two blanks: never a thousands mark
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_ROOT = re.compile(r"√ ?(?:([0-9]+)(?![0-9]|\.[0-9])|(?=\())")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
_VULGAR = {"½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5)}
_VULGAR |= {"⅘": (4, 5), "⅙": (1, 6), "⅚": (5, 6), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8)}
_LEADING_VULGAR = re.compile(rf"([+-]? ?(?:[0-9]+ ?)?)([{''.join(_VULGAR)}])(?=[ A-Za-z\\]|$)")
_EN_DASH_MINUS = re.compile(r"(^|[=(,\[{]) ?–")  # elsewhere it marks a range
_MINUS_WORD = re.compile(r"(?i:minus|negative) (?=[0-9.\\])")
_SPACED_THOUSANDS = re.compile(r"[+-]? ?[1-9][0-9]{0,2}(?: [0-9]{3})+")
_CURRENCY = re.compile(r"\\?\$|[£€¥₹]|^(?:USD|EUR|GBP|Rs\.?)(?=[ 0-9])")
_LATEX_THOUSANDS = re.compile(
    r"(?<![0-9.,}!])[1-9][0-9]{0,2}(?:(?:\{,\}[0-9]{3})+(?!\{,\}|[0-9])|(?:,?\\[,!][0-9]{3})+(?![0-9]))"
)
_LATEX_MARK = re.compile(r"\{,\}|,?\\[,!]")
_DECIMAL_COMMA = re.compile(r"(?<=[0-9])\{,\}(?=[0-9])")
_SPACING = re.compile(r"\\(?:left|right|displaystyle)(?![A-Za-z])")
_BLANK = re.compile(r"\\(?:quad|qquad)(?![A-Za-z])|\\[,;:! ]|~")
_WRAPPER = re.compile(r"\\(?:boxed|fbox|text|mathrm|mathbf|textbf|mbox|mathit|textit)[ ]?\{")
_INTEGER = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)"
_DECIMAL = rf"(?:{_INTEGER}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{{1,3}}(?![0-9A-Za-z]))?"
_NUMBER = re.compile(
    rf"(?P<sign>[+-]?) ?(?:(?P<whole>[0-9]+) )?(?P<top>[0-9]+) ?/ ?(?P<bottom>[0-9]+)(?![0-9.,])"
    rf"|(?P<sign2>[+-]?) ?(?P<whole2>[0-9]+)? ?\\[dtc]?frac ?\{{ ?(?P<top2>[0-9]+) ?\}} ?\{{ ?(?P<bottom2>[0-9]+) ?\}}"
    rf"|(?P<decimal>[+-]? ?{_DECIMAL})(?![0-9.,])",
    re.ASCII,
)
_PERCENT = re.compile(r" ?(?:\\?%|(?:percent|per cent|pct)(?![A-Za-z]))")
_FUNCTIONS = {word: f"\\{word} " for word in ("sin", "cos", "tan", "log", "ln", "exp", "pi", "sqrt", "max", "min")}
_FUNCTIONS |= {"infinity": r"\infty ", "inf": r"\infty ", "oo": r"\infty "}
_KNOWN = re.compile(rf"(?<![A-Za-z\\])(?:{'|'.join(_FUNCTIONS)})(?![A-Za-z])")
_SQRT_CALL = re.compile(r"\\sqrt ?\(([^()]*)\)")
_PROSE = re.compile(
    r"(?<![A-Za-z\\])(?:[A-Za-z]{4,}|(?:not?|nor|but|to|is|of|mod|mil)(?![A-Za-z]))"
    r"|^(?=[A-Za-z ,.'-]+$).*[A-Za-z]{3}"
)
_ENVIRONMENT = re.compile(r"\\(?:begin|end|operatorname) ?\{[a-zA-Z]{1,12}\}")
_REFUSED = re.compile(
    r"(?<!_)[0-9.}] +[0-9.]|[0-9})]_|\.[0-9]+\.|[0-9]{1001}|[0-9],[0-9]{4}"  # two numbers, a base, not a number
    r"|\\(?:boxed|fbox|text|mbox|mathrm|def|input|[()\[\]])|[\"'`?;#@$]|:(?!=)(?! ?[0-9])"
    r"|\\(?:[bp]?mod|pod)(?![A-Za-z])|[-+*/^<>_]$|^[-+] ?[-+]"  # a remainder, half an expression
    r"|^[-+]? ?0[.0]* ?[A-Za-z]"  # "0 BC" would be 0
    rf"|[0-9] ?\\[dtc]?frac ?\{{[0-9 ]+\}} ?\{{[0-9 ]+\}} ?\^|% ?\^|[–—{''.join(_VULGAR)}]"  # no unit, a range
)
_PLAIN_SYMBOL = re.compile(r" ?\\?[A-Za-z]{1,7}(?:_\{?[A-Za-z0-9]{1,3}\}?)? ?(?:\( ?[A-Za-z] ?\))? ?$")
_EQUALS = re.compile(r"(?<![<>!:\\])=|\\approx(?![A-Za-z])")
_VALUES = re.compile(r",|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])")


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written: exact value, `percent` if a percent sign follows, `decimal` if it has decimals."""

    value: Fraction
    percent: bool
    decimal: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer as one value: LaTeX for math-verify, and the number itself if the answer is a plain number."""

    latex: str
    number: Number | None


def fold_text(text: str) -> str:
    """Return `text` stripped and case-folded, with inner blanks folded to one space: equal texts need no reading."""
    return " ".join(text.split()).casefold()


def parse_answer(text: str) -> Reading | None:
    r"""Read an answer as one value.

    Removes one pair of `$…$`, `\(…\)`, `\boxed{…}`, `\text{…}` or emphasis around the whole, currency signs, a full
    stop, a unit after a number or an expression. "2 million" is 2,000,000, "1 000" is 1,000, "1{,}5" is 1.5.

    Returns:
        The reading, or None if the text is prose, has adjacent numbers, or is otherwise more than one value.
    """
    bare, money = _unwrap(text)
    if word := _MINUS_WORD.match(bare):
        return _number(f"-{bare[word.end() :]}", money)
    number = _number(bare, money)
    return number if number else _expression(bare, money)


def are_equal_numbers(answer: Number, reference: Number) -> bool:
    """Return true if two plain numbers are equal; "50%" equals both "0.5" and "50".

    Whole numbers and fractions are compared exactly. If one has decimals, both must agree when rounded to six
    (math-verify's rule) and also to a relative 1e-6, so that nothing small equals 0.
    """
    if answer.percent != reference.percent:
        ignoring_percent = (
            Number(answer.value, False, answer.decimal),
            Number(reference.value, False, reference.decimal),
        )
        scaled = tuple(Number(n.value / 100 if n.percent else n.value, False, n.decimal) for n in (answer, reference))
        return are_equal_numbers(*ignoring_percent) or are_equal_numbers(scaled[0], scaled[1])
    a, b = answer.value, reference.value
    if a == b or not (answer.decimal or reference.decimal):
        return a == b
    return round(a, 6) == round(b, 6) and abs(a - b) <= max(abs(a), abs(b)) / 10**6


def claimed_expressions(answer: str, reference: str) -> tuple[str, ...] | None:
    """Return the LaTeX expressions that must all equal `reference` for `answer` to be right.

    An answer "3+15 = 18" claims 3+15 and 18, "x = 18" only 18, "17 = 18" both 17 and 18; "x=17, x=18" claims the set
    of both. math-verify alone compares the last of them.

    Returns:
        The expressions, or None if the answer's equations do not make a single claim.
    """
    if (":" in answer) != (":" in reference):  # math-verify divides, so that "18:1" would be 18
        return None
    sides = _split(answer, _EQUALS)
    if len(sides) == 1:
        return (answer,)
    has_symbol = bool(_PLAIN_SYMBOL.match(sides[0]))
    if not all(side.strip() for side in sides):
        return None
    if len(_split(reference, _EQUALS)) > 1:
        is_chain = has_symbol and len(sides) > 2
        return tuple(f"{sides[0]}={side}" for side in sides[1:]) if is_chain else (answer,)
    if len(sides) == 2 or len(_split(answer, _VALUES)) == 1:
        return tuple(sides[1:]) if has_symbol else tuple(sides)
    return _merge_assignments(answer)


def _merge_assignments(answer: str) -> tuple[str, ...] | None:
    """Return "x=17 or x=18" as the one claim "17,18"."""
    values = []
    for part in _split(answer, _VALUES):
        sides = _split(part, _EQUALS)
        if len(sides) != 2 or not _PLAIN_SYMBOL.match(sides[0]):
            return None
        values.append(sides[1])
    return (",".join(values),)


def _split(text: str, separator: re.Pattern[str]) -> list[str]:
    """Split `text` at the separators outside brackets."""
    parts, depth, start, searched = [], 0, 0, 0
    for mark in separator.finditer(text):
        between = text[searched : mark.start()]
        depth += sum(map(between.count, "([{")) - sum(map(between.count, ")]}"))
        searched = mark.end()
        if depth == 0:
            parts.append(text[start : mark.start()])
            start = mark.end()
    return [*parts, text[start:]]


def _unwrap(text: str) -> tuple[str, bool]:
    """Return the text without formatting, and true if it had a currency sign."""
    bare = _SUPERSCRIPT.sub(lambda power: f"^{{{power.group().translate(_SUPERSCRIPTS)}}}", text).translate(_SIGNS)
    bare = _ROOT.sub(lambda root: rf"\sqrt{{{root[1]}}}" if root[1] else r"\sqrt", bare)
    bare = _LATEX_THOUSANDS.sub(lambda number: _LATEX_MARK.sub("", number.group()), bare)
    bare = _BLANK.sub("  ", _SPACING.sub("", _DECIMAL_COMMA.sub(".", bare).replace("{,}", ",")))
    for _ in range(8):
        shorter = _unwrap_once(bare.strip())
        if shorter == bare:
            break
        bare = shorter
    without_currency = _CURRENCY.sub(" ", bare).strip()
    is_money = without_currency != bare.strip()
    without_currency = _EN_DASH_MINUS.sub(r"\1-", without_currency)
    if _SPACED_THOUSANDS.fullmatch(without_currency):
        return without_currency.replace(" ", ""), is_money
    without_currency = " ".join(without_currency.split())
    return _LEADING_VULGAR.sub(_latex_fraction, without_currency, count=1) if _LEADING_VULGAR.match(
        without_currency
    ) else without_currency, is_money


def _latex_fraction(vulgar: re.Match[str]) -> str:
    top, bottom = _VULGAR[vulgar[2]]
    return rf"{vulgar[1]}\frac{{{top}}}{{{bottom}}}"


def _unwrap_once(text: str) -> str:
    for mark_open, mark_close in (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("**", "**"), ("`", "`")):
        inner = text[len(mark_open) : -len(mark_close)]
        if len(text) > 2 * len(mark_open) and text.startswith(mark_open) and text.endswith(mark_close):
            return text if mark_open in inner or inner.endswith("\\") else inner
    wrapper = _WRAPPER.match(text)
    if wrapper and _closing_brace(text, wrapper.end()) == len(text) - 1:
        return text[wrapper.end() : -1]
    return text[:-1] if text.endswith(".") else text


def _closing_brace(text: str, position: int) -> int:
    depth = 1
    for brace in re.finditer(r"\\[{}]|[{}]", text[position:]):
        depth += {"{": 1, "}": -1}.get(brace.group(), 0)
        if depth == 0:
            return position + brace.start()
    return -1


def _number(text: str, money: bool) -> Reading | None:
    match = _NUMBER.match(text)
    value = _value(match) if match else None
    if match is None or value is None:
        return None
    percent = _PERCENT.match(text, match.end())
    rest = text[percent.end() if percent else match.end() :]
    scale = unit_scale(rest, money)
    if scale is None or (percent and scale != 1):
        return None
    decimal = "." in (match["decimal"] or "")
    value *= scale
    latex = f"{value}" if not decimal or scale != 1 else match.group().replace(",", "").replace(" ", "")
    return Reading(latex + (r"\%" if percent else ""), Number(value, bool(percent), decimal))


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


def _expression(text: str, money: bool) -> Reading | None:
    bare = _KNOWN.sub(lambda word: _FUNCTIONS[word.group()], remove_unit(text, money)).strip()
    bare = _SQRT_CALL.sub(r"\\sqrt{\1}", bare)
    bare = re.sub(r"\\(?:text|mbox|mathrm) ?\{ ?(and|or) ?\}", r" \1 ", bare)
    if not bare or _REFUSED.search(bare) or _PROSE.search(_ENVIRONMENT.sub("", bare)):
        return None
    return Reading(bare, None)
