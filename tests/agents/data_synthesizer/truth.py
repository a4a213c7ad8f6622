"""Judge if a changed solution of a GSM8K problem is no longer true, without sharing code with the package.

It is made of the standard library alone, and of what each kind of change is said to be; it has read no code that makes
such changes. Where it cannot tell, it says no.
"""

import re
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from fractions import Fraction
from itertools import pairwise

KINDS = ("number", "step", "answer", "negation", "unit", "entity")

NUMERAL = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d*\.\d+|\d+"
ANNOTATION = re.compile(r"<<([^<>]*)>>")
ANSWER_LINE = re.compile(rf"\s*A:\s*(-?)\s*\$?\s*({NUMERAL})")


def changes_truth(query: str, reference: str, original: str, variant: str, kind: str) -> bool:
    """Return true if `original`, a right solution, is true and `variant` is not, by a change of this kind alone.

    Args:
        query: the problem.
        reference: the reference solution, which ends in a line like "A: 18".
        original: the solution, whose answer is the reference's.
        variant: the solution after the change.
        kind: one of `KINDS`.

    Raises:
        ValueError: another kind.
    """
    judges: dict[str, Callable[[str, str, str, str], bool]] = {
        "number": _number,
        "step": _step,
        "answer": _answer,
        "negation": _negation,
        "unit": _unit,
        "entity": _entity,
    }
    if kind not in judges:
        raise ValueError(f"there is no kind {kind!r}; the kinds are {', '.join(KINDS)}")
    truth = answer_of(reference)
    if truth is None or answer_of(original) != truth or original == variant:
        return False
    return judges[kind](query, reference, original, variant)


def value_of(numeral: str) -> Fraction:
    return Fraction(numeral.replace(",", "").rstrip("%"))


def numbers_in(text: str) -> list[Fraction]:
    return [value_of(found) for found in re.findall(NUMERAL, text)]


def answer_line(lines: list[str]) -> int | None:
    """Return the index of the last line that gives an answer."""
    return next((place for place in reversed(range(len(lines))) if ANSWER_LINE.match(lines[place])), None)


def answer_of(text: str) -> Fraction | None:
    lines = text.split("\n")
    place = answer_line(lines)
    found = None if place is None else ANSWER_LINE.match(lines[place])
    return None if found is None else value_of(found[2]) * (-1 if found[1] else 1)


# --- equations -------------------------------------------------------------------------------------------------------

TOKEN = re.compile(
    rf"(?P<number>{NUMERAL})|(?P<sign>[-+*/()=%×÷·−])|(?P<word>[^\W\d_]+)|(?P<money>[$€£])|(?P<other>\S)"
)
BROKEN_OFF = [[], ["+"], ["-"], ["*"], ["/"]]
"""How a left side begins of which words have cut off a part: in "9 hours * 2 = 18" it is "* 2"."""
SIGNS = {"×": "*", "·": "*", "÷": "/", "−": "-"}


def equations(line: str) -> list[tuple[list[str], str]]:
    """The equations of a line, annotated ones first: a left side with an operator as tokens, and one number."""
    found = [one for inside in ANNOTATION.findall(line) for one in _equations_in(inside)]
    plain = re.sub(r"^\s*[-*•]\s+", "", ANNOTATION.sub("", line))
    return [*found, *_equations_in(plain)]


def _equations_in(text: str) -> Iterator[tuple[list[str], str]]:
    for run in _runs(text):
        for left, right in pairwise(_split(run, "=")):
            claimed = _parse_number(right)
            if claimed is not None and left[:1] not in BROKEN_OFF and any(token in "+-*/" for token in left):
                yield left, claimed


def _runs(text: str) -> Iterator[list[str]]:
    """Unbroken runs of numbers and signs; a lone x between them multiplies."""
    run: list[str] = []
    for found in TOKEN.finditer(text):
        token = SIGNS.get(found[0], found[0])
        if found.lastgroup in ("number", "sign"):
            run.append(token)
        elif found.lastgroup == "word" and token in ("x", "X") and run:
            run.append("*")
        elif found.lastgroup != "money":
            yield run
            run = []
    yield run


