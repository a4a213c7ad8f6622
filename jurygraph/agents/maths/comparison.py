"""Read an answer as ONE value before any mathematics: any remaining text is a reason to refuse it.

math-verify searches for mathematics inside a text, and gives credit where it should not: it reads "17 1", "18_20" and
"17=18" as 18, "5t" as 5, and it ignores units. So an answer is read here first: a number with an optional unit, whose
sizes are in `measures.toml`, or an expression with nothing around it, which is left to math-verify. Anything else
equals nothing. A library of physics would read "cats" as a pressure and knows neither dollars nor cents.

Nothing here calls sympy, and no part of a text is matched in two ways, so reading takes linear time.

Two answers are compared as numbers, or else by math-verify, which may never return and so runs in a worker process (see
`worker_pool`). No sympy object is ever printed here: that can hang (math-verify issues #50, #55, #65). Only the grammar
of math-verify reads text; its route through Python's `eval` is not used."""

import contextlib
import logging
import re
import resource
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias
from unicodedata import normalize

from jurygraph.agents.worker_pool import WorkerPool


class Unit(NamedTuple):
    """A unit of measurement: its dimension, such as "length", "length^2" or "count", and its size in a base unit."""

    dimension: str
    size: Fraction


COUNT = Unit("count", Fraction(1))
"""What any noun measures that is counted: "eggs" and "pages" are not told apart."""


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer as one value: its LaTeX for math-verify, its unit, and its exact value if it is a plain number.

    `percent`: a percent sign follows the number; `decimal`: it has decimals.
    """

    latex: str
    value: Fraction | None = None
    percent: bool = False
    decimal: bool = False
    unit: Unit | None = None


def _read_toml(name: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(name).read_text("utf-8"))


_UNITS = {
    word: Unit(dimension, Fraction(size))
    for dimension, table in _read_toml("measures.toml").items()
    for words, size in table.items()
    for word in words.split()
}
_WORDS = _read_toml("answer_words.toml")
_SCALES = {f"{word}{ending}": scale for word, scale in _WORDS["scales"].items() for ending in ("", "s")}
_LETTERS: Mapping[str, str] = _WORDS["letters"]
_MONEY_LETTERS = {**_LETTERS, **_WORDS["money_letters"]}
_COUNTED = frozenset(_WORDS["counted"].split())
_NOT_UNITS = frozenset(_WORDS["not_units"].split())

# Units
_CLOSINGS = re.compile(rf" (?:{'|'.join(_WORDS['closings'])})$")
_ORDINAL = r"(?:fif|six|seven|eigh|nin|ten|eleven|twelf|hundred|thousand)th|.*(?:teen|tie|illion)th"
_NO_NOUN = re.compile(rf".*(?:ly|[a-z]{{2}}ed|teens?|illions?|fold|less|ing|wards?|wise)|(?:{_ORDINAL})s?|[ivxlcdm]+")
_PLURAL = re.compile(r"[A-Za-z]?[a-z]{2,}[^sui\W]s")
_NOUN = re.compile(r"[A-Za-z]?[a-z]{2,}")
_PHRASE = re.compile(r"(?P<words>(?: ?[A-Za-z$€£¥₹/][A-Za-z$€£¥₹/ ]{0,80})?)(?: ?\^ ?\{? ?(?P<power>[23]) ?\}?)?")
_JOINT = re.compile(r"(?<=[A-Za-z])(?:-(?=[A-Za-z])|\.(?= |$))")  # "sq. ft."
_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_GLUED = "mgh"  # "18m", but "5s" and "5t" are products
_ASKED = re.compile(r"\b(?:how many(?: more| fewer| total| extra| whole)?|in) ([a-z]{2,12})\b", re.IGNORECASE)

# Numbers
_SIGNS = str.maketrans(_WORDS["signs"])
_MINUS = re.compile(r"(^|[=(,\[{]) ?–|^(?i:minus|negative) (?=[0-9.\\$])")  # elsewhere a dash marks a range
_POWER = re.compile("⁻[⁰¹²³⁴⁵⁶⁷⁸⁹]+|[⁰¹²³⁴⁵⁶⁷⁸⁹]{2,}")  # of one digit by `signs`
_ROOT = re.compile(r"√ ?(?:([0-9]+)(?![0-9]|\.[0-9])|(?=\())")
_LATEX_THOUSANDS = re.compile(r"(?<=[0-9])(?:\{,\}|,?\\[,!])(?=[0-9]{3}(?![0-9]))")
_LATEX_COMMA = re.compile(r"(?<=[0-9])\{,\}(?=[0-9])")
_SPACING = re.compile(r"\\(?:left|right|displaystyle)(?![A-Za-z])")
_BLANK = re.compile(r"\\(?:quad|qquad)(?![A-Za-z])|\\[,;:! ]|~")
_WRAPPER = re.compile(
    r"\\(?:boxed|fbox|text|mathrm|mathbf|textbf|mbox|mathit|textit) ?\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}"
)
_PAIRS = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("**", "**"), ("`", "`"))
_GROUP = re.compile(r"\\(?:text|mathrm|mbox|textbf|mathbf|textit|mathit) ?\{([A-Za-z /.-]*)\}")
_DEGREES = re.compile(r"\^ ?\{? ?\\circ ?\}?|\\degrees?(?![A-Za-z])")
_CURRENCY = r"(?:US|CA|AU|C|A)?\$|[£€¥₹]|USD|EUR|GBP|INR|JPY|CHF|Rs\.?"
_INTEGER = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)"
_NUMBER = re.compile(
    rf"(?P<sign>[+-]?) ?(?:(?P<money>{_CURRENCY}) ?(?P<inner>[+-]?))?"
    r"(?:(?:(?P<whole>[0-9]+) )?(?P<top>[0-9]+) ?/ ?(?P<bottom>[0-9]+)"
    rf"|(?P<decimal>(?:{_INTEGER}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{{1,3}}(?![0-9A-Za-z]))?))(?![0-9.,])",
    re.ASCII,
)
_FRACTION = re.compile(r"^([+-]? ?[0-9]*) ?\\[dtc]?frac ?\{ ?([0-9]+) ?\} ?\{ ?([0-9]+) ?\}")
_PERCENT = re.compile(r" ?(?:\\?%|(?:percent|per cent|pct)(?![A-Za-z]))")
_DOLLARS = re.compile(r"^ (?:US )?(?:dollars?|USD)(?![A-Za-z])")
_LONGEST_NUMBER = 1000

# Expressions
_FUNCTIONS = re.compile(r"(?<![A-Za-z\\])(sin|cos|tan|log|ln|exp|pi|sqrt|max|min|infinity|inf|oo)(?![A-Za-z])")
_SQRT_CALL = re.compile(r"\\sqrt ?\(([^()]*)\)")
_EXPRESSION = re.compile(
    r"(?:\\(?!(?:boxed|fbox|text|mbox|mathrm|def|input|[bp]?mod|pod)(?![A-Za-z]))(?:[A-Za-z]+ ?|[{}%])"
    r"|(?<![A-Za-z])[A-Za-z]{1,3}(?![A-Za-z])|[0-9.,()\[\]{}|&*/^_+<>=!%: -]|\\\\)+"
)
_REFUSED = re.compile(
    r"(?<!_)[0-9.}] +[0-9.]|[0-9})]_|\.[0-9]+\.|[0-9]{1001}|[0-9],[0-9]{4}"  # two numbers, a base, not a number
    r"|:(?!=)(?! ?[0-9])|[-+*/^<>_]$|^[-+] ?[-+]"  # a part of an expression
    r"|(?<![A-Za-z\\])(?:not?|nor|but|to|is|of|mod|mil)(?![A-Za-z])|^(?=[A-Za-z ,.]+$).*[A-Za-z]{3}"  # prose
    r"|^[-+]? ?0[.0]* ?[A-Za-z]"  # "0 BC" would be 0
    r"|[0-9] ?\\[dtc]?frac ?\{[0-9 ]+\} ?\{[0-9 ]+\} ?\^|% ?\^"
)
_EQUALS = re.compile(r"(?:(?<![<>!:\\])=|\\approx(?![A-Za-z]))(?![^{}]*\})")
_ALTERNATIVES = re.compile(r",|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])")
_SYMBOL = re.compile(r" ?\\?[A-Za-z]{1,7}(?:_\{?[A-Za-z0-9]{1,3}\}?)? ?(?:\( ?[A-Za-z] ?\))? ?$")


def measure_of(word: str) -> Unit | None:
    """Return what a word measures, such as "cm", "Dollars" or "degree"; None if it measures nothing."""
    if len(word) <= 2:
        return _UNITS.get(word)
    lower = word.lower()
    return _UNITS.get(lower) or (_UNITS.get(lower[:-1]) if lower[-1] == "s" and len(lower) > 3 else None)


@lru_cache(maxsize=256)
def required_unit(query: str) -> str:
    """Return the one unit of measurement that the last sentence with "?" asks for, such as "dollars" in "how much in
    dollars" or "minutes" in "how many minutes"; empty if it names none or several."""
    sentence = re.split(r"[.!?\n]", query[-2_000:].rpartition("?")[0])[-1]
    units = {word.lower() for word in _ASKED.findall(sentence) if measure_of(word)}
    return units.pop() if len(units) == 1 else ""


