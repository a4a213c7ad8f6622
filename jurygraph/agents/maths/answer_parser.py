"""Read an answer as ONE value before any mathematics: any remaining text is a reason to refuse it.

math-verify searches for mathematics inside a text, and gives credit where it should not: it reads "17 1", "18_20" and
"17=18" as 18, "5t" as 5. Here an answer is a number with an optional unit, a time of day, a range, or an expression
with nothing around it. Anything else cannot equal anything. Nothing here calls sympy.
"""

import re
import unicodedata
from dataclasses import dataclass, replace
from fractions import Fraction

from jurygraph.agents.maths.clock import Clock, are_equal_clocks, is_hour, read_clock
from jurygraph.agents.maths.numerals import Number, Quantity, read_compound, read_quantity
from jurygraph.agents.maths.units import WORDS, Measures, Unit, measure_of, split_unit, unit_ratio

_SIGNS = str.maketrans(WORDS["signs"])
_ROOT = re.compile(r"√ ?(?:([0-9]+)(?![0-9]|\.[0-9])|(?=\())")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
_VULGAR = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_LEADING_VULGAR = re.compile(rf"([+-]? ?(?:[0-9]+ ?)?)([{_VULGAR}])(?=[ A-Za-z\\]|$)")
_EN_DASH_MINUS = re.compile(r"(^|[=(,\[{]) ?–")  # elsewhere it marks a range
_MINUS_WORD = re.compile(r"(?i:minus|negative) (?=[0-9.\\])")
_SPACED_THOUSANDS = re.compile(r"[+-]? ?[1-9][0-9]{0,2}(?: [0-9]{3})+")
_CURRENCY = re.compile(r"(?:US|CA|AU|C|A)?\\?\$|[£€¥₹]|^(?:USD|EUR|GBP|INR|JPY|CHF|Rs\.?)(?=[ 0-9])")
_LATEX_THOUSANDS = re.compile(
    r"(?<![0-9.,}!])[1-9][0-9]{0,2}(?:(?:\{,\}[0-9]{3})+(?!\{,\}|[0-9])|(?:,?\\[,!][0-9]{3})+(?![0-9]))"
)
_LATEX_MARK = re.compile(r"\{,\}|,?\\[,!]")
_DECIMAL_COMMA = re.compile(r"(?<=[0-9])\{,\}(?=[0-9])")
_SPACING = re.compile(r"\\(?:left|right|displaystyle)(?![A-Za-z])")
_BLANK = re.compile(r"\\(?:quad|qquad)(?![A-Za-z])|\\[,;:! ]|~")
_WRAPPER = re.compile(r"\\(?:boxed|fbox|text|mathrm|mathbf|textbf|mbox|mathit|textit)[ ]?\{")
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
    r"|\\(?:boxed|fbox|text|mbox|mathrm|def|input|[()\[\]])|[\"'`?;#@$£€¥₹]|:(?!=)(?! ?[0-9])"
    r"|\\(?:[bp]?mod|pod)(?![A-Za-z])|[-+*/^<>_]$|^[-+] ?[-+]"  # a remainder, half an expression
    r"|^[-+]? ?0[.0]* ?[A-Za-z]"  # "0 BC" would be 0
    rf"|[0-9] ?\\[dtc]?frac ?\{{[0-9 ]+\}} ?\{{[0-9 ]+\}} ?\^|% ?\^|[–—{_VULGAR}]"  # no unit, a range
)
_PLAIN_SYMBOL = re.compile(r" ?\\?[A-Za-z]{1,7}(?:_\{?[A-Za-z0-9]{1,3}\}?)? ?(?:\( ?[A-Za-z] ?\))? ?$")
_RANGE_OPENING = re.compile(r"(between|from) ", re.IGNORECASE)
_TO = re.compile(r" ?[–—] ?| to |(?<=[0-9%]) ?- ?(?=[0-9.])")
_AND = re.compile(r" and ")
_LONGEST_RANGE = 200
_EQUALS_SIGN = re.compile(r" ?= ?")
_EQUALS = re.compile(r"(?<![<>!:\\])=|\\approx(?![A-Za-z])")
_VALUES = re.compile(r",|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])")


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer as one value: its LaTeX for math-verify, empty if that cannot compare it, and its unit.

    `number` if it is a plain number, `clock` if it is a time of day, `span` if it is a range. "3:30" is a ratio too,
    and "3-5" a difference: then both are there.
    """

    latex: str
    number: Number | None = None
    unit: Unit = Unit()  # noqa: RUF009 - it is frozen
    clock: Clock | None = None
    span: tuple[Quantity, Quantity] | None = None


def fold_text(text: str) -> str:
    """Return `text` stripped and case-folded, with inner blanks folded to one space, and to none around "=".

    Equal texts need no reading.
    """
    return _EQUALS_SIGN.sub("=", " ".join(text.split())).casefold()


def parse_answer(text: str) -> Reading | None:
    r"""Read an answer as one value.

    Removes one pair of `$…$`, `\(…\)`, `\boxed{…}`, `\text{…}` or emphasis around the whole, currency signs, a full
    stop, a unit after a number or an expression. "2 million" is 2,000,000, "70k" 70,000, "1 000" 1,000, "1{,}5" 1.5.
    Returns None if the text is prose, has adjacent numbers, or is otherwise more than one value.
    """
    bare, money = _unwrap(text)
    word = _MINUS_WORD.match(bare)
    quantity = read_quantity(f"-{bare[word.end() :]}" if word else bare, money)
    if quantity := quantity or (None if word else read_compound(bare, money)):
        return Reading(quantity.latex, quantity.number, quantity.unit)
    if word:
        return None
    clock = read_clock(bare)
    span = _read_range(bare, money)
    expression = None if clock and clock.has_half else _expression(bare, money)
    if clock or span:
        return replace(expression or Reading(""), clock=clock, span=span)
    return expression


def compare_plainly(answer: Reading, reference: Reading) -> bool | None:
    """Return true if two answers are equal numbers, times or ranges; None if one is another expression.

    Units of one dimension are converted; of two, they make the answers different, and so do "%" and a unit. If one has
    no unit, the number decides.
    """
    if answer.clock or reference.clock:
        return _compare_clocks(answer, reference)
    ratio = unit_ratio(answer.unit, reference.unit)
    if ratio is None:
        return False
    if answer.number and reference.number:
        if answer.number.percent != reference.number.percent and (answer.unit.top or reference.unit.top):
            return False
        return are_equal_numbers(_scaled(answer.number, ratio), reference.number)
    if answer.span and reference.span:
        return all(_are_equal_quantities(*ends) for ends in zip(answer.span, reference.span, strict=True))
    return None if answer.latex and reference.latex else False


def _compare_clocks(answer: Reading, reference: Reading) -> bool | None:
    if answer.clock and reference.clock:
        is_equal = are_equal_clocks(answer.clock, reference.clock)
        return is_equal or (None if answer.latex and reference.latex else False)
    clock = answer.clock or reference.clock
    other = reference if answer.clock else answer
    if clock and other.number and not other.unit.top and is_hour(clock, other.number.value):
        return True
    return None if answer.latex and reference.latex else False


def _are_equal_quantities(answer: Quantity, reference: Quantity) -> bool:
    ratio = unit_ratio(answer.unit, reference.unit)
    return ratio is not None and are_equal_numbers(_scaled(answer.number, ratio), reference.number)


def _scaled(number: Number, ratio: Fraction) -> Number:
    return number if ratio == 1 else replace(number, value=number.value * ratio)


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


def claimed_expressions(answer: str, reference: str) -> tuple[str, ...] | None:
    """Return the LaTeX expressions that must all equal `reference` for `answer` to be right.

    An answer "3+15 = 18" claims 3+15 and 18, "x = 18" only 18, "17 = 18" both 17 and 18; "x=17, x=18" claims the set
    of both. math-verify alone compares the last of them. Returns None if the equations do not make a single claim.
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