def _split(tokens: list[str], sign: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token == sign:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _parse_number(tokens: list[str]) -> str | None:
    """The one number that a side is, as in "-5" or "50%"; None where it is an expression. "15 / hour" states 15."""
    while tokens and tokens[-1] in "+-*/(":
        tokens = tokens[:-1]
    side = " ".join(tokens)
    return side.replace(" ", "") if re.fullmatch(rf"(?:- )?(?:{NUMERAL})(?: %)?", side) else None


FLOATING = Fraction(1, 10**9)
"""Who calculates in floating point writes 14.999999999999998 for 15."""


def is_true_equation(left: list[str], claimed: str) -> bool | None:
    """Return true if a left side equals the claimed number, rounded to its decimals; None if it is no expression.

    A percentage is a hundredth or a number of its own, on either side: any reading will do.
    """
    values = [value for percent in (Fraction(1, 100), Fraction(1)) if (value := _evaluate(left, percent)) is not None]
    if not values:
        return None
    decimals = len(claimed.rstrip("%").partition(".")[2])
    target, near = value_of(claimed), Fraction(1, 2 * 10**decimals) + FLOATING
    scales = (1, 100) if "%" in [*left, claimed[-1]] else (1,)
    return any(abs(value * scale - target) <= near for value in values for scale in scales)


class _NoExpression(Exception):
    pass


def _evaluate(tokens: list[str], percent: Fraction) -> Fraction | None:
    rest = list(tokens)
    try:
        value = _sum(rest, percent)
    except (_NoExpression, ZeroDivisionError):
        return None
    return None if rest else value


def _sum(rest: list[str], percent: Fraction) -> Fraction:
    value = _product(rest, percent)
    while rest and rest[0] in "+-":
        sign = rest.pop(0)
        other = _product(rest, percent)
        value = value + other if sign == "+" else value - other
    return value


def _product(rest: list[str], percent: Fraction) -> Fraction:
    value = _factor(rest, percent)
    while rest and (rest[0] in "*/" or rest[0] == "("):
        sign = "*" if rest[0] == "(" else rest.pop(0)
        other = _factor(rest, percent)
        value = value * other if sign == "*" else value / other
    return value


def _factor(rest: list[str], percent: Fraction) -> Fraction:
    if not rest:
        raise _NoExpression
    token = rest.pop(0)
    if token == "-":
        return -_factor(rest, percent)
    if token == "(":
        value = _sum(rest, percent)
        if not rest or rest.pop(0) != ")":
            raise _NoExpression
    elif token[-1].isdigit():
        value = value_of(token)
    else:
        raise _NoExpression
    while rest and rest[0] == "%":
        rest.pop(0)
        value *= percent
    return value


def equation_truths(line: str) -> list[bool | None]:
    return [is_true_equation(left, claimed) for left, claimed in equations(line)]


# --- number and answer -----------------------------------------------------------------------------------------------


def _changed_numerals(original: str, variant: str) -> list[tuple[re.Match[str], re.Match[str]]] | None:
    """The numerals that differ; None where something else does."""
    numerals = re.compile(NUMERAL)
    if numerals.sub("#", original) != numerals.sub("#", variant):
        return None
    both = zip(numerals.finditer(original), numerals.finditer(variant), strict=True)
    return [(old, new) for old, new in both if old[0] != new[0]]


def _number(query: str, reference: str, original: str, variant: str) -> bool:
    numerals_changed = _changed_numerals(original, variant)
    if (
        not numerals_changed
        or len(numerals_changed) > 2
        or len({(value_of(old[0]), value_of(new[0])) for old, new in numerals_changed}) > 1
    ):
        return False
    if len(numerals_changed) == 2 and not _is_repetition(
        original, numerals_changed[0][0].start(), numerals_changed[1][0].start()
    ):
        return False
    before, after = (
        [one for line in text.split("\n") for one in equation_truths(line)] for text in (original, variant)
    )
    if len(before) != len(after):
        return False
    return any(was is True and now is False for was, now in zip(before, after, strict=True))


def _is_repetition(text: str, first: int, second: int) -> bool:
    """Return true if two places are in one line, and exactly one of them in an annotation."""
    inside = [any(one.start() < place < one.end() for one in ANNOTATION.finditer(text)) for place in (first, second)]
    return "\n" not in text[first:second] and inside[0] != inside[1]


def _answer(query: str, reference: str, original: str, variant: str) -> bool:
    numerals_changed = _changed_numerals(original, variant)
    if numerals_changed is None or len(numerals_changed) != 1:
        return False
    lines = original.split("\n")
    place = answer_line(lines)
    touched = original[: numerals_changed[0][0].start()].count("\n")
    given = answer_of(variant)
    return place == touched and given is not None and given != answer_of(reference)


# --- step ------------------------------------------------------------------------------------------------------------

WORDS = {
    **{word: value for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen".split()
    )},
    **{word: 10 * value for value, word in enumerate(
        "twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2
    )},
    "once": 1, "twice": 2, "thrice": 3, "double": 2, "doubled": 2, "triple": 3, "tripled": 3, "quadruple": 4,
    "couple": 2, "pair": 2, "both": 2, "dozen": 12, "score": 20, "single": 1,
}  # fmt: skip
PARTS = {"half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4, "fourths": 4,
         "fifth": 5, "fifths": 5, "sixth": 6, "sixths": 6, "eighth": 8, "tenth": 10, "tenths": 10}  # fmt: skip
SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000}


def known_numbers(query: str) -> set[Fraction]:
    """Every number of the question: in digits, in words alone and put together, and percentages as shares too."""
    known = set(numbers_in(query))
    known |= {value_of(found) / 100 for found in re.findall(rf"({NUMERAL})\s*(?:%|percent)", query)}
    known |= {value_of(one) / value_of(other) for one, other in re.findall(r"(\d+)\s*/\s*(\d+)", query) if int(other)}
    known |= {
        value_of(found) * SCALES[word] for found, word in re.findall(rf"({NUMERAL})\s+({'|'.join(SCALES)})", query)
    }
    return known | set(_in_words(re.findall(r"[a-z]+", query.lower())))


def _in_words(words: list[str]) -> Iterator[Fraction]:
    """The values of number words, and of each run of them: "two hundred and five" gives 2, 200, 5 and 205."""
    total = current = Fraction(0)
    for word in words:
        if word in WORDS:
            yield Fraction(WORDS[word])
            current += WORDS[word]
        elif word in SCALES:
            scaled = (current or Fraction(1)) * SCALES[word]
            yield scaled
            total, current = (total, scaled) if SCALES[word] == 100 else (total + scaled, Fraction(0))
        elif word in PARTS:
            yield Fraction(1, PARTS[word])
            yield Fraction(PARTS[word])
            if current:
                yield current / PARTS[word]
            total = current = Fraction(0)
        elif word != "and":
            total = current = Fraction(0)
        yield total + current


def _step(query: str, reference: str, original: str, variant: str) -> bool:
    lines, left = original.split("\n"), variant.split("\n")
    last = answer_line(lines)
    if last is None:
        return False
    dropped = [place for place in range(last) if lines[:place] + lines[place + 1 :] == left]
    return any(_is_needed(query, lines, place, last) for place in dropped)


def _is_needed(query: str, lines: list[str], dropped: int, last: int) -> bool:
    """Return true if a line's result is used later, and available nowhere else."""
    results = {abs(value_of(claimed)) for _, claimed in equations(lines[dropped])} - known_numbers(query)
    for place in range(dropped + 1, last + 1):
        earlier = {value for at in range(place) if at != dropped for value in numbers_in(lines[at])}
        used = set(numbers_in(lines[place])) if place == last else _used_numbers(lines[place])
        if (results - earlier) & used:
            return True
    return False


def _used_numbers(line: str) -> set[Fraction]:
    """The numbers of a line but for those that it computes itself."""
    used = {value for inside in ANNOTATION.findall(line) for value in numbers_in(inside.rpartition("=")[0])}
    plain = re.sub(rf"(?:=\s*)?\$?\s*<<[^<>]*>>\s*\$?\s*(?:{NUMERAL})?", " = ; ", line)
    plain = re.sub(rf"=\s*-?\s*\$?\s*(?:{NUMERAL})(?!\s*%?\s*[-+*/×÷]\s*[\d$(])", " ; ", plain)
    return used | set(numbers_in(plain))


# --- negation --------------------------------------------------------------------------------------------------------

AUXILIARIES = (
    "am is are was were be been being do does did have has had can could will would shall should may might must".split()
)
CONTRACTED = {"can": "can't", "will": "won't", "shall": "shan't"}
AUXILIARY = re.compile(
    rf"\b(?:{'|'.join(AUXILIARIES)})\b|(?<=\bit)['’]s\b|(?<=\bhe)['’]s\b|(?<=\bthat)['’]s\b|(?<=\bthere)['’]s\b",
    re.IGNORECASE,
)
NEGATED_NEXT = re.compile(r"['’]t\b|not\b|\s+(?:not|no|never)\b", re.IGNORECASE)
NEGATED_BEFORE = re.compile(r"\b(?:not|no|never)\s+$", re.IGNORECASE)


SUPPOSED = re.compile(r"\b(?:if|whether|unless)\b(?:(?!\bthen\b)[^,.;:])*$", re.IGNORECASE)


