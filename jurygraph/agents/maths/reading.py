"""Read an answer as ONE value before any mathematics: any remaining text is a reason to refuse it.

math-verify searches for mathematics inside a text, and gives credit where it should not: it reads "17 1", "18_20" and
"17=18" as 18, "5t" as 5, and it ignores units. So an answer is read here first: a number with an optional unit, whose
sizes are in `measures.toml`, or an expression with nothing around it, which is left to math-verify. A reference may
also be a letter of a multiple choice, a number in another base, a matrix, or words. Anything else equals nothing. A
library of physics would read "cats" as a pressure and knows neither dollars nor cents.

Nothing here calls sympy, and no part of a text is matched in two ways, so reading takes linear time."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

from jurygraph.schema.frozen_model import JsonFields


class MeasureUnit(NamedTuple):
    """A unit of measurement: its dimension, such as "length", "length^2" or "count", and its size in a base unit."""

    dimension: str
    size: Fraction


COUNT_UNIT = MeasureUnit("count", Fraction(1))
"""What any noun measures that is counted: "eggs" and "pages" are not told apart."""


@dataclass(frozen=True, slots=True)
class AnswerValue:
    """An answer as one value: its LaTeX for math-verify, its unit, and its exact value if it is a plain number.

    `percent`: a percent sign follows the number; `is_decimal`: it has decimals.
    """

    latex: str
    value: Fraction | None = None
    percent: bool = False
    is_decimal: bool = False
    unit: MeasureUnit | None = None


def read_word_table(name: str) -> JsonFields:
    """Return a table of words from the folder of this module."""
    return tomllib.loads(Path(__file__).with_name(name).read_text("utf-8"))


def _load_units() -> dict[str, MeasureUnit]:
    units: dict[str, MeasureUnit] = {}
    for dimension, table in read_word_table("measures.toml").items():
        for words, size in table.items():
            units |= dict.fromkeys(words.split(), MeasureUnit(dimension, Fraction(size)))
    return units


_UNIT_BY_WORD = _load_units()
_WORD_TABLES = read_word_table("answer_words.toml")
_SCALE_BY_WORD: Mapping[str, int] = {
    **_WORD_TABLES["scales"],
    **{f"{word}s": scale for word, scale in _WORD_TABLES["scales"].items()},
}
_SCALE_WORD_BY_LETTER: Mapping[str, str] = _WORD_TABLES["letters"]
_MONEY_SCALE_BY_LETTER = {**_SCALE_WORD_BY_LETTER, **_WORD_TABLES["money_letters"]}
_COUNTED_NOUNS = frozenset(_WORD_TABLES["counted"].split())
_NON_UNIT_WORDS = frozenset(_WORD_TABLES["not_units"].split())

# Units
_CLOSING_PHRASE_PATTERN = re.compile(rf" (?:{'|'.join(_WORD_TABLES['closings'])})$")
_ORDINAL_PATTERN = (
    r"(?:fif|six|seven|eigh|nin|ten|eleven|twelf|hundred|thousand)th|.*(?:teen|tie|illion)th"
)
_NON_NOUN_PATTERN = re.compile(
    rf".*(?:ly|[a-z]{{2}}ed|teens?|illions?|fold|less|ing|wards?|wise)|(?:{_ORDINAL_PATTERN})s?|[ivxlcdm]+"
)
_PLURAL_NOUN_PATTERN = re.compile(r"[A-Za-z]?[a-z]{2,}[^sui\W]s")
_NOUN_PATTERN = re.compile(r"[A-Za-z]?[a-z]{2,}")
_UNIT_PHRASE_PATTERN = re.compile(
    r"(?P<words>(?: ?[A-Za-z$€£¥₹/][A-Za-z$€£¥₹/ ]{0,80})?)(?: ?\^ ?\{? ?(?P<power>[23]) ?\}?)?"
)
_UNIT_SEPARATOR_PATTERN = re.compile(r"(?<=[A-Za-z])(?:-(?=[A-Za-z])|\.(?= |$))")  # "sq. ft."
_POWER_BY_WORD = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_DIVISION_WORDS = ("/", "per", "a", "an", "every")
_ATTACHABLE_UNIT_LETTERS = "mgh"  # "18m", but "5s" and "5t" are products
_QUESTION_UNIT_PATTERN = re.compile(
    r"\b(?:how many(?: more| fewer| total| extra| whole)?|in) ([a-z]{2,12})\b", re.IGNORECASE
)

# Numbers
_SIGN_TRANSLATION = str.maketrans(_WORD_TABLES["signs"])
# Elsewhere a dash marks a range.
_MINUS_SIGN_PATTERN = re.compile(r"(^|[=(,\[{]) ?–|^(?i:minus|negative) (?=[0-9.\\$])")
_FULL_WIDTH_TRANSLATION = {
    code: code - 0xFEE0 for code in range(0xFF02, 0xFF5F) if chr(code) != "？"
} | {0x3000: ord(" ")}
_SUPERSCRIPT_PATTERN = re.compile("⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_ROOT_SIGN_PATTERN = re.compile(r"√ ?(?:([0-9]+)(?![0-9]|\.[0-9])|(?=\())")
_LATEX_THOUSANDS_PATTERN = re.compile(r"(?<=[0-9])(?:\{,\}|,?\\[,!]) ?(?=[0-9]{3}(?![0-9]))")
_LATEX_COMMA_PATTERN = re.compile(r"(?<=[0-9])\{,\}(?=[0-9])")
_LAYOUT_COMMAND_PATTERN = re.compile(r"\\(?:left|right|displaystyle)(?![A-Za-z])")
# At the beginning of an answer, a tilde is "about".
_BLANK_COMMAND_PATTERN = re.compile(r"\\(?:quad|qquad)(?![A-Za-z])|\\[,;:! ]|(?<=.)~")
_WRAPPER_COMMAND_PATTERN = re.compile(
    r"\\(?:boxed|fbox|text|mathrm|mathbf|textbf|mbox|mathit|textit) ?\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}"
)
_DELIMITER_PAIRS = (
    ("$$", "$$"),
    ("$", "$"),
    (r"\(", r"\)"),
    (r"\[", r"\]"),
    ("**", "**"),
    ("`", "`"),
)
_QUOTE_PAIRS = (('"', '"'), ("'", "'"), ("“", "”"), ("„", "“"), ("«", "»"), ("「", "」"))
# Stops, and "is" where it stands last.
_ANSWER_TAIL_PATTERN = re.compile(
    r"(?:[.,;。]|(?:\*\*)?(?:です|だ|である|입니다|이다|이에요|예요))$"
)
_TEXT_COMMAND_PATTERN = re.compile(
    r"\\(?:text|mathrm|mbox|textbf|mathbf|textit|mathit) ?\{([A-Za-z /.-]*)\}"
)
_DEGREES_PATTERN = re.compile(r"\^ ?\{? ?\\circ ?\}?|\\degrees?(?![A-Za-z])")
_CURRENCY_PATTERN = r"(?:US|CA|AU|C|A)?\$|[£€¥₹]|USD|EUR|GBP|INR|JPY|CHF|Rs\.?"
_INTEGER_PATTERN = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)"
_NUMBER_PATTERN = re.compile(
    rf"(?P<sign>[+-]?) ?(?:(?P<money>{_CURRENCY_PATTERN}) ?(?P<inner>[+-]?))?"
    r"(?:(?:(?P<whole>[0-9]+) )?(?P<top>[0-9]+) ?/ ?(?P<bottom>[0-9]+)"
    rf"|(?P<decimal>{_INTEGER_PATTERN}(?:\.[0-9]*)?|\.[0-9]+)"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,3})(?![0-9A-Za-z])"  # "1.5e3", "1.5 \times 10^{3}"
    r"| ?(?:\\times|\\cdot|\*|[xX]) ?10 ?(?:\^|\*\*) ?(?:\{ ?)?(?P<power>[+-]?[0-9]{1,3})(?: ?\})?(?![0-9^!]))?)"
    r"(?![0-9.,])",
    re.ASCII,
)
_LATEX_ARGUMENT_PATTERN = r" ?(?:\{ ?([0-9]+) ?\}|([0-9]))"
_FRACTION_PATTERN = re.compile(
    rf"^([+-]? ?[0-9]*) ?\\[dtc]?frac{_LATEX_ARGUMENT_PATTERN}{_LATEX_ARGUMENT_PATTERN}"
)
_PERCENT_PATTERN = re.compile(r" ?(?:\\?%|(?:percent|per cent|pct)(?![A-Za-z]))")
_DOLLAR_WORD_PATTERN = re.compile(r"^ (?:US )?(?:dollars?|USD)(?![A-Za-z])")
_MAX_NUMBER_LENGTH = 1000

# Expressions
# With a decimal point, or without one where it cannot be a sum with Euler's number, as "2e-1" may be.
_EXPONENT_PATTERN = re.compile(
    r"(?<![0-9A-Za-z.])([0-9]*\.[0-9]+|[0-9]+(?=[eE](?:[0-9]|[+-][0-9]{2})))[eE]([+-]?[0-9]{1,3})(?![0-9.])"
)
_FUNCTION_NAME_PATTERN = re.compile(
    r"(?<![A-Za-z\\])(sin|cos|tan|log|ln|exp|pi|sqrt|max|min|infinity|inf|oo)(?![A-Za-z])"
)
_SQRT_CALL_PATTERN = re.compile(r"\\sqrt ?\(([^()]*)\)")
_EXPRESSION_PATTERN = re.compile(
    r"(?:\\(?!(?:boxed|fbox|text|mbox|mathrm|def|input|[bp]?mod|pod|not|[hv]?phantom)(?![A-Za-z]))(?:[A-Za-z]+ ?|[{}%])"
    r"|(?<![A-Za-z])[A-Za-z]{1,3}(?![A-Za-z])|[0-9.,()\[\]{}|&*/^_+<>=!%: -]|\\\\)+"
)
_REFUSED_EXPRESSION_PATTERN = re.compile(
    r"(?<!_)[0-9.}] +[0-9.]|[0-9})]_|\.[0-9]+\.|[0-9]{1001}|[0-9],[0-9]{4}"  # two numbers, a base, not a number
    r"|:(?!=)(?! ?[0-9])|[-+*/^<>_]$|^[-+] ?[-+]"  # a part of an expression
    r"|(?<![A-Za-z\\])(?:not?|nor|but|to|is|of|mod|mil)(?![A-Za-z])|^(?=[A-Za-z ,.]+$).*[A-Za-z]{3}"  # prose
    r"|^[-+]? ?0[.0]* ?[A-Za-z]"  # "0 BC" would be 0
    r"|[0-9] ?\\[dtc]?frac ?\{[0-9 ]+\} ?\{[0-9 ]+\} ?\^|% ?\^"
)


def find_measure_unit(word: str) -> MeasureUnit | None:
    """Return what a word measures, such as "cm", "Dollars" or "degree"; None if it measures nothing."""
    if len(word) <= 2:
        return _UNIT_BY_WORD.get(word)
    lower = word.lower()
    unit = _UNIT_BY_WORD.get(lower)
    if unit is None and lower[-1] == "s" and len(lower) > 3:
        unit = _UNIT_BY_WORD.get(lower[:-1])
    return unit


@lru_cache(maxsize=256)
def find_required_unit(query: str) -> str:
    """Return the one unit of measurement that the last sentence with "?" asks for, such as "dollars" in "how much in
    dollars" or "minutes" in "how many minutes"; empty if it names none or several."""
    sentence = re.split(r"[.!?\n]", query[-2_000:].rpartition("?")[0])[-1]
    units = {
        word.lower() for word in _QUESTION_UNIT_PATTERN.findall(sentence) if find_measure_unit(word)
    }
    return units.pop() if len(units) == 1 else ""


