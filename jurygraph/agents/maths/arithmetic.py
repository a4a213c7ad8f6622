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
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

MAX_EQUATION_SIDE_CHARACTERS = 200  # characters of one side of an equation
MAX_EQUALS_SIGNS = 1_000  # equals signs read in one text
_MAX_CACHED_CHARACTERS = 2_000  # characters of the longest line whose steps are cached
_ROUNDING_TOLERANCE = Fraction(1, 10**9)
_HUNDREDTH = Fraction(1, 100)

_ASCII_OPERATOR_BY_SIGN = {"÷": "/", r"\div": "/", r"\%": "%", "**": "||"}
_ASCII_OPERATOR_BY_SIGN |= dict.fromkeys("−–", "-")
_ASCII_OPERATOR_BY_SIGN |= dict.fromkeys((*"×·⋅∗xX", r"\times", r"\cdot"), "*")
_NONASCII_OPERATOR_PATTERN = re.compile(
    r"[−–÷×·⋅∗$£€]|\\[$%]|\\(?:times|cdot|div)(?![A-Za-z])|\*\*|(?<![^\W\d_])[xX](?=[ \t]*[0-9($£€.])"
)
_EXPRESSION_CHARACTERS = "0123456789.,+-*/()% \t"
_TOKEN_PATTERN = re.compile(
    r"(?P<number>(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)"
    r"|(?P<operator>[-+*/])|(?P<bracket>[()])|(?P<percent>%)|(?P<other>[.,])"
)
_DEPTH_CHANGE_BY_BRACKET = {"(": 1, ")": -1}
_EQUATION_BOUNDARY_PATTERN = re.compile(r"<<|>>|=")
_EQUALS_SIGN_PATTERN = re.compile(r"(?<![=<>!:≈~])=(?![=>])")
_BULLET_PATTERN = re.compile(r"[ \t]*(?:[-*+]|[0-9]{1,3}[.)])[ \t]+")
_BOLD_MARK_PATTERN = re.compile(r"[ \t]*\|\|(?=[ 0-9(.-])")
_LAST_WORD_PATTERN = re.compile(r"[^\W\d_]+\Z")
_CHARACTERS_BEFORE_EQUATION = frozenset(
    ",:;.>|•[?)\"'“”‘’`—"
)  # allowed before an equation, besides a word
_CHANGING_SUFFIX_PATTERN = re.compile(  # text after a number that changes its value
    r"[ \t]*(?:(?:hundred|thousand|million|billion|trillion|dozen)\b|[(^!_{\[\\±])|[A-Za-z](?![A-Za-z])|[,.:/][0-9]",
    re.IGNORECASE,
)
_MEANING_CHANGING_WORDS = frozenset(
    "times plus minus over by of per divided multiplied add subtract and half third quarter double twice triple thrice"
    " squared cubed thousand million billion hundred dozen than mod root sqrt log one two three four five six seven"
    " eight nine ten less more from".split()
)
_OPERATION_BY_AST_TYPE: Mapping[type, Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.mul,  # written for a percent sign: it binds closest
}


_Token = re.Match[str]
"""A number or sign of a line, or the boundary of an equation, where it stands."""


class _NotArithmeticError(Exception):
    """The text is not pure arithmetic within the limits."""


class CalculationStep(NamedTuple):
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

    @property
    def truth(self) -> str:
        """Return what the left side is, as the end of a sentence."""
        return "it is not defined" if self.value is None else f"it is {float(self.value):.10g}"


