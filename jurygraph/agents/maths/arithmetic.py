"""Check the arithmetic written in a solution, step by step, in exact fractions.

It reads annotations `<<a*b=c>>` and plain equations `a × b = c` whose left side is numbers and operators only. Text
that is not pure arithmetic (variables, units between the numbers, powers, implicit products) is skipped, never called
wrong; so is a wrong equation if the text around it may change its meaning ("half of 4 + 2 = 4"). A response is hostile
input: each equals sign costs a bounded amount of work, and at most 1,000 are read.
"""

import ast
import operator
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Literal, NamedTuple, TypeAlias

_TOKEN = re.compile(
    r"(?P<skipped>[ \t]+|\\?\$|[£€])"
    r"|(?P<number>(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)"
    r"|(?P<operator>\*(?!\*)|[-+−–/÷×·⋅∗]|\\(?:times|cdot|div)(?![A-Za-z])|[xX](?=[ \t]*[0-9($£€.]))"
    r"|(?P<bracket>[()])|(?P<percent>\\?%)|(?P<other>[^\W\d_]+|\*+|.)",
    re.DOTALL,
)
_NORMALISED = {"−": "-", "–": "-", "÷": "/", "×": "*", "·": "*", "⋅": "*", "∗": "*", "x": "*", "X": "*"}
_NORMALISED |= {r"\times": "*", r"\cdot": "*", r"\div": "/", r"\%": "%"}
_DEPTHS = {"(": 1, ")": -1}


class _NotArithmetic(Exception):
    """The text is not pure arithmetic within the limits."""


class _Token(NamedTuple):
    """A token and its offsets in the text. `kind`: number, operator, bracket, percent, other.

    Operators are normalised to `+ - * / %`; `x` is an operator only before a number.
    """

    kind: str
    text: str
    start: int
    end: int


def _tokens(text: str, start: int, end: int) -> Iterator[_Token]:
    """Yield the tokens of `text[start:end]`, with offsets in `text`; blanks and currency signs are skipped."""
    for match in _TOKEN.finditer(text, start, end):
        kind = match.lastgroup or "other"
        written = match.group()
        if kind != "skipped":
            yield _Token(kind, written if kind == "other" else _NORMALISED.get(written, written), *match.span())


_OPERATIONS: Mapping[type, Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.mul,  # written for a percent sign: it binds closest
}


def _evaluate(expression: Sequence[_Token], percent: Fraction) -> Fraction:
    """Return the exact value of an expression, read by Python's grammar; a percent sign multiplies by `percent`.

    Raises _NotArithmetic if it is no expression, and ZeroDivisionError.
    """
    values = {"percent": percent}
    written = []
    for place, token in enumerate(expression):
        if token.kind == "number":
            values[f"n{place}"] = Fraction(token.text.replace(",", ""))
            written.append(f"n{place}")
        else:
            written.append("** percent" if token.text == "%" else token.text)
    try:
        return _value(ast.parse(" ".join(written), mode="eval").body, values)
    except SyntaxError:
        raise _NotArithmetic from None


def _value(node: ast.expr, values: Mapping[str, Fraction]) -> Fraction:
    match node:
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(op=sign, operand=inner):
            return -_value(inner, values) if isinstance(sign, ast.USub) else _value(inner, values)
        case ast.BinOp(left=left, op=operation, right=right):
            return _OPERATIONS[type(operation)](_value(left, values), _value(right, values))
    raise _NotArithmetic  # such as a product without its sign: "2 (3)"


How: TypeAlias = Literal["exact", "rounded", "whole", "wrong", "division by zero"]

SIDE_LIMIT = 200  # characters of one side of an equation
STEP_LIMIT = 1_000  # equals signs read in one text
_MAX_CACHED = 2_000  # characters of the longest line whose steps are cached
_NOISE = Fraction(1, 10**9)
_HUNDREDTH = Fraction(1, 100)
_LABEL = Fraction(1)

_EQUALS = re.compile(r"(?<![=<>!:≈~])=(?![=>])")
_WORD = re.compile(r"(?<![\\\w])[^\W\d_]{2,}")
_ANNOTATION = re.compile(r"<<([^<>\n]{0,400})>>")
_BOLD = re.compile(r"[ \t]*\*\*(?=[0-9($£€.-])")
_BULLET = re.compile(r"[ \t]*(?:[-*•+]|[0-9]{1,3}[.)])[ \t]+")
_BOUNDARY = frozenset([*",:;.>|•[?)\"'“”‘’`*—", "**"])  # allowed before an equation, besides a word
_CHANGES_RIGHT = re.compile(  # text after a number that changes its value
    r"[ \t]*(?:(?:hundred|thousand|million|billion|trillion|dozen)\b|[(^!_{\[\\±])|[A-Za-z](?![A-Za-z])|[,.:/][0-9]",
    re.IGNORECASE,
)
_CHANGES_LEFT = frozenset(
    "times plus minus over by of per divided multiplied add subtract and half third quarter double twice triple thrice"
    " squared cubed thousand million billion hundred dozen than mod root sqrt log one two three four five six seven"
    " eight nine ten less more from".split()
)


