"""Read an answer as ONE value before any mathematics: any remaining text is a reason to refuse it.

math-verify searches for mathematics inside a text, and gives credit where it should not: it reads "17 1", "18_20" and
"17=18" as 18, "5t" as 5. Here an answer is a number with an optional unit, or an expression with nothing around it.
Anything else cannot equal anything. Nothing here calls sympy.

Doubtful cases get no credit: a word is a unit only if it is a known one or looks like a plural noun ("18 duck eggs");
"18 nope", "18 of", "18 halved" and "18 in debt" are no numbers.
"""

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

_WORDS = tomllib.loads(Path(__file__).with_name("answer_words.toml").read_text("utf-8"))
_GROUP_WORDS = re.compile(r"\\(?:text|mathrm|mbox|textbf|mathbf|textit|mathit) ?\{([^{}\\]*)\}")
_DEGREES = re.compile(r"\^ ?\{? ?\\circ ?\}?|\\degrees?(?![A-Za-z])")
_POWER = re.compile(r"(?:(?<=[A-Za-z])|(?<=[A-Za-z]\})) ?\^ ?(?:[23]|\{ ?[23] ?\})$")  # of a unit, never of a number
_TRAILING_WORDS = re.compile(r"(?<=[0-9})\] ])[A-Za-z][A-Za-z./-]*(?: [A-Za-z][A-Za-z./-]*){0,5}$")
_SCALES = {f"{word}{ending}": scale for word, scale in _WORDS["scales"].items() for ending in ("", "s")}
_GLUED_LETTERS = frozenset("mgh")  # "18m"; any other letter glued to a number is a variable ("5t") or a scale ("18K")
_LETTERS = frozenset("mghslL")  # "18 s"
_TYPESET_LETTERS = _LETTERS | frozenset("NJWVACF")  # "18\text{ N}"
_UNITS, _SHORT_UNITS = frozenset(_WORDS["units"].split()), frozenset(_WORDS["short_units"].split())
_ADJECTIVES, _NOT_UNITS = frozenset(_WORDS["adjectives"].split()), frozenset(_WORDS["not_units"].split())
_CLOSINGS = frozenset(tuple(closing.split()) for closing in _WORDS["closings"])
_NO_NOUN = re.compile(r".*(?:ly|.ed|th|ths|teen|teens|illion|illions|illionth|fold|less|ing|wards?|wise)|[ivxlcdm]+")
_PLURAL = re.compile(r"[A-Za-z]?[a-z]{2,}[^sui\W]s")
_NOUN = re.compile(r"[A-Za-z]?[a-z]{2,}")


def unit_scale(rest: str, money: bool) -> int | None:
    """Return the factor of the words after a number: 1 for a unit or nothing, None if they are no unit."""
    words = _words(rest)
    if words is None:
        return None
    scale, count = 1, 0
    while count < min(2, len(words)) and (factor := _SCALES.get(words[count].lower(), 0)) > scale:
        scale, count = scale * factor, count + 1
    is_typeset = bool(_GROUP_WORDS.match(rest.lstrip()))
    is_glued = rest[:1].isalpha() and not count
    return scale if _is_unit(words[count:], money=money, glued=is_glued, typeset=is_typeset) else None


def _words(rest: str) -> list[str] | None:
    """Return the words after a number, including "/"; None if there is anything else."""
    rest = rest.rstrip(" .")
    normalised = _DEGREES.sub(" degrees ", _GROUP_WORDS.sub(r" \1", _POWER.sub("", rest))).rstrip(" .")
    normalised = re.sub(r"(?<=[A-Za-z])-(?=[A-Za-z])|(?<=[A-Za-z])\.(?= )", " ", normalised)
    if not re.fullmatch(r"[A-Za-z/ ]{0,60}", normalised):
        return None
    words = normalised.replace("/", " / ").split()
    return None if _POWER.search(rest) and not _is_known(words[-1], _TYPESET_LETTERS) else words