class _EquationSide(NamedTuple):
    """The tokens of one side; `is_reading_uncertain` if text around may change its meaning."""

    tokens: Sequence[_Token]
    is_reading_uncertain: bool

    def contains_any_token(self, *texts: str) -> bool:
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
    all_steps = []
    start = 0
    remaining_equals_sign_count = MAX_EQUALS_SIGNS
    for line in text.split("\n"):  # no equality spans a line end
        if "=" in line and remaining_equals_sign_count > 0:
            read_line_equalities = (
                _read_equalities_cached if len(line) <= _MAX_CACHED_CHARACTERS else _read_equalities
            )
            line_steps = read_line_equalities(line)[:remaining_equals_sign_count]
            for step in filter(None, line_steps):
                all_steps.append(step._replace(start=step.start + start, end=step.end + start))
            remaining_equals_sign_count -= len(line_steps)
        start += len(line) + 1
    return tuple(all_steps)


def _read_equalities(line: str) -> tuple[CalculationStep | None, ...]:
    """Return the equality at each of the first 1,000 equals signs of a line; None where it is no arithmetic."""
    # An operator is as long as the sign that it replaces, so that all offsets stay.
    ascii_line = _NONASCII_OPERATOR_PATTERN.sub(
        lambda sign: _ASCII_OPERATOR_BY_SIGN.get(sign[0], "").ljust(len(sign[0])), line
    )
    boundaries = [*_EQUATION_BOUNDARY_PATTERN.finditer(ascii_line)]
    line_steps: list[CalculationStep | None] = []
    for before, boundary, after in zip(
        [None, *boundaries], boundaries, [*boundaries[1:], None], strict=False
    ):
        if len(line_steps) == MAX_EQUALS_SIGNS:
            break
        if _EQUALS_SIGN_PATTERN.match(ascii_line, boundary.start()):
            line_steps.append(_read_calculation_step(line, ascii_line, boundary, before, after))
    return tuple(line_steps)


_read_equalities_cached = lru_cache(maxsize=4096)(_read_equalities)
"""Cached, since several evaluators read the same line, and all variants of a response but one share it."""


def _read_calculation_step(
    line: str,
    ascii_line: str,
    equals_match: _Token,
    before: _Token | None,
    after: _Token | None,
) -> CalculationStep | None:
    side_end = after.start() if after else len(ascii_line)
    if before and before.group() == "<<" and not after:
        return None  # an annotation that does not end
    try:
        # The right side first: before an annotation it ends at once.
        right_side = _read_right_side(line, ascii_line, equals_match.end(), side_end)
        left_side = _read_left_side(ascii_line, before, equals_match.start())
        claimed_value, exact_value, is_right = _compare_sides(left_side, right_side)
    except (
        _NotArithmeticError,
        ZeroDivisionError,
    ):  # a right side that divides by zero claims no value
        return None
    start = left_side.tokens[0].start()
    end = right_side.tokens[-1].end()
    if after and after.group() == "<<" and not ascii_line[end:side_end].strip():
        return None  # the annotation that follows is the step
    expression = line[start : left_side.tokens[-1].end()]
    return CalculationStep(
        line[start:end], start, end, expression, claimed_value, exact_value, is_right
    )


def _read_left_side(
    ascii_line: str, previous_boundary: _Token | None, equals_sign_start: int
) -> _EquationSide:
    min_start = previous_boundary.end() if previous_boundary else 0
    window_start = max(min_start, equals_sign_start - MAX_EQUATION_SIDE_CHARACTERS)
    # Where the characters of arithmetic begin.
    start = window_start + len(
        ascii_line[window_start:equals_sign_start].rstrip(_EXPRESSION_CHARACTERS)
    )
    if start == window_start > min_start:
        raise _NotArithmeticError
    if start == 0 and (bullet_match := _BULLET_PATTERN.match(ascii_line, 0, equals_sign_start)):
        min_start = start = bullet_match.end()
    tokens = list(_TOKEN_PATTERN.finditer(ascii_line, start, equals_sign_start))
    first = bracket_depth = 0
    # The arithmetic begins after other text and any unmatched bracket.
    for index, token in enumerate(tokens):
        bracket_depth += _DEPTH_CHANGE_BY_BRACKET.get(token.group(), 0)
        if token.lastgroup == "other" or bracket_depth < 0:
            first = index + 1
            bracket_depth = 0
    left_side_tokens = tokens[first:]
    is_bracketed = (
        bool(left_side_tokens) and left_side_tokens[0].group() == "(" and bracket_depth > 0
    )  # "(3 + 4 = 7)"
    if is_bracketed:
        left_side_tokens = left_side_tokens[1:]
    if not any(token.lastgroup == "operator" for token in left_side_tokens[1:]):
        raise _NotArithmeticError
    previous_end = tokens[first - 1].end() if first else start
    text_before = ascii_line[
        max(min_start, previous_end - MAX_EQUATION_SIDE_CHARACTERS) : previous_end
    ]
    if not text_before and previous_boundary and previous_boundary.group() == ">>":
        text_before = ">"
    return _EquationSide(
        left_side_tokens,
        text_before != ""
        and not is_bracketed
        and _may_belong_to_equation(text_before, left_side_tokens[0], previous_end),
    )