@lru_cache(maxsize=1024)
def parse_answer(text: str) -> AnswerValue | None:
    r"""Read an answer as one value.

    Removes one pair of `$…$`, `\(…\)`, `\boxed{…}`, `\text{…}` or emphasis around the whole, a full stop, and a unit
    after a number. "2 million" is 2,000,000, "70k" 70,000, "1{,}5" 1.5. Returns None if the text is prose, has adjacent
    numbers, or is otherwise more than one value.
    """
    bare_text = strip_formatting(text)
    return _read_number(bare_text) or _read_expression(bare_text)


def fold_full_width(text: str) -> str:
    """Return a text of the same length whose full-width digits, letters and signs ("１８") are ordinary ones.

    The signs "！" and "？" stay: they end a sentence also where no blank follows.
    """
    return text if text.isascii() else text.translate(_FULL_WIDTH_TRANSLATION)


def strip_formatting(text: str) -> str:
    """Return an answer without LaTeX's spacing, and without what may stand around the whole of it."""
    bare_text = _SUPERSCRIPT_PATTERN.sub(
        lambda match: f"^{{{normalize('NFKC', match[0])}}}", fold_full_width(text)
    )
    bare_text = bare_text.translate(_SIGN_TRANSLATION)
    bare_text = _ROOT_SIGN_PATTERN.sub(
        lambda root_match: rf"\sqrt{{{root_match[1]}}}" if root_match[1] else r"\sqrt", bare_text
    )
    bare_text = _LATEX_THOUSANDS_PATTERN.sub(",", bare_text)
    bare_text = _LATEX_COMMA_PATTERN.sub(".", bare_text)
    bare_text = _LAYOUT_COMMAND_PATTERN.sub("", bare_text)
    bare_text = _BLANK_COMMAND_PATTERN.sub("  ", bare_text)  # two blanks: never a mark of thousands
    bare_text = strip_wrappers(bare_text)
    bare_text = _TEXT_COMMAND_PATTERN.sub(lambda group: f" {group[1].strip()}", bare_text)
    bare_text = bare_text.replace(r"\$", "$")
    bare_text = _DEGREES_PATTERN.sub(" degrees ", bare_text)
    return _MINUS_SIGN_PATTERN.sub(r"\1-", " ".join(bare_text.split()))