@lru_cache(maxsize=1024)
def parse_answer(text: str) -> Reading | None:
    r"""Read an answer as one value.

    Removes one pair of `$…$`, `\(…\)`, `\boxed{…}`, `\text{…}` or emphasis around the whole, a full stop, and a unit
    after a number. "2 million" is 2,000,000, "70k" 70,000, "1{,}5" 1.5. Returns None if the text is prose, has adjacent
    numbers, or is otherwise more than one value.
    """
    bare = _strip_formatting(text)
    return _read_number(bare) or _read_expression(bare)


def _strip_formatting(text: str) -> str:
    bare = _POWER.sub(lambda power: f"^{{{normalize('NFKC', power.group())}}}", text)
    bare = _ROOT.sub(lambda root: rf"\sqrt{{{root[1]}}}" if root[1] else r"\sqrt", bare.translate(_SIGNS))
    bare = _LATEX_COMMA.sub(".", _LATEX_THOUSANDS.sub(",", bare))
    bare = _BLANK.sub("  ", _SPACING.sub("", bare))  # two blanks: never a mark of thousands
    for _ in range(8):
        shorter = _unwrap(bare.strip())
        if shorter == bare:
            break
        bare = shorter
    bare = _GROUP.sub(lambda group: f" {group[1].strip()}", bare)
    bare = _DEGREES.sub(" degrees ", bare.replace(r"\$", "$")).strip()
    return _MINUS.sub(r"\1-", " ".join(bare.split()))