def _may_belong_to_equation(before: str, first: _Token, end: int) -> bool:
    """Return true if the text before an equation may belong to it; raise if it or a sign certainly does."""
    is_text_adjacent = first.start() == end
    if first.lastgroup == "operator":
        raise _NotArithmeticError
    word = _LAST_WORD_PATTERN.search(before)
    if word:
        if is_text_adjacent:
            raise _NotArithmeticError
        return word[0].lower() in _MEANING_CHANGING_WORDS or len(word[0]) == 1
    mark = before[-1]
    neighbour_character = before.rstrip("|")[-1:] if mark == "|" else before[-2:-1]
    is_joined_to_neighbour = neighbour_character == ")" or neighbour_character.isdigit()
    if mark not in _CHARACTERS_BEFORE_EQUATION or (
        is_text_adjacent and mark != ")" and is_joined_to_neighbour
    ):
        raise _NotArithmeticError
    return mark == ")"


def _read_right_side(line: str, ascii_line: str, start: int, stop: int) -> _EquationSide:
    stop = min(stop, start + MAX_EQUATION_SIDE_CHARACTERS)
    if bold_mark_match := _BOLD_MARK_PATTERN.match(ascii_line, start, stop):
        start = bold_mark_match.end()
    right_side_text = ascii_line[start:stop]
    expression_end = (
        start + len(right_side_text) - len(right_side_text.lstrip(_EXPRESSION_CHARACTERS))
    )
    side = []
    bracket_depth = 0
    for token in _TOKEN_PATTERN.finditer(ascii_line, start, expression_end):
        bracket_depth += _DEPTH_CHANGE_BY_BRACKET.get(token.group(), 0)
        if token.lastgroup == "other" or bracket_depth < 0:
            break
        side.append(token)
    length = len(side)
    while side and (side[-1].lastgroup == "operator" or side[-1].group() == "("):
        side.pop()
    if not side:
        raise _NotArithmeticError
    end = side[-1].end()
    is_expression_cut = len(side) < length or end >= start + MAX_EQUATION_SIDE_CHARACTERS - 1
    return _EquationSide(
        side, is_expression_cut or _CHANGING_SUFFIX_PATTERN.match(line, end) is not None
    )