def _is_unit(words: list[str], *, money: bool, glued: bool, typeset: bool) -> bool:
    """Return true for `[adjective] unit`, `per unit` and "each", "in total" or similar, in order, each optional."""
    for length in (1, 2):
        if tuple(words[-length:]) in _CLOSINGS:
            words = words[:-length]
            break
    rate = next((i for i, word in enumerate(words) if word in ("/", "per", "a", "an", "each", "every")), len(words))
    head, below = words[:rate], words[rate:]
    if below and not _is_rate(below, bool(head)):
        return False
    if not head:
        return True
    if glued and not (_is_known(head[0], _GLUED_LETTERS) or head[0].lower() in _ADJECTIVES):
        return False
    if money and len(head[0]) <= 2 and head[0] not in ("us", "US"):  # "$18 mm", "$18 g"
        return False
    return _is_noun_phrase(head, _TYPESET_LETTERS if typeset else _LETTERS)


def _is_noun_phrase(words: list[str], letters: frozenset[str]) -> bool:
    *adjectives, noun = words
    if adjectives and adjectives[0].lower() in ("degree", "degrees") and noun in ("C", "F"):
        return len(adjectives) == 1
    is_known = _is_known(noun, letters)
    if not is_known and not (_PLURAL.fullmatch(noun) and _is_plain(noun)):
        return False
    return len(adjectives) < 2 and all(
        word.lower() in _ADJECTIVES or (_is_plain(word) and not _is_known(word, letters)) for word in adjectives
    )


def _is_rate(words: list[str], has_unit: bool) -> bool:
    """Return true if the words are "per day" or "/ day"; a bare "18/x" divides."""
    if len(words) != 2:
        return False
    sign, noun = words
    if sign in ("/", "a", "an"):
        return _is_known(noun, _LETTERS) and (has_unit or len(noun) > 2)
    return _is_known(noun, _LETTERS) or _is_plain(noun)


def _is_known(word: str, letters: frozenset[str]) -> bool:
    if len(word) <= 2:
        return word in letters or word in _SHORT_UNITS
    lower = word.lower()
    return lower in _UNITS or (lower[-1] == "s" and len(lower) > 3 and lower[:-1] in _UNITS)


def _is_plain(word: str) -> bool:
    lower = word.lower()
    return bool(_NOUN.fullmatch(word)) and not (lower in _NOT_UNITS or lower in _SCALES or _NO_NOUN.fullmatch(lower))


def remove_unit(text: str, money: bool) -> str:
    r"""Remove a unit from the end of an expression: `6\pi \text{ cm}^2`, "x+1 apples"."""
    shorter = _POWER.sub("", text)
    group = re.search(r"\\(?:text|mathrm|mbox) ?\{([^{}\\]*)\}$", shorter)
    tail = group or _TRAILING_WORDS.search(text)
    if tail is None or tail.start() == 0:
        return text
    words = _words(tail.group(1) if group else tail.group())
    if not words or not (group or all(len(word) > 1 for word in words if word != "/")):
        return text
    is_glued = not group and text[tail.start() - 1] != " "
    fits = _is_unit(words, money=money, glued=is_glued, typeset=bool(group))
    return text[: tail.start()].rstrip() if fits else text


_SIGNS = str.maketrans(_WORDS["signs"])
_ROOT = re.compile(r"√ ?(?:([0-9]+)(?![0-9]|\.[0-9])|(?=\())")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
_VULGAR = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_LEADING_VULGAR = re.compile(rf"([+-]? ?(?:[0-9]+ ?)?)([{_VULGAR}])(?=[ A-Za-z\\]|$)")
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
    rf"|[0-9] ?\\[dtc]?frac ?\{{[0-9 ]+\}} ?\{{[0-9 ]+\}} ?\^|% ?\^|[–—{_VULGAR}]"  # no unit, a range
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
    Returns None if the text is prose, has adjacent numbers, or is otherwise more than one value.
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
    a, b = answer.value, reference.value
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
    amount = _CURRENCY.sub(" ", bare).strip()
    is_money = amount != bare.strip()
    amount = _EN_DASH_MINUS.sub(r"\1-", amount)
    if _SPACED_THOUSANDS.fullmatch(amount):
        return amount.replace(" ", ""), is_money
    amount = " ".join(amount.split())
    if vulgar := _LEADING_VULGAR.match(amount):
        top, bottom = unicodedata.normalize("NFKC", vulgar[2]).split("\u2044")
        amount = rf"{vulgar[1]}\frac{{{top}}}{{{bottom}}}{amount[vulgar.end() :]}"
    return amount, is_money


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