def _unwrap(text: str) -> tuple[str, Measures]:
    """Return the text without formatting and currency signs, and their currency."""
    bare = _SUPERSCRIPT.sub(lambda power: f"^{{{unicodedata.normalize('NFKC', power.group())}}}", text)
    bare = bare.translate(_SIGNS)
    bare = _ROOT.sub(lambda root: rf"\sqrt{{{root[1]}}}" if root[1] else r"\sqrt", bare)
    bare = _LATEX_THOUSANDS.sub(lambda number: _LATEX_MARK.sub("", number.group()), bare)
    bare = _BLANK.sub("  ", _SPACING.sub("", _DECIMAL_COMMA.sub(".", bare).replace("{,}", ",")))
    for _ in range(8):
        shorter = _unwrap_once(bare.strip())
        if shorter == bare:
            break
        bare = shorter
    signs = {sign.replace("\\", "") for sign in _CURRENCY.findall(bare)}
    money = measure_of(signs.pop()) if len(signs) == 1 else ()
    amount = _CURRENCY.sub(" ", bare).strip() if money else bare.strip()
    amount = _EN_DASH_MINUS.sub(r"\1-", amount)
    if _SPACED_THOUSANDS.fullmatch(amount):
        return amount.replace(" ", ""), money
    amount = " ".join(amount.split())
    if vulgar := _LEADING_VULGAR.match(amount):
        top, bottom = unicodedata.normalize("NFKC", vulgar[2]).split("\u2044")
        amount = rf"{vulgar[1]}\frac{{{top}}}{{{bottom}}}{amount[vulgar.end() :]}"
    return amount, money


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


def _read_range(text: str, money: Measures) -> tuple[Quantity, Quantity] | None:
    """Read "3-5 hours", "3 – 5", "3 to 5" or "between 3 and 5"; None unless the second is greater."""
    if len(text) > _LONGEST_RANGE:
        return None
    opening = _RANGE_OPENING.match(text)
    ends = (_AND if opening and opening[1].lower() == "between" else _TO).split(text[opening.end() if opening else 0 :])
    low, high = (read_quantity(end.strip(), money) for end in ends) if len(ends) == 2 else (None, None)
    if low is None or high is None:
        return None
    if low.unit in (Unit(), Unit(top=money)):  # "3-5 hours", "2 to 3 million"
        low = replace(low, unit=high.unit, number=replace(low.number, value=low.number.value * high.unit.scale))
    ratio = unit_ratio(low.unit, high.unit)
    return (low, high) if ratio is not None and low.number.value * ratio < high.number.value else None


def _expression(text: str, money: Measures) -> Reading | None:
    bare, unit = split_unit(text, money)
    bare = _KNOWN.sub(lambda word: _FUNCTIONS[word.group()], bare).strip()
    bare = _SQRT_CALL.sub(r"\\sqrt{\1}", bare)
    bare = re.sub(r"\\(?:text|mbox|mathrm) ?\{ ?(and|or) ?\}", r" \1 ", bare)
    if not bare or _REFUSED.search(bare) or _PROSE.search(_ENVIRONMENT.sub("", bare)):
        return None
    return Reading(bare, unit=unit)