def _unwrap(text: str) -> str:
    for mark_open, mark_close in _PAIRS:
        inner = text[len(mark_open) : -len(mark_close)]
        if len(text) > 2 * len(mark_open) and text.startswith(mark_open) and text.endswith(mark_close):
            return text if mark_open in inner.replace(r"\$", "") or inner.endswith("\\") else inner
    wrapper = _WRAPPER.fullmatch(text)
    return wrapper[1] if wrapper else text.removesuffix(".")


def _read_number(text: str) -> Reading | None:
    """Read a text as one number with an optional unit: "1,000.50", "$70k", "1 1/2 hours", "50%"."""
    text = _FRACTION.sub(r"\1 \2/\3", text).strip()
    match = _NUMBER.match(text)
    value = _value(match) if match else None
    if match is None or value is None:
        return None
    percent = _PERCENT.match(text, match.end())
    read = _read_unit(text[percent.end() if percent else match.end() :], match["money"] or "", value == 1)
    if read is None or (percent and read != (1, None)):
        return None
    scale, unit = read
    has_decimals = "." in (match["decimal"] or "")
    as_written = f"{match['sign'] or match['inner'] or ''}{match['decimal']}".replace(",", "")
    latex = (as_written if has_decimals and scale == 1 else f"{value * scale}") + (r"\%" if percent else "")
    return Reading(latex, value * scale, bool(percent), has_decimals, unit)