@dataclass(frozen=True, slots=True)
class CalculationStep:
    """One written equality: `quote` is `text[start:end]`, and `expression` its left side as written.

    `claimed` is the value of the right side, `value` the exact value of the left one; None if that divides by zero.
    `how` is the deciding rule: `exact` (up to floating-point noise), `rounded` (to the decimals shown), `whole` (to a
    whole number), `wrong`, or `division by zero`, which is wrong too.
    """

    quote: str
    start: int
    end: int
    expression: str
    claimed: Fraction
    value: Fraction | None
    how: How

    @property
    def is_right(self) -> bool:
        return self.how not in ("wrong", "division by zero")


class _Side(NamedTuple):
    """The tokens of one side; `doubtful` if text around may change its meaning."""

    tokens: Sequence[_Token]
    doubtful: bool

    def has_token(self, *texts: str) -> bool:
        return any(token.text in texts for token in self.tokens)


def steps(text: str) -> tuple[CalculationStep, ...]:
    """Return every equality in `text` that reads as pure arithmetic, in order of appearance.

    A claim holds if it is the exact value (up to a relative 1e-9 if six decimals are written: floating-point noise);
    or, written with decimals, is within one unit of the last (rounded or truncated); or is a whole number to which the
    value rounds up or down, if that is at least 1 and the left side divides ("450/70 = 6") or has decimals that explain
    it ("33.33 * 3 = 100"): such steps are `how="whole"`, for a stricter reader to distinguish. A percent sign divides
    by 100; if it only labels the result ("100 - 20 = 80%") it is ignored. In a chain "2 + 3 = 5 + 4 = 9" a side is
    compared with the whole of the next and with its first number. An annotation and the plain equation around it are
    one step.
    """
    all_steps: list[CalculationStep] = []
    start = 0
    remaining = STEP_LIMIT
    for line in text.split("\n"):  # no equality spans a line end
        if "=" in line and remaining > 0:
            read = _read_line_cached if len(line) <= _MAX_CACHED else _read_line
            sign_count, line_steps = read(line, remaining)
            all_steps += (replace(step, start=step.start + start, end=step.end + start) for step in line_steps)
            remaining -= sign_count
        start += len(line) + 1
    return tuple(all_steps)


def _read_line(line: str, most: int) -> tuple[int, tuple[CalculationStep, ...]]:
    """Return the number of equals signs read in a line, at most `most`, and the equalities at them."""
    annotations = [match.span(1) for match in _ANNOTATION.finditer(line)]
    signs = [equals.start() for equals in islice(_EQUALS.finditer(line), most)]
    candidates = (_read_step(line, equals, annotations) for equals in signs)
    return len(signs), tuple(step for step in candidates if step)


_read_line_cached = lru_cache(maxsize=4096)(_read_line)
"""Cached, since several evaluators read the same line, and all variants of a response but one share it."""


def _read_step(text: str, equals: int, annotations: list[tuple[int, int]]) -> CalculationStep | None:
    low, high, complete = _side_limits(text, equals, annotations)
    try:
        right = _read_right(text, equals + 1, high)  # first: before an annotation it ends at once
        left = _read_left(text, low, equals, complete)
        claimed, exact, how = _compare_sides(left, right)
    except (_NotArithmetic, ZeroDivisionError):  # a right side that divides by zero claims no value
        return None
    start = left.tokens[0].start
    middle = left.tokens[-1].end
    end = right.tokens[-1].end
    if text[end : end + 4].lstrip(" $").startswith("<<"):
        return None  # the annotation that follows is the step
    return CalculationStep(text[start:end], start, end, text[start:middle], claimed, exact, how)


def _side_limits(text: str, equals: int, annotations: list[tuple[int, int]]) -> tuple[int, int, bool]:
    """Return the limits of the two sides, and true unless the size limit cuts the left one."""
    nearest = bisect_right(annotations, (equals, equals)) - 1
    first, last = annotations[nearest] if nearest >= 0 else (0, 0)
    if not first <= equals < last:
        first = 0
        last = len(text)
    cut = max(first, equals - SIDE_LIMIT)
    stop = min(last, equals + SIDE_LIMIT)
    before = text.rfind("=", cut, equals) + 1
    after = text.find("=", equals + 1, stop)
    return max(before, cut), stop if after < 0 else after, before > 0 or cut == first


def _read_left(text: str, low: int, equals: int, complete: bool) -> _Side:
    if low == 0 and (bullet := _BULLET.match(text, low, equals)):
        low = bullet.end()
    for word in _WORD.finditer(text, low, equals):
        low = word.start()  # arithmetic never spans a word, so text before the last one is skipped
    tokens = list(_tokens(text, low, equals))
    first = _arithmetic_start(tokens)
    side = tokens[first:]
    has_open_bracket = bool(side) and side[0].text == "(" and sum(_DEPTHS.get(token.text, 0) for token in side) > 0
    if has_open_bracket:  # "(3 + 4 = 7)"
        side = side[1:]
    if not side or not any(token.kind == "operator" for token in side[1:]) or (first == 0 and not complete):
        raise _NotArithmetic
    before = tokens[first - 1] if first and not has_open_bracket else None
    return _Side(side, before is not None and _may_belong(text, before, side[0]))