def strip_wrappers(text: str) -> str:
    r"""Return a text without `$…$`, `\boxed{…}`, quotation marks and emphasis around it, and without a last stop."""
    for _ in range(8):
        unwrapped_text = _unwrap_marks(text.strip())
        if unwrapped_text == text:
            break
        text = unwrapped_text
    return text


def _unwrap_marks(text: str) -> str:
    for opening_mark, closing_mark in (*_DELIMITER_PAIRS, *_QUOTE_PAIRS):
        inner_text = text[len(opening_mark) : -len(closing_mark)]
        has_outer_marks = text.startswith(opening_mark) and text.endswith(closing_mark)
        if has_outer_marks and len(text) > 2 * len(opening_mark):
            # A mark within, or an escaped one at the end: the outer two are no pair.
            are_marks_paired = opening_mark not in inner_text.replace(
                r"\$", ""
            ) and not inner_text.endswith("\\")
            return inner_text if are_marks_paired else text
    wrapper_match = _WRAPPER_COMMAND_PATTERN.fullmatch(text)
    return wrapper_match[1] if wrapper_match else _ANSWER_TAIL_PATTERN.sub("", text)


def _read_number(text: str) -> AnswerValue | None:
    """Read a text as one number with an optional unit: "1,000.50", "$70k", "1 1/2 hours", "50%"."""
    text = _FRACTION_PATTERN.sub(r"\1 \2\3/\4\5", text).strip()
    match = _NUMBER_PATTERN.match(text)
    value = _value_of_number_match(match) if match else None
    if match is None or value is None:
        return None
    percent = _PERCENT_PATTERN.match(text, match.end())
    rest = text[percent.end() if percent else match.end() :]
    read = _read_unit(rest, match["money"] or "", value == 1)
    if read is None or (percent and read != (1, None)):
        return None
    scale, unit = read
    has_decimals = "." in (match["decimal"] or "")
    latex = f"{value * scale}"
    if has_decimals and scale == 1 and not (match["exponent"] or match["power"]):
        sign = match["sign"] or match["inner"] or ""
        latex = f"{sign}{match['decimal']}".replace(",", "")  # as it is written, zeros and all
    if percent:
        latex += r"\%"
    return AnswerValue(latex, value * scale, bool(percent), has_decimals, unit)