def _negation(query: str, reference: str, original: str, variant: str) -> bool:
    lines, after = original.split("\n"), variant.split("\n")
    if len(lines) != len(after):
        return False
    touched = [place for place, (old, new) in enumerate(zip(lines, after, strict=True)) if old != new]
    if len(touched) != 1 or not _states_a_result(reference, lines, touched[0]):
        return False
    return after[touched[0]] in set(_negations(lines[touched[0]]))


def _states_a_result(reference: str, lines: list[str], place: int) -> bool:
    """Return true if a line has a true equation and no false one, or repeats an earlier result or the answer."""
    line = lines[place]
    if line.rstrip().endswith("?"):
        return False
    own = equation_truths(line)
    if own:
        return True in own and False not in own
    above = [one for earlier in lines[:place] for one in equations(earlier)]
    given = {abs(value_of(claimed)) for left, claimed in above if is_true_equation(left, claimed)}
    truth = answer_of(reference)
    return bool(set(numbers_in(line)) & (given | ({abs(truth)} if truth is not None else set())))


def _negations(line: str) -> Iterator[str]:
    """The line with one negation beside one auxiliary, in every way there is.

    One that is negated already is left alone, and one that is only supposed: "if she has 6" states nothing of her.
    """
    for found in AUXILIARY.finditer(line):
        head, verb, tail = line[: found.start()], found[0], line[found.end() :]
        if NEGATED_NEXT.match(tail) or NEGATED_BEFORE.search(head) or SUPPOSED.search(head):
            continue
        for word in ("not", "no"):
            yield f"{head}{verb} {word}{tail}"
            yield f"{head}{word} {verb}{tail}"
        contracted = CONTRACTED.get(verb.lower(), f"{verb.lower()}n't")
        for mark in ("'", "’"):
            yield head + verb[0] + contracted[1:].replace("'", mark) + tail
        if verb.lower() == "can":
            yield f"{head}{verb}not{tail}"


# --- unit ------------------------------------------------------------------------------------------------------------

SIZES: dict[str, dict[str, Fraction]] = {
    "money": {"dollar": Fraction(1), "cent": Fraction(1, 100), "penny": Fraction(1, 100), "nickel": Fraction(1, 20),
              "dime": Fraction(1, 10), "buck": Fraction(1)},
    "euro": {"euro": Fraction(1)}, "yen": {"yen": Fraction(1)},
    "time": {"second": Fraction(1), "sec": Fraction(1), "minute": Fraction(60), "min": Fraction(60),
             "hour": Fraction(3600), "hr": Fraction(3600), "day": Fraction(86400), "week": Fraction(604800),
             "fortnight": Fraction(1209600), "month": Fraction(2629746), "year": Fraction(31556952),
             "decade": Fraction(315569520), "century": Fraction(3155695200)},
    "length": {"inch": Fraction(254, 10000), "foot": Fraction(3048, 10000), "ft": Fraction(3048, 10000),
               "yard": Fraction(9144, 10000), "mile": Fraction(1609344, 1000), "mm": Fraction(1, 1000),
               "millimeter": Fraction(1, 1000), "cm": Fraction(1, 100), "centimeter": Fraction(1, 100),
               "m": Fraction(1), "meter": Fraction(1), "metre": Fraction(1), "km": Fraction(1000),
               "kilometer": Fraction(1000), "kilometre": Fraction(1000)},
    "mass": {"ounce": Fraction(28349523, 1000000), "oz": Fraction(28349523, 1000000),
             "pound": Fraction(45359237, 100000), "lb": Fraction(45359237, 100000), "ton": Fraction(907184740, 1000),
             "g": Fraction(1), "gram": Fraction(1), "kg": Fraction(1000), "kilogram": Fraction(1000),
             "mg": Fraction(1, 1000), "milligram": Fraction(1, 1000)},
    "volume": {"teaspoon": Fraction(1), "tablespoon": Fraction(3), "cup": Fraction(48), "pint": Fraction(96),
               "quart": Fraction(192), "gallon": Fraction(768), "ml": Fraction(2029, 10000),
               "milliliter": Fraction(2029, 10000), "liter": Fraction(2029, 10), "litre": Fraction(2029, 10)},
    "share": {"percent": Fraction(1), "%": Fraction(1)},
}  # fmt: skip
DIMENSION = {unit: (dimension, size) for dimension, units in SIZES.items() for unit, size in units.items()}
IRREGULAR = {"feet": "foot", "inches": "inch", "pennies": "penny", "centuries": "century", "lbs": "lb", "hrs": "hr"}
SIGN_NAMES = {"$": "dollars", "€": "euros", "£": "pounds", "¥": "yen", "¢": "cents", "%": "percent"}
NO_THINGS = {"times", "plus", "minus", "less", "is", "was", "as", "has", "more", "fewer", "equals", "makes", "leaves"}
PIECE = re.compile(rf"\s+|{NUMERAL}|[^\W\d_]+|.", re.DOTALL)


