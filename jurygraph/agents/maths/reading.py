r"""Reads an answer as ONE value before any mathematics: what is left over is a reason to refuse it.

math-verify looks for mathematics inside a text, and gives credit where it should not: it reads "17 1", "18_20" and
"17=18" as 18, "5t" as 5. Here an answer is a number with an optional unit, or an expression with nothing around it.
What is neither cannot equal anything. Nothing here calls sympy.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

_SIGNS = str.maketrans(
    {"−": "-", "×": "*", "∗": "*", "·": "*", "⋅": "*", "÷": "/", "π": r"\pi ", "∞": r"\infty ", "≈": r"\approx "}
    | {"≤": r"\le ", "≥": r"\ge ", "\u00a0": " ", "\u202f": " ", "\u2009": " ", "°": r"^\circ ", "\n": " ", "\t": " "}
)
_CURRENCY = re.compile(r"\\?\$|[£€¥₹]|^(?:USD|EUR|GBP|Rs\.?)(?=[ 0-9])")
_SPACING = re.compile(r"\\[,!](?=[0-9]{3}(?![0-9]))|\{,\}|\\(?:left|right|displaystyle)(?![A-Za-z])|\\!")
_BLANK = re.compile(r"\\(?:quad|qquad)(?![A-Za-z])|\\[,;: ]|~")
_WRAPPER = re.compile(r"\\(?:boxed|fbox|text|mathrm|mathbf|textbf|mbox|mathit|textit)[ ]?\{")
_INTEGER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)"
_DECIMAL = rf"(?:{_INTEGER}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{{1,3}}(?![0-9A-Za-z]))?"
_NUMBER = re.compile(
    rf"(?P<sign>[+-]?) ?(?:(?P<whole>[0-9]+) )?(?P<top>[0-9]+) ?/ ?(?P<bottom>[0-9]+)(?![0-9.,])"
    rf"|(?P<sign2>[+-]?) ?(?P<whole2>[0-9]+)? ?\\[dtc]?frac ?\{{ ?(?P<top2>[0-9]+) ?\}} ?\{{ ?(?P<bottom2>[0-9]+) ?\}}"
    rf"|(?P<decimal>[+-]? ?{_DECIMAL})(?![0-9.,])",
    re.ASCII,
)
_PERCENT = re.compile(r" ?(?:\\?%|(?:percent|per cent|pct)(?![A-Za-z]))")
_GROUP_WORDS = re.compile(r"\\(?:text|mathrm|mbox|textbf|mathbf|textit|mathit) ?\{([^{}\\]*)\}")
_DEGREES = re.compile(r"\^ ?\{? ?\\circ ?\}?|\\degrees?(?![A-Za-z])")
_POWER = re.compile(r"(?:\^ ?\{? ?[23] ?\}?|[²³])$")
_TRAILING_WORDS = re.compile(r"(?<=[0-9})\] ])[A-Za-z][A-Za-z'’./-]*(?: [A-Za-z][A-Za-z'’./-]*){0,5}$")
_SCALES = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_MONEY_SCALES = frozenset({"k", "K", "m", "M", "mn", "mm", "b", "B", "bn", "t", "T", "tn"})
_LETTER_UNITS = frozenset("mglLshaACFWJNV")  # any other single letter is a variable ("5t") or a scale ("18K")
_NOT_UNITS = frozenset(
    "and or nor not no never but to than then from through until between below under minus plus times negative over"
    " without except least most maybe if unless is are was were because since so equals equal which that wrong false"
    " incorrect half halves third thirds fourth fourths fifth fifths sixth sixths eighth eighths tenth tenths squared"
    " cubed factorial zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundredths".split()
)
_FUNCTIONS = {word: f"\\{word} " for word in ("sin", "cos", "tan", "log", "ln", "exp", "pi", "sqrt", "max", "min")}
_FUNCTIONS |= {"infinity": r"\infty ", "inf": r"\infty ", "oo": r"\infty "}
_KNOWN = re.compile(rf"(?<![A-Za-z\\])(?:{'|'.join(_FUNCTIONS)})(?![A-Za-z])")
_SQRT_CALL = re.compile(r"\\sqrt ?\(([^()]*)\)")
_PROSE = re.compile(
    r"(?<![A-Za-z\\])(?:[A-Za-z]{4,}|(?:not?|nor|but|to|is)(?![A-Za-z]))|^[A-Za-z ,.'-]*[A-Za-z]{3,}[A-Za-z ,.'-]*$"
)
_ENVIRONMENT = re.compile(r"\\(?:begin|end|operatorname) ?\{[a-zA-Z]{1,12}\}")
_REFUSED = re.compile(
    r"(?<!_)[0-9.}] +[0-9.]|[0-9})]_|\.[0-9]+\.|[0-9]{1001}|[0-9],[0-9]{4}"  # two numbers, a base, not a number
    r"|\\(?:boxed|fbox|text|mbox|mathrm|def|input|[()\[\]])|[\"'`?;#@$]|:(?!=)(?! ?[0-9])"
)
_PLAIN_SYMBOL = re.compile(r" ?\\?[A-Za-z]{1,7}(?:_\{?[A-Za-z0-9]{1,3}\}?)? ?(?:\( ?[A-Za-z] ?\))? ?$")
_EQUALS = re.compile(r"(?<![<>!:\\])=|\\approx(?![A-Za-z])")
_VALUES = re.compile(r",|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])")


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written: exact value, whether a percent sign follows, whether it has digits behind a point."""

    value: Fraction
    percent: bool
    decimal: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer as one value: LaTeX for math-verify, and the number itself where the answer is a plain number."""

    latex: str
    number: Number | None


def folded(text: str) -> str:
    """`text` without blanks around it, blanks inside folded to one space, case folded: equal ones need no reading."""
    return " ".join(text.split()).casefold()


def read(text: str) -> Reading | None:
    r"""Reads an answer as one value.

    Taken away: one pair of `$…$`, `\(…\)`, `\boxed{…}`, `\text{…}` or emphasis around the whole, currency signs, a full
    stop, unit words behind a number (not "or", "not", number words and the like). "2 million" is 2,000,000.

    Returns:
        The reading, or None where the text is prose, holds numbers side by side, or is otherwise more than one value.
    """
    bare, money = _unwrapped(text)
    number = _number(bare, money)
    return number if number else _expression(bare)


def same_number(answer: Number, reference: Number) -> bool:
    """Whether two plain numbers are equal; "50%" equals both "0.5" and "50".

    Whole numbers and fractions are compared exactly. Where one has digits behind a point, both must agree when rounded
    to six (math-verify's rule) and also to a relative 1e-6, so that nothing small equals 0.
    """
    if answer.percent != reference.percent:
        loose = Number(answer.value, False, answer.decimal), Number(reference.value, False, reference.decimal)
        scaled = tuple(Number(n.value / 100 if n.percent else n.value, False, n.decimal) for n in (answer, reference))
        return same_number(*loose) or same_number(scaled[0], scaled[1])
    a, b = answer.value, reference.value
    if a == b or not (answer.decimal or reference.decimal):
        return a == b
    return round(a, 6) == round(b, 6) and abs(a - b) <= max(abs(a), abs(b)) / 10**6


def claims(answer: str, reference: str) -> tuple[str, ...] | None:
    """The LaTeX expressions that must all equal `reference` for `answer` to be right.

    An answer "3+15 = 18" claims 3+15 and 18, "x = 18" only 18, "17 = 18" both 17 and 18; "x=17, x=18" claims the set
    of both. math-verify alone compares the last of them.

    Returns:
        The expressions, or None where the answer's equations do not say one thing.
    """
    if (":" in answer) != (":" in reference):  # math-verify divides, so that "18:1" would be 18
        return None
    sides = _split(answer, _EQUALS)
    if len(sides) == 1:
        return (answer,)
    named = bool(_PLAIN_SYMBOL.match(sides[0]))
    if not all(side.strip() for side in sides):
        return None
    if len(_split(reference, _EQUALS)) > 1:
        chain = named and len(sides) > 2
        return tuple(f"{sides[0]}={side}" for side in sides[1:]) if chain else (answer,)
    if len(sides) == 2 or len(_split(answer, _VALUES)) == 1:
        return tuple(sides[1:]) if named else tuple(sides)
    return _assigned(answer)


def _assigned(answer: str) -> tuple[str, ...] | None:
    """ "x=17 or x=18" as the one claim "17,18"."""
    values = []
    for part in _split(answer, _VALUES):
        sides = _split(part, _EQUALS)
        if len(sides) != 2 or not _PLAIN_SYMBOL.match(sides[0]):
            return None
        values.append(sides[1])
    return (",".join(values),)


def _split(text: str, separator: re.Pattern[str]) -> list[str]:
    """`text` split at the separators that stand in no bracket."""
    parts, depth, start, seen = [], 0, 0, 0
    for mark in separator.finditer(text):
        between = text[seen : mark.start()]
        depth += sum(map(between.count, "([{")) - sum(map(between.count, ")]}"))
        seen = mark.end()
        if depth == 0:
            parts.append(text[start : mark.start()])
            start = mark.end()
    return [*parts, text[start:]]


def _unwrapped(text: str) -> tuple[str, bool]:
    """The text without what only dresses it, and whether it had a sign of money."""
    bare = " ".join(text.translate(_SIGNS).split())
    bare = _BLANK.sub(" ", _SPACING.sub("", bare))
    for _ in range(8):
        shorter = _once_unwrapped(bare.strip())
        if shorter == bare:
            break
        bare = shorter
    plain = _CURRENCY.sub(" ", bare)
    return " ".join(plain.split()), plain != bare


def _once_unwrapped(text: str) -> str:
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
    scale = _scale(rest, money)
    if scale is None:
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
    if int(bottom) == 0:
        return None
    value = int(whole or 0) + Fraction(int(top), int(bottom))
    return -value if sign == "-" else value


def _scale(rest: str, money: bool) -> int | None:
    """What the words behind a number multiply it with: 1 for a unit or nothing, None where they are no unit."""
    words = _words(rest)
    if words is None:
        return None
    scale = 1
    while words and words[0].lower() in _SCALES:
        scale *= _SCALES[words.pop(0).lower()]
    return scale if _is_unit(words, money) else None


def _words(rest: str) -> list[str] | None:
    spelled = _DEGREES.sub(" degrees", _GROUP_WORDS.sub(r" \1", rest))
    spelled = _POWER.sub("", spelled.rstrip(" ."))
    if not re.fullmatch(r"[A-Za-z'’./ -]{0,60}", spelled):
        return None
    return re.split(r"[ /-]+", spelled.strip(" /-")) if spelled.strip(" /-") else []


def _is_unit(words: list[str], money: bool) -> bool:
    if len(words) > 6 or (money and words and words[0] in _MONEY_SCALES):
        return False
    return all(
        word.lower() not in _NOT_UNITS
        and word.lower() not in _SCALES
        and word not in _FUNCTIONS
        and not word.lower().endswith(("n't", "n’t"))
        and (len(word) > 1 or word in _LETTER_UNITS)
        for word in words
    )


def _expression(text: str) -> Reading | None:
    bare = _KNOWN.sub(lambda word: _FUNCTIONS[word.group()], _without_unit(text)).strip()
    bare = _SQRT_CALL.sub(r"\\sqrt{\1}", bare)
    bare = re.sub(r"\\(?:text|mbox|mathrm) ?\{ ?(and|or) ?\}", r" \1 ", bare)
    if not bare or _REFUSED.search(bare) or _PROSE.search(_ENVIRONMENT.sub("", bare)):
        return None
    return Reading(bare, None)


def _without_unit(text: str) -> str:
    r"""Takes a unit off the end of an expression: `6\pi \text{ cm}^2`, "x+1 apples"."""
    shorter = _POWER.sub("", text)
    group = re.search(r"\\(?:text|mathrm|mbox) ?\{([^{}\\]*)\}$", shorter)
    tail = group or _TRAILING_WORDS.search(text)
    if tail is None or tail.start() == 0:
        return text
    words = _words(tail.group(1) if group else tail.group())
    fits = words and _is_unit(words, False) and (group or all(len(word) > 1 for word in words))
    return text[: tail.start()].rstrip() if fits else text