def _value(match: re.Match[str]) -> Fraction | None:
    if len(match.group()) > _LONGEST_NUMBER or (match["sign"] and match["inner"]):
        return None
    if match["top"]:
        top = int(match["top"])
        bottom = int(match["bottom"])
        if bottom == 0 or (match["whole"] and top >= bottom):
            return None
        value = int(match["whole"] or 0) + Fraction(top, bottom)
    else:
        value = Fraction(match["decimal"].replace(",", ""))
    return -value if "-" in (match["sign"], match["inner"]) else value


def _read_unit(rest: str, money: str, is_one: bool) -> tuple[int, Unit | None] | None:
    """Return the scale and the unit in the words after a number; None if they are none.

    They are `[scales] [adjectives] unit [of noun]`, or a rate, `unit per unit`, and "each", "in total" or similar.
    `money` is the currency before the number. `is_one`: the number is 1, so its noun is in the singular.
    """
    match = _PHRASE.fullmatch(_JOINT.sub(" ", _DOLLARS.sub("", rest) if "$" in money else rest))
    if match is None:
        return None
    words = _CLOSINGS.sub("", f" {' '.join(match['words'].replace('/', ' / ').split())}").split()
    is_glued = rest[:1].isalpha()
    if words and (money or is_glued):
        words[0] = (_MONEY_LETTERS if money else _LETTERS).get(words[0], words[0])
    scale = 1
    while words and _SCALES.get(words[0].lower(), 0) > scale:
        scale *= _SCALES[words.pop(0).lower()]
    if is_glued and scale == 1 and words and not (measure_of(words[0]) and (words[0] in _GLUED or len(words[0]) > 1)):
        return None
    words = [*filter(None, [money.rstrip(".")]), *words]
    if not words:
        return None if match["power"] else (scale, None)
    unit = _read_noun(words, int(match["power"] or 1), is_one)
    return unit and (scale, unit)


def _read_noun(words: list[str], power: int, is_one: bool) -> Unit | None:
    place = next((place for place, word in enumerate(words) if word in ("/", "per", "a", "an", "every")), 0)
    if place:  # "$18/hour" is a rate, "18/x" a fraction
        top = _read_noun(words[:place], 1, is_one)
        bottom = _read_noun(words[place + 1 :], power, True)
        return Unit(f"{top.dimension} per {bottom.dimension}", top.size / bottom.size) if top and bottom else None
    if "of" in words[1:-1] and all(map(_is_plain, words[words.index("of") + 1 :])):  # "cups of flour"
        words = words[: words.index("of")]
    *adjectives, noun = words or [""]
    if adjectives and adjectives[0] in _POWERS and power == 1:
        power = _POWERS[adjectives.pop(0)]
    if len(adjectives) > 2 or not all(_is_adjective(word) and not measure_of(word) for word in adjectives):
        return None
    measure = measure_of(noun)
    if measure:
        if adjectives or (power > 1 and measure.dimension not in ("length", "time")):
            return None  # "nautical miles" and "light years" have other sizes
        return measure if power == 1 else Unit(f"{measure.dimension}^{power}", measure.size**power)
    is_noun = _PLURAL.fullmatch(noun) or (is_one and _NOUN.fullmatch(noun))
    is_counted = noun.lower() in _COUNTED or (is_noun and _is_plain(noun))
    return COUNT if is_counted and power == 1 else None


