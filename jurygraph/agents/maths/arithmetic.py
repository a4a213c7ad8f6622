"""Check the arithmetic written in a solution, step by step, in exact fractions.

It reads annotations `<<a*b=c>>` and plain equations `a × b = c` whose left side is numbers and operators only. Text
that is not pure arithmetic (variables, units between the numbers, powers, implicit products) is skipped, never called
wrong; so is a wrong equation if the text around it may change its meaning ("half of 4 + 2 = 4"). A response is hostile
input: each equals sign costs a bounded amount of work, and at most 1,000 are read.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

MAX_SIDE_CHARACTERS = 200  # characters of one side of an equation
STEP_LIMIT = 1_000  # equals signs read in one text
_MAX_CACHED = 2_000  # characters of the longest line whose steps are cached
_ROUNDING_TOLERANCE = Fraction(1, 10**9)
_HUNDREDTH = Fraction(1, 100)

_OPERATORS = {
    "−": "-",
    "–": "-",
    "÷": "/",
    "×": "*",
    "·": "*",
    "⋅": "*",
    "∗": "*",
    "x": "*",
    "X": "*",
}
_OPERATORS |= {r"\times": "*", r"\cdot": "*", r"\div": "/", r"\%": "%", "**": "||"}
_NONASCII_OPERATOR = re.compile(
    r"[−–÷×·⋅∗$£€]|\\[$%]|\\(?:times|cdot|div)(?![A-Za-z])|\*\*|(?<![^\W\d_])[xX](?=[ \t]*[0-9($£€.])"
)
_EXPRESSION_CHARACTERS = "0123456789.,+-*/()% \t"
_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)"
    r"|(?P<operator>[-+*/])|(?P<bracket>[()])|(?P<percent>%)|(?P<other>[.,])"
)
_DEPTHS = {"(": 1, ")": -1}
_EQUATION_EDGE = re.compile(r"<<|>>|=")
_EQUALS_SIGN = re.compile(r"(?<![=<>!:≈~])=(?![=>])")
_BULLET = re.compile(r"[ \t]*(?:[-*+]|[0-9]{1,3}[.)])[ \t]+")
_BOLD_MARK = re.compile(r"[ \t]*\|\|(?=[ 0-9(.-])")
_LAST_WORD = re.compile(r"[^\W\d_]+\Z")
_BOUNDARY_CHARACTERS = frozenset(
    ",:;.>|•[?)\"'“”‘’`—"
)  # allowed before an equation, besides a word
_CHANGES_RIGHT = re.compile(  # text after a number that changes its value
    r"[ \t]*(?:(?:hundred|thousand|million|billion|trillion|dozen)\b|[(^!_{\[\\±])|[A-Za-z](?![A-Za-z])|[,.:/][0-9]",
    re.IGNORECASE,
)
_CHANGES_LEFT = frozenset(
    "times plus minus over by of per divided multiplied add subtract and half third quarter double twice triple thrice"
    " squared cubed thousand million billion hundred dozen than mod root sqrt log one two three four five six seven"
    " eight nine ten less more from".split()
)
_OPERATIONS: Mapping[type, Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.mul,  # written for a percent sign: it binds closest
}


class _NotArithmetic(Exception):
    """The text is not pure arithmetic within the limits."""


@dataclass(frozen=True, slots=True)
class CalculationStep:
    """One written equality: `quote` is `text[start:end]`, and `expression` its left side as written.

    `claimed` is the value of the right side, `value` the exact value of the left one; None if that divides by zero,
    which is wrong too.
    """

    quote: str
    start: int
    end: int
    expression: str
    claimed: Fraction
    value: Fraction | None
    is_right: bool


class _EquationSide(NamedTuple):
    """The tokens of one side; `doubtful` if text around may change its meaning."""

    tokens: Sequence[re.Match[str]]
    doubtful: bool

    def has_token(self, *texts: str) -> bool:
        return any(token.group() in texts for token in self.tokens)


def steps(text: str) -> tuple[CalculationStep, ...]:
    """Return every equality in `text` that reads as pure arithmetic, in order of appearance.

    A claim holds if it is the exact value (up to a relative 1e-9 if six decimals are written: floating-point noise);
    or, written with decimals, is within one unit of the last (rounded or truncated); or is a whole number to which the
    value rounds up or down, if that is at least 1 and the left side divides ("450/70 = 6") or has decimals that explain
    it ("33.33 * 3 = 100"). A percent sign divides by 100; if it only labels the result ("100 - 20 = 80%") it is
    ignored. In a chain "2 + 3 = 5 + 4 = 9" a side is compared with the whole of the next and with its first number. An
    annotation and the plain equation around it are one step.
    """
    all_steps: list[CalculationStep] = []
    start = 0
    remaining_steps = STEP_LIMIT
    for line in text.split("\n"):  # no equality spans a line end
        if "=" in line and remaining_steps > 0:
            read = _read_line_cached if len(line) <= _MAX_CACHED else _read_line
            sign_count, line_steps = read(line, remaining_steps)
            for step in line_steps:
                moved_step = replace(step, start=step.start + start, end=step.end + start)
                all_steps.append(moved_step)
            remaining_steps -= sign_count
        start += len(line) + 1
    return tuple(all_steps)


def _read_line(line: str, max_signs: int) -> tuple[int, tuple[CalculationStep, ...]]:
    """Return the number of equals signs read in a line, at most `max_signs`, and the equalities at them."""
    # An operator is as long as the sign that it replaces, so that all offsets stay.
    plain_line = _NONASCII_OPERATOR.sub(
        lambda sign: _OPERATORS.get(sign[0], "").ljust(len(sign[0])), line
    )
    edges = [*_EQUATION_EDGE.finditer(plain_line)]
    line_steps = []
    count = 0
    for index, edge in enumerate(edges):
        if count < max_signs and _EQUALS_SIGN.match(plain_line, edge.start()):
            count += 1
            before = edges[index - 1] if index else None
            after = edges[index + 1] if index + 1 < len(edges) else None
            step = _read_step(line, plain_line, edge, before, after)
            if step is not None:
                line_steps.append(step)
    return count, tuple(line_steps)


_read_line_cached = lru_cache(maxsize=4096)(_read_line)
"""Cached, since several evaluators read the same line, and all variants of a response but one share it."""


def _read_step(
    line: str,
    plain_line: str,
    equals_sign: re.Match[str],
    before: re.Match[str] | None,
    after: re.Match[str] | None,
) -> CalculationStep | None:
    stop = after.start() if after else len(plain_line)
    if before and before.group() == "<<" and not after:
        return None  # an annotation that does not end
    try:
        # The right side first: before an annotation it ends at once.
        right_side = _read_right_side(line, plain_line, equals_sign.end(), stop)
        left_side = _read_left_side(plain_line, before, equals_sign.start())
        claimed_value, exact_value, is_right = _compare_sides(left_side, right_side)
    except (_NotArithmetic, ZeroDivisionError):  # a right side that divides by zero claims no value
        return None
    start = left_side.tokens[0].start()
    end = right_side.tokens[-1].end()
    if after and after.group() == "<<" and not plain_line[end:stop].strip():
        return None  # the annotation that follows is the step
    expression = line[start : left_side.tokens[-1].end()]
    return CalculationStep(
        line[start:end], start, end, expression, claimed_value, exact_value, is_right
    )


def _read_left_side(
    plain_line: str, edge: re.Match[str] | None, equals_start: int
) -> _EquationSide:
    least_start = edge.end() if edge else 0
    window_start = max(least_start, equals_start - MAX_SIDE_CHARACTERS)
    # Where the characters of arithmetic begin.
    start = window_start + len(plain_line[window_start:equals_start].rstrip(_EXPRESSION_CHARACTERS))
    if start == window_start > least_start:
        raise _NotArithmetic
    if start == 0 and (bullet := _BULLET.match(plain_line, 0, equals_start)):
        least_start = start = bullet.end()
    tokens = list(_TOKEN.finditer(plain_line, start, equals_start))
    first = depth = 0
    # The arithmetic begins after other text and any unmatched bracket.
    for index, token in enumerate(tokens):
        depth += _DEPTHS.get(token.group(), 0)
        if token.lastgroup == "other" or depth < 0:
            first = index + 1
            depth = 0
    side = tokens[first:]
    is_bracketed = bool(side) and side[0].group() == "(" and depth > 0  # "(3 + 4 = 7)"
    if is_bracketed:
        side = side[1:]
    if not any(token.lastgroup == "operator" for token in side[1:]):
        raise _NotArithmetic
    previous = tokens[first - 1].end() if first else start
    text_before = (
        ""
        if is_bracketed
        else plain_line[max(least_start, previous - MAX_SIDE_CHARACTERS) : previous]
    )
    if not text_before and edge and edge.group() == ">>" and not is_bracketed:
        text_before = ">"
    return _EquationSide(side, text_before != "" and _may_belong(text_before, side[0], previous))


def _may_belong(before: str, first: re.Match[str], end: int) -> bool:
    """Return true if the text before an equation may belong to it; raise if it or a sign certainly does."""
    is_adjacent = first.start() == end
    if first.lastgroup == "operator":
        raise _NotArithmetic
    word = _LAST_WORD.search(before)
    if word:
        if is_adjacent:
            raise _NotArithmetic
        return word[0].lower() in _CHANGES_LEFT or len(word[0]) == 1
    mark = before[-1]
    neighbour = before.rstrip("|")[-1:] if mark == "|" else before[-2:-1]
    is_glued = neighbour == ")" or neighbour.isdigit()
    if mark not in _BOUNDARY_CHARACTERS or (is_adjacent and mark != ")" and is_glued):
        raise _NotArithmetic
    return mark == ")"


def _read_right_side(line: str, plain_line: str, start: int, stop: int) -> _EquationSide:
    stop = min(stop, start + MAX_SIDE_CHARACTERS)
    if bold_mark := _BOLD_MARK.match(plain_line, start, stop):
        start = bold_mark.end()
    right_text = plain_line[start:stop]
    run_end = start + len(right_text) - len(right_text.lstrip(_EXPRESSION_CHARACTERS))
    side: list[re.Match[str]] = []
    depth = 0
    for token in _TOKEN.finditer(plain_line, start, run_end):
        depth += _DEPTHS.get(token.group(), 0)
        if token.lastgroup == "other" or depth < 0:
            break
        side.append(token)
    length = len(side)
    while side and (side[-1].lastgroup == "operator" or side[-1].group() == "("):
        side.pop()
    if not side:
        raise _NotArithmetic
    end = side[-1].end()
    is_cut = len(side) < length or end >= start + MAX_SIDE_CHARACTERS - 1
    return _EquationSide(side, is_cut or _CHANGES_RIGHT.match(line, end) is not None)


def _compare_sides(
    left_side: _EquationSide, right_side: _EquationSide
) -> tuple[Fraction, Fraction | None, bool]:
    claimed_value = _evaluate(right_side.tokens)
    try:
        exact_value = _evaluate(left_side.tokens)
    except ZeroDivisionError:
        return claimed_value, None, False
    if _is_true_result(left_side, exact_value, claimed_value, right_side.tokens):
        return claimed_value, exact_value, True
    if [token.lastgroup for token in right_side.tokens[:2]] == ["number", "operator"]:
        first = right_side.tokens[:1]
        first_value = _evaluate(first)
        if _is_true_result(left_side, exact_value, first_value, first, may_round=False):
            return first_value, exact_value, True
    if left_side.has_token("%") or right_side.has_token("%"):
        label = _evaluate(right_side.tokens, Fraction(1))
        holds = _is_true_result(
            left_side, _evaluate(left_side.tokens, Fraction(1)), label, right_side.tokens
        )
        if holds and not left_side.has_token("%"):
            return label, exact_value, True
        if holds or left_side.has_token("+", "-"):
            raise _NotArithmetic  # "25% * 2 = 50", "200 + 10% = 220": one cannot tell
    if left_side.doubtful or right_side.doubtful:
        raise _NotArithmetic
    return claimed_value, exact_value, False


def _is_true_result(
    left_side: _EquationSide,
    exact_value: Fraction,
    claimed_value: Fraction,
    right_tokens: Sequence[re.Match[str]],
    *,
    may_round: bool = True,
) -> bool:
    """Return true if a claim is the exact value, or that value rounded; to a whole number only if it `may_round`."""
    difference = abs(claimed_value - exact_value)
    has_noise = any(_decimal_places(token) >= 6 for token in (*left_side.tokens, *right_tokens))
    noise = abs(exact_value) * _ROUNDING_TOLERANCE if has_noise else Fraction(0)
    if difference <= noise:
        return True
    numbers = [token.group() for token in right_tokens if token.lastgroup == "number"]
    if len(numbers) > 1:
        return False
    numeral = Fraction(numbers[0].replace(",", ""))
    # A hundredth where a percent sign counts.
    unit = abs(claimed_value / numeral) if numeral else Fraction(1)
    if "." in numbers[0]:
        decimals = numbers[0].partition(".")[2]
        return bool(difference <= unit / 10 ** len(decimals))
    # As in "33.33 * 3 = 100".
    has_decimals = any(_decimal_places(token) > 1 for token in left_side.tokens)
    is_near = left_side.has_token("/") or (has_decimals and difference <= abs(exact_value) / 500)
    return bool(may_round and difference < unit and abs(exact_value) >= 1 and is_near)


def _decimal_places(token: re.Match[str]) -> int:
    return len(token.group().partition(".")[2]) if token.lastgroup == "number" else 0


def _evaluate(expression: Sequence[re.Match[str]], percent: Fraction = _HUNDREDTH) -> Fraction:
    """Return the exact value of an expression, read by Python's grammar; a percent sign multiplies by `percent`.

    Raises _NotArithmetic if it is no expression, and ZeroDivisionError.
    """
    values = {"percent": percent}
    python_tokens = []
    for index, token in enumerate(expression):
        if token.lastgroup == "number":
            name = f"n{index}"
            values[name] = Fraction(token.group().replace(",", ""))
            python_tokens.append(name)
        else:
            python_tokens.append("** percent" if token.group() == "%" else token.group())
    try:
        return _value(ast.parse(" ".join(python_tokens), mode="eval").body, values)
    except SyntaxError:
        raise _NotArithmetic from None


def _value(node: ast.expr, values: Mapping[str, Fraction]) -> Fraction:
    match node:
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(op=sign, operand=inner):
            value = _value(inner, values)
            return -value if isinstance(sign, ast.USub) else value
        case ast.BinOp(left=left, op=operation, right=right):
            return _OPERATIONS[type(operation)](_value(left, values), _value(right, values))
    raise _NotArithmetic  # such as a product without its sign: "2 (3)"