def _unit(query: str, reference: str, original: str, variant: str) -> bool:
    old, new = (PIECE.findall(_signs_as_words(text)) for text in (original, variant))
    if len(old) != len(new):
        return False
    places = [place for place, (was, now) in enumerate(zip(old, new, strict=True)) if was != now]
    if len(places) != 1 or not _is_about_number(old, places[0]):
        return False
    return _another_unit(old, places[0], new[places[0]])


def _signs_as_words(text: str) -> str:
    """Signs of money and percent as words behind their numbers: "$<<9*2=18>>18" is "<<9*2=18>>18 dollars"."""
    text = re.sub(
        rf"([$€£¥])(\s*<<[^<>]*>>)?(\s*)({NUMERAL})",
        lambda found: f"{found[2] or ''}{found[3]}{found[4]} {SIGN_NAMES[found[1]]}",
        text,
    )
    return re.sub(
        rf"(<<[^<>]*>>)|({NUMERAL})\s?([%¢])",
        lambda found: found[1] or f"{found[2]} {SIGN_NAMES[found[3]]}",
        text,
    )


def _is_about_number(pieces: list[str], place: int) -> bool:
    """Return true if the line of a piece has a number: without one it measures nothing."""
    start = max((at for at in range(place) if "\n" in pieces[at]), default=-1) + 1
    end = next((at for at in range(place, len(pieces)) if "\n" in pieces[at]), len(pieces))
    return any(one[-1].isdigit() or one.lower() in WORDS for one in pieces[start:end])


def _another_unit(pieces: list[str], place: int, new: str) -> bool:
    old = pieces[place]
    before, after = _singular(old), _singular(new)
    if before == after or not (new.isalpha() or new in SIGN_NAMES):
        return False
    if before in DIMENSION and after in DIMENSION and DIMENSION[before] == DIMENSION[after]:
        return False
    behind_a_number = place >= 2 and pieces[place - 1].isspace() and pieces[place - 2][-1].isdigit()
    if before in DIMENSION and (behind_a_number or old.lower() != "second"):  # which may be the one after the first
        return True
    return behind_a_number and old.islower() and old.endswith("s") and not {old, new} & NO_THINGS


def _singular(word: str) -> str:
    word = SIGN_NAMES.get(word, word).lower()
    if word in IRREGULAR or word in DIMENSION:
        return IRREGULAR.get(word, word)
    for ending, instead in (("ies", "y"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("sses", "ss")):
        if word.endswith(ending):
            return word.removesuffix(ending) + instead
    return word if word.endswith("ss") else word.removesuffix("s")


# --- entity ----------------------------------------------------------------------------------------------------------

NO_NAMES = set(
    "i he she it they we you his her hers him its their theirs them our ours your yours my mine this that these those "
    "the a an and or but so then thus therefore hence since because if when while after before as at in on of for from "
    "to with by per each every all both half one two three four five six seven eight nine ten first second third next "
    "finally now also let there here how what which who total altogether together answer step is are was were has have "
    "had does do did will would can could".split()
)
NAME = re.compile(r"[A-Z][^\W\d_]*(?:[ -][A-Z][^\W\d_]*){0,3}")


def _entity(query: str, reference: str, original: str, variant: str) -> bool:
    old, new = PIECE.findall(original), PIECE.findall(variant)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    edits = [edit for edit in matcher.get_opcodes() if edit[0] != "equal"]
    swaps = {("".join(old[a:b]), "".join(new[c:d])) for _, a, b, c, d in edits}
    if len(swaps) != 1:
        return False
    was, now = swaps.pop()
    return _is_name(was, query) and re.search(rf"\b{re.escape(was)}\b", query) is not None and _is_name(now, query)


def _is_name(words: str, query: str) -> bool:
    """Return true if this is written as a name, and nowhere in the question as a common word."""
    if NAME.fullmatch(words) is None or words.lower() in NO_NAMES:
        return False
    return re.search(rf"\b{re.escape(words.lower())}\b", query) is None