def _is_plain(word: str) -> bool:
    return _is_adjective(word) and not _NO_NOUN.fullmatch(word.lower())


def _is_adjective(word: str) -> bool:
    lower = word.lower()
    is_number = lower in _NOT_UNITS or lower in _SCALES or re.fullmatch(f"(?:{_ORDINAL})s?", lower)
    return bool(_NOUN.fullmatch(word)) and not is_number


def _read_expression(text: str) -> Reading | None:
    bare = _FUNCTIONS.sub(lambda word: rf"\{'infty' if word[1] in ('infinity', 'inf', 'oo') else word[1]} ", text)
    bare = _SQRT_CALL.sub(r"\\sqrt{\1}", bare.strip())
    return Reading(bare) if _EXPRESSION.fullmatch(bare) and not _REFUSED.search(bare) else None


def compare_plainly(answer: Reading, reference: Reading) -> bool | None:
    """Return true if two answers are equal numbers; None if one is another expression, which math-verify compares.

    Units of one dimension are converted; of two, they make the answers different, and so do "%" and a unit. If one has
    no unit, the number decides.
    """
    ratio = Fraction(1)
    if answer.unit and reference.unit:
        if answer.unit.dimension != reference.unit.dimension:
            return False
        ratio = answer.unit.size / reference.unit.size
    if answer.value is None or reference.value is None:
        return None
    if answer.percent != reference.percent and (answer.unit or reference.unit):
        return False
    return are_equal_numbers(replace(answer, value=answer.value * ratio), reference)


def are_equal_numbers(answer: Reading, reference: Reading) -> bool:
    """Return true if two plain numbers are equal, whatever their units; "50%" equals both "0.5" and "50".

    Whole numbers and fractions are compared exactly. If one has decimals, both must agree when rounded to six
    (math-verify's rule) and also to a relative 1e-6, so that nothing small equals 0.
    """
    a = answer.value
    b = reference.value
    assert a is not None, "a plain number"
    assert b is not None, "a plain number"
    pairs = [(a, b)]
    if answer.percent != reference.percent:
        pairs.append((a / 100, b) if answer.percent else (a, b / 100))
    has_decimals = answer.decimal or reference.decimal
    return any(
        a == b or (has_decimals and round(a, 6) == round(b, 6) and abs(a - b) <= max(abs(a), abs(b)) / 10**6)
        for a, b in pairs
    )


def claimed_expressions(answer: str, reference: str) -> list[str]:
    """Return the LaTeX expressions that must all equal `reference` for `answer` to be right.

    An answer "3+15 = 18" claims 3+15 and 18, "x = 18" only 18, "17 = 18" both 17 and 18; "x=17 or x=18" claims the set
    of both. math-verify alone compares the last of them. Empty if the equations do not make a single claim.
    """
    if (":" in answer) != (":" in reference):  # math-verify divides, so that "18:1" would be 18
        return []
    values = [_EQUALS.split(value) for value in _ALTERNATIVES.split(answer)]
    if len(values) > 1 and all(len(value) == 2 and _SYMBOL.match(value[0]) for value in values):
        return [answer] if _EQUALS.search(reference) else [",".join(value[1] for value in values)]
    sides = _EQUALS.split(answer)
    if len(sides) == 1:
        return [answer]
    if not all(side.strip() for side in sides):
        return []
    if _EQUALS.search(reference):
        return [answer] if len(sides) == 2 else []
    return sides[1:] if _SYMBOL.match(sides[0]) else sides


Status: TypeAlias = Literal["equal", "different", "unparsed-answer", "unparsed-reference"]
"""`equal` and `different` are judgements; else that side does not read as one value, the reference being read first."""

MEMORY_LIMIT = 4 * 2**30  # bytes of address space
TEXT_LIMIT = 10_000  # characters of an answer or a reference