def _compare_sides(
    left_side: _EquationSide, right_side: _EquationSide
) -> tuple[Fraction, Fraction | None, bool]:
    claimed_value = _evaluate_expression(right_side.tokens)
    try:
        exact_value = _evaluate_expression(left_side.tokens)
    except ZeroDivisionError:
        return claimed_value, None, False
    if _is_claim_correct(left_side, exact_value, claimed_value, right_side.tokens):
        return claimed_value, exact_value, True
    if [token.lastgroup for token in right_side.tokens[:2]] == ["number", "operator"]:
        first = right_side.tokens[:1]
        first_value = _evaluate_expression(first)
        if _is_claim_correct(
            left_side, exact_value, first_value, first, may_round_to_integer=False
        ):
            return first_value, exact_value, True
    if left_side.contains_any_token("%") or right_side.contains_any_token("%"):
        label = _evaluate_expression(right_side.tokens, Fraction(1))
        holds = _is_claim_correct(
            left_side, _evaluate_expression(left_side.tokens, Fraction(1)), label, right_side.tokens
        )
        if holds and not left_side.contains_any_token("%"):
            return label, exact_value, True
        if holds or left_side.contains_any_token("+", "-"):
            raise _NotArithmeticError  # "25% * 2 = 50", "200 + 10% = 220": one cannot tell
    if left_side.is_reading_uncertain or right_side.is_reading_uncertain:
        raise _NotArithmeticError
    return claimed_value, exact_value, False


def _is_claim_correct(
    left_side: _EquationSide,
    exact_value: Fraction,
    claimed_value: Fraction,
    right_tokens: Sequence[_Token],
    *,
    may_round_to_integer: bool = True,
) -> bool:
    """Return true if a claim is the exact value, or that value rounded; to a whole number only if it
    `may_round_to_integer`."""
    difference = abs(claimed_value - exact_value)
    has_many_decimals = any(
        _count_decimal_places(token) >= 6 for token in (*left_side.tokens, *right_tokens)
    )
    tolerance = abs(exact_value) * _ROUNDING_TOLERANCE if has_many_decimals else Fraction(0)
    if difference <= tolerance:
        return True
    numbers = [token.group() for token in right_tokens if token.lastgroup == "number"]
    if len(numbers) > 1:
        return False
    written_value = Fraction(numbers[0].replace(",", ""))
    # A hundredth where a percent sign counts.
    claimed_ratio = abs(claimed_value / written_value) if written_value else Fraction(1)
    if "." in numbers[0]:
        decimals = numbers[0].partition(".")[2]
        return bool(difference <= claimed_ratio / 10 ** len(decimals))
    # As in "33.33 * 3 = 100".
    has_decimals = any(_count_decimal_places(token) > 1 for token in left_side.tokens)
    is_rounding_plausible = left_side.contains_any_token("/") or (
        has_decimals and difference <= abs(exact_value) / 500
    )
    return bool(
        may_round_to_integer
        and difference < claimed_ratio
        and abs(exact_value) >= 1
        and is_rounding_plausible
    )


def _count_decimal_places(token: _Token) -> int:
    return len(token.group().partition(".")[2]) if token.lastgroup == "number" else 0


def _evaluate_expression(
    expression: Sequence[_Token], percent_sign_factor: Fraction = _HUNDREDTH
) -> Fraction:
    """Return the exact value of an expression, read by Python's grammar; a percent sign multiplies by
    `percent_sign_factor`.

    Raises _NotArithmetic if it is no expression, and ZeroDivisionError.
    """
    values = {"percent": percent_sign_factor}
    python_tokens = []
    for index, token in enumerate(expression):
        if token.lastgroup == "number":
            name = f"n{index}"
            values[name] = Fraction(token.group().replace(",", ""))
            python_tokens.append(name)
        else:
            python_tokens.append("** percent" if token.group() == "%" else token.group())
    try:
        return _evaluate_ast_node(ast.parse(" ".join(python_tokens), mode="eval").body, values)
    except SyntaxError:
        raise _NotArithmeticError from None


def _evaluate_ast_node(node: ast.expr, values: Mapping[str, Fraction]) -> Fraction:
    match node:
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(op=sign, operand=inner):
            value = _evaluate_ast_node(inner, values)
            return -value if isinstance(sign, ast.USub) else value
        case ast.BinOp(left=left, op=operation, right=right):
            return _OPERATION_BY_AST_TYPE[type(operation)](
                _evaluate_ast_node(left, values), _evaluate_ast_node(right, values)
            )
    raise _NotArithmeticError  # such as a product without its sign: "2 (3)"