def _arithmetic_start(tokens: list[_Token]) -> int:
    """Return the index of the first token of the arithmetic at the end: after other text and any unmatched `)`."""
    start = depth = 0
    for index, token in enumerate(tokens):
        depth += _DEPTHS.get(token.text, 0)
        if token.kind == "other" or depth < 0:
            start = index + 1
            depth = 0
    return start


def _may_belong(text: str, before: _Token, first: _Token) -> bool:
    """Return true if the word before an equation may belong to it; raise if it or a sign certainly does."""
    gap = text[before.end : first.start].strip("$£€ \t\\(")
    adjacent = before.end == first.start
    if gap or first.kind == "operator":
        raise _NotArithmetic
    if before.text[0].isalpha():
        if adjacent:
            raise _NotArithmetic
        return before.text.lower() in _CHANGES_LEFT or len(before.text) == 1
    character_before = text[max(0, before.start - 1) : before.start]
    is_glued = before.text == "**" and character_before != ""
    if adjacent:
        is_glued = character_before == ")" or character_before.isdigit()
    if before.text not in _BOUNDARY or (is_glued and before.text != ")"):
        raise _NotArithmetic
    return before.text == ")"


def _read_right(text: str, start: int, high: int) -> _Side:
    side: list[_Token] = []
    depth = 0
    if bold := _BOLD.match(text, start, high):
        start = bold.end()
    for token in _tokens(text, start, high):
        depth += _DEPTHS.get(token.text, 0)
        if token.kind == "other" or depth < 0:
            break
        side.append(token)
    length = len(side)
    while side and (side[-1].kind == "operator" or side[-1].text == "("):
        side.pop()
    if not side:
        raise _NotArithmetic
    side_end = side[-1].end
    is_cut = len(side) < length or side_end >= start + SIDE_LIMIT - 1
    return _Side(side, is_cut or _CHANGES_RIGHT.match(text, side_end) is not None)


def _compare_sides(left: _Side, right: _Side) -> tuple[Fraction, Fraction | None, How]:
    claimed = _evaluate(right.tokens, _HUNDREDTH)
    try:
        exact = _evaluate(left.tokens, _HUNDREDTH)
    except ZeroDivisionError:
        return claimed, None, "division by zero"
    how = _classify_claim(left, exact, claimed, right.tokens)
    first = right.tokens[:1]
    if how == "wrong" and len(right.tokens) > 1 and right.tokens[1].kind == "operator" and first[0].kind == "number":
        first_value = _evaluate(first, _HUNDREDTH)
        if (other_how := _classify_claim(left, exact, first_value, first)) not in ("wrong", "whole"):
            return first_value, exact, other_how
    if how == "wrong" and (left.has_token("%") or right.has_token("%")):
        claimed, exact, how = _compare_as_labels(left, right, claimed, exact)
    if how == "wrong" and (left.doubtful or right.doubtful):
        raise _NotArithmetic
    return claimed, exact, how


def _compare_as_labels(left: _Side, right: _Side, claimed: Fraction, exact: Fraction) -> tuple[Fraction, Fraction, How]:
    claimed_label = _evaluate(right.tokens, _LABEL)
    exact_label = _evaluate(left.tokens, _LABEL)
    how = _classify_claim(left, exact_label, claimed_label, right.tokens)
    has_sums = left.has_token("+", "-")
    if how != "wrong" and (not left.has_token("%") or not left.has_token("*", "/")):
        return claimed_label, exact_label, how
    if how != "wrong" or has_sums:
        raise _NotArithmetic  # "25% * 2 = 50", "200 + 10% = 220": one cannot tell
    return claimed, exact, "wrong"


def _classify_claim(left: _Side, exact: Fraction, claimed: Fraction, right: Sequence[_Token]) -> How:
    difference = abs(claimed - exact)
    has_noise = any(_decimal_places(token) >= 6 for token in (*left.tokens, *right))
    if difference <= (abs(exact) * _NOISE if has_noise else 0):
        return "exact"
    numbers = [token.text for token in right if token.kind == "number"]
    if len(numbers) > 1:
        return "wrong"
    numeral = Fraction(numbers[0].replace(",", ""))
    unit = abs(claimed / numeral) if numeral else _LABEL  # a hundredth where a percent sign counts
    if "." in numbers[0]:
        return "rounded" if difference <= unit / 10 ** len(numbers[0].partition(".")[2]) else "wrong"
    has_decimals = any(_decimal_places(token) > 1 for token in left.tokens)  # as in "33.33 * 3 = 100"
    is_near = left.has_token("/") or (has_decimals and difference <= abs(exact) / 500)
    return "whole" if difference < unit and abs(exact) >= 1 and is_near else "wrong"


def _decimal_places(token: _Token) -> int:
    return len(token.text.partition(".")[2]) if token.kind == "number" else 0