def comparison_pool(time_limit: float = 2.0, workers: int = 1) -> WorkerPool:
    """Return processes in which `call` compares as `compare` does, each comparison limited to `time_limit` seconds."""
    return WorkerPool("maths", f"{__name__}:prepare", time_limit=time_limit, workers=workers)


def prepare(setup: None) -> Callable[[str, str, str], Status]:
    """Limit the memory of this worker process, and return the function that compares two answers."""
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        bound = MEMORY_LIMIT if hard == resource.RLIM_INFINITY else min(MEMORY_LIMIT, hard)
        resource.setrlimit(resource.RLIMIT_AS, (bound, hard))
    logging.disable(logging.CRITICAL)
    for answer, reference in (("x+1", "1+x"), (r"\frac{1}{2}x", "0.5x"), ("(1,2)", "[1,2]"), (r"\sqrt{2}", "1.414")):
        compare(answer, reference)  # the first comparison builds tables for longer than the time limit
    return compare


def compare(answer: str, reference: str, unit: str = "") -> Status:
    """Compare two answers; import math-verify unless `compare_numbers` suffices. It may never return.

    `unit` is that which the question asks for, such as "dollars": that of a reference without one, if the answer
    has another of its dimension. Answer and reference are not interchangeable, since math-verify is not symmetric.
    Raises MemoryError or RecursionError beyond the limits of this process.
    """
    known = compare_numbers(answer, reference, unit)
    if known is not None:
        return known
    claimed = parse_answer(answer)
    gold = parse_answer(reference)
    assert claimed, "an answer that does not read as one value is known"
    assert gold, "and so is such a reference"
    return _compare_expressions(claimed, gold)


def compare_numbers(answer: str, reference: str, unit: str = "") -> Status | None:
    """Compare two answers unless that takes mathematics: equal texts, plain numbers, what does not read as one value.

    Returns None for any other expression. Takes time proportional to the texts.
    """
    if _fold(answer) and _fold(answer) == _fold(reference):
        return "equal"
    claimed = parse_answer(answer)
    gold = parse_answer(reference)
    if gold is None:
        return "unparsed-reference"
    if claimed is None:
        return "unparsed-answer"
    wanted = measure_of(unit) if unit else None
    if wanted and claimed.unit and not gold.unit and claimed.unit.dimension == wanted.dimension:
        gold = replace(gold, unit=wanted)
    is_equal = compare_plainly(claimed, gold)
    return None if is_equal is None else "equal" if is_equal else "different"


def _fold(text: str) -> str:
    return " ".join(text.replace("=", " = ").split()).casefold()


def _compare_expressions(answer: Reading, reference: Reading) -> Status:
    from math_verify import verify

    gold = _parse(reference.latex)
    if gold is None:
        return "unparsed-reference"
    claims = [_parse(expression) for expression in claimed_expressions(answer.latex, reference.latex)]
    if not claims or any(claim is None for claim in claims):
        return "unparsed-answer"
    try:
        is_equal = all(verify(gold, claim, timeout_seconds=None, raise_on_error=True) for claim in claims)
    except (MemoryError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 - sympy raises anything if two objects are not comparable: then they differ
        is_equal = False
    return "equal" if is_equal else "different"


@lru_cache(maxsize=256)
def _parse(latex: str) -> Any:
    """Return the one sympy object that `latex` as a whole represents; None if it represents none, or no number."""
    from latex2sympy2_extended import NormalizationConfig
    from math_verify import LatexExtractionConfig, parse
    from math_verify.grader import nan, zoo

    # Without math-verify's removal of units, which reads "5t" as 5: `parse_answer` removes them.
    options = NormalizationConfig(basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="none")
    extraction = [LatexExtractionConfig(boxed_match_priority=-1, normalization_config=options)]
    expressions = parse(f"${latex}$", extraction, fallback_mode="no_fallback", parsing_timeout=None)
    is_value = len(expressions) == 1 and expressions[0] is not nan and expressions[0] is not zoo
    return expressions[0] if is_value else None