def _value_of_number_match(match: re.Match[str]) -> Fraction | None:
    if len(match.group()) > _MAX_NUMBER_LENGTH or (match["sign"] and match["inner"]):
        return None
    if match["top"]:
        numerator = int(match["top"])
        denominator = int(match["bottom"])
        if denominator == 0 or (match["whole"] and numerator >= denominator):
            return None
        value = int(match["whole"] or 0) + Fraction(numerator, denominator)
    else:
        exponent = int(match["exponent"] or match["power"] or 0)
        value = Fraction(match["decimal"].replace(",", "")) * Fraction(10) ** exponent
    return -value if "-" in (match["sign"], match["inner"]) else value


def _read_unit(
    rest: str, currency_prefix: str, is_singular: bool
) -> tuple[int, MeasureUnit | None] | None:
    """Return the scale and the unit in the words after a number; None if they are none.

    They are `[scales] [adjectives] unit [of noun]`, or a rate, `unit per unit`, and "each", "in total" or similar.
    `currency_prefix` is the currency before the number. `is_singular`: the number is 1, so its noun is in the singular.
    """
    phrase = _DOLLAR_WORD_PATTERN.sub("", rest) if "$" in currency_prefix else rest
    match = _UNIT_PHRASE_PATTERN.fullmatch(_UNIT_SEPARATOR_PATTERN.sub(" ", phrase))
    if match is None:
        return None
    spaced_words = " ".join(match["words"].replace("/", " / ").split())
    words = _CLOSING_PHRASE_PATTERN.sub("", f" {spaced_words}").split()
    is_unit_attached = rest[:1].isalpha()
    if words and (currency_prefix or is_unit_attached):
        words[0] = (_MONEY_SCALE_BY_LETTER if currency_prefix else _SCALE_WORD_BY_LETTER).get(
            words[0], words[0]
        )
    scale = 1
    while words and _SCALE_BY_WORD.get(words[0].lower(), 0) > scale:
        scale *= _SCALE_BY_WORD[words.pop(0).lower()]
    if is_unit_attached and scale == 1 and words:
        is_letter = len(words[0]) == 1 and words[0] not in _ATTACHABLE_UNIT_LETTERS
        if is_letter or not find_measure_unit(words[0]):
            return None
    currency = currency_prefix.rstrip(".")
    if currency:
        words.insert(0, currency)
    if not words:
        return None if match["power"] else (scale, None)
    unit = _read_unit_words(words, int(match["power"] or 1), is_singular)
    return unit and (scale, unit)


def _read_unit_words(words: list[str], power: int, is_singular: bool) -> MeasureUnit | None:
    division_indices = (index for index, word in enumerate(words) if word in _DIVISION_WORDS)
    index = next(division_indices, 0)
    if index:  # "$18/hour" is a rate, "18/x" a fraction
        numerator_unit = _read_unit_words(words[:index], 1, is_singular)
        denominator_unit = _read_unit_words(words[index + 1 :], power, True)
        if not numerator_unit or not denominator_unit:
            return None
        return MeasureUnit(
            f"{numerator_unit.dimension} per {denominator_unit.dimension}",
            numerator_unit.size / denominator_unit.size,
        )
    if "of" in words[1:-1]:  # "cups of flour"
        index = words.index("of")
        if all(map(_is_plain_noun, words[index + 1 :])):
            words = words[:index]
    *adjectives, noun = words or [""]
    if adjectives and adjectives[0] in _POWER_BY_WORD and power == 1:
        power = _POWER_BY_WORD[adjectives.pop(0)]
    if len(adjectives) > 2 or not all(map(_is_adjective, adjectives)):
        return None
    if any(map(find_measure_unit, adjectives)):
        return None
    measure = find_measure_unit(noun)
    if measure:
        if adjectives or (power > 1 and measure.dimension not in ("length", "time")):
            return None  # "nautical miles" and "light years" have other sizes
        return (
            measure
            if power == 1
            else MeasureUnit(f"{measure.dimension}^{power}", measure.size**power)
        )
    is_noun = _PLURAL_NOUN_PATTERN.fullmatch(noun) or (
        is_singular and _NOUN_PATTERN.fullmatch(noun)
    )
    is_countable_noun = noun.lower() in _COUNTED_NOUNS or (is_noun and _is_plain_noun(noun))
    return COUNT_UNIT if is_countable_noun and power == 1 else None


def _is_plain_noun(word: str) -> bool:
    return _is_adjective(word) and not _NON_NOUN_PATTERN.fullmatch(word.lower())


def _is_adjective(word: str) -> bool:
    lower = word.lower()
    is_number_word = (
        lower in _NON_UNIT_WORDS
        or lower in _SCALE_BY_WORD
        or re.fullmatch(f"(?:{_ORDINAL_PATTERN})s?", lower)
    )
    return bool(_NOUN_PATTERN.fullmatch(word)) and not is_number_word


def _read_expression(text: str) -> AnswerValue | None:
    bare_text = _FUNCTION_NAME_PATTERN.sub(_to_latex_command, text).strip()
    bare_text = _SQRT_CALL_PATTERN.sub(r"\\sqrt{\1}", bare_text)
    bare_text = _EXPONENT_PATTERN.sub(r"(\1 \\cdot 10^{\2})", bare_text)
    if not _EXPRESSION_PATTERN.fullmatch(bare_text) or _REFUSED_EXPRESSION_PATTERN.search(
        bare_text
    ):
        return None
    return AnswerValue(bare_text)


def _to_latex_command(word: re.Match[str]) -> str:
    name = word[1]
    if name in ("infinity", "inf", "oo"):
        name = "infty"
    return rf"\{name} "
