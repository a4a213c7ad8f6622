"""`calculate`: arithmetic that is exact, as fractions, with every size bounded before anything is computed."""

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any

from pydantic import StringConstraints

from jurygraph.errors import ToolError
from jurygraph.tools.tool import Tool, ToolArguments, ToolInput

MAX_BITS = 1024
"""Of a numerator or denominator: about 300 digits."""
MAX_DEPTH = 200
MAX_PLACES = 50
"""Decimals up to which a result is written out; a longer one is rounded to 20 digits."""
_ROUNDED_DIGITS = 20
_MAX_ROUNDED_PLACES = 100
_NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?(?![\w.])"
_TOKENS = re.compile(
    rf"(?:{_NUMBER}|min|max|abs|round|sum|\*\*|//|[<>=!]=|[-+*/%<>(),\[\]]|\s+)*", re.ASCII
)


class CalculateArguments(ToolArguments):
    expression: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    """Such as `(3 * 12.50 + 8) / 2`, or `sum(1, 2, 3) <= 7`."""


class Calculate(Tool):
    """Return the value of an arithmetic expression, exactly."""

    name = "calculate"
    version = "1"
    description = (
        "Calculate: numbers, + - * / // % **, parentheses, comparisons, and min, max, abs, round and sum. "
        "Results are exact; round takes halves to the even number."
    )
    Arguments = CalculateArguments

    def run(self, inputs: ToolInput, arguments: CalculateArguments) -> str:
        return format_value(calculate(arguments.expression))


def calculate(expression: str) -> Fraction | bool:
    """Return the value of an expression. Raises ToolError for what is no arithmetic, or becomes too large."""
    written = " ".join(expression.split())
    # Only these signs reach Python's parser, which could otherwise warn, or read names.
    match = _TOKENS.match(written)
    if match is None or match.end() < len(written):
        position = 0 if match is None else match.end()
        raise ToolError(
            f"cannot be read at character {position + 1} of the expression; write numbers such as 1200.50, "
            "+ - * / // % **, parentheses, comparisons, and min, max, abs, round and sum"
        )
    try:
        tree = ast.parse(written, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ToolError(
            "is no complete expression; write one such as (3 * 12.50 + 8) / 2"
        ) from error
    try:
        return _Calculation(written).value_of(tree.body, 0)
    except ZeroDivisionError as error:
        raise ToolError("divides by zero") from error


def format_value(value: Fraction | bool) -> str:
    """Return a value as a decimal if it has one of up to 50 places, else rounded, beside the fraction."""
    if isinstance(value, bool):
        return str(value).lower()
    for places in range(MAX_PLACES + 1):
        scaled = value * 10**places
        if scaled.denominator == 1:
            return _write_decimal(scaled.numerator, places)
    digits = len(str(abs(value.numerator))) - len(str(value.denominator))
    places = max(0, _ROUNDED_DIGITS - digits)
    rounded = _write_decimal(round(value * 10**places), places)
    return f"{rounded} (rounded; exactly {value.numerator}/{value.denominator})"


def _write_decimal(scaled: int, places: int) -> str:
    sign = "-" if scaled < 0 else ""
    digits = str(abs(scaled)).rjust(places + 1, "0")
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"


_Operation = Callable[[Fraction, Fraction], Any]


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        raise ToolError("a power has a whole exponent; write one")
    bits = max(abs(base.numerator).bit_length(), base.denominator.bit_length())
    if base not in (-1, 0, 1) and bits * abs(exponent) > 2 * MAX_BITS:
        raise ToolError(f"a number has more than {MAX_BITS} bits; calculate with smaller ones")
    if abs(exponent) > MAX_BITS:  # of 1, 0 or -1, whose powers depend on evenness alone
        exponent = Fraction(exponent.numerator % 2 + 2)
    return Fraction(base**exponent.numerator)


_OPERATIONS: Mapping[type[ast.AST], _Operation] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def _round(values: Sequence[Fraction]) -> Fraction:
    if len(values) > 2:
        raise ToolError("round takes a number, and how many decimals")
    places = values[1] if len(values) == 2 else Fraction(0)
    if places.denominator != 1 or abs(places) > _MAX_ROUNDED_PLACES:
        raise ToolError(f"round takes a whole number of decimals, {_MAX_ROUNDED_PLACES} at most")
    return Fraction(round(values[0], places.numerator))


def _abs(values: Sequence[Fraction]) -> Fraction:
    if len(values) > 1:
        raise ToolError("abs takes one number")
    return abs(values[0])


def _sum(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0))


_FUNCTIONS: Mapping[str, Callable[[Sequence[Fraction]], Fraction]] = {
    "min": min,
    "max": max,
    "abs": _abs,
    "round": _round,
    "sum": _sum,
}


class _Calculation:
    """Computes the nodes of a parsed expression; `written` has its numbers digit by digit, which floats have not."""

    def __init__(self, written: str) -> None:
        self._written = written

    def value_of(self, node: ast.expr, depth: int) -> Fraction | bool:
        if isinstance(node, ast.Compare):
            return self._compare(node, depth)
        return self._number(node, depth)

    def _compare(self, node: ast.Compare, depth: int) -> bool:
        operands = [self._number(part, depth + 1) for part in (node.left, *node.comparators)]
        for sign, (first, second) in zip(node.ops, pairwise(operands), strict=True):
            if not _OPERATIONS[type(sign)](first, second):
                return False
        return True

    def _number(self, node: ast.expr, depth: int) -> Fraction:
        if depth > MAX_DEPTH:
            raise ToolError(
                f"has more than {MAX_DEPTH} operations within each other; use sum, or calculate it in parts"
            )
        value = self._compute(node, depth + 1)
        if max(abs(value.numerator).bit_length(), value.denominator.bit_length()) > MAX_BITS:
            raise ToolError(f"a number has more than {MAX_BITS} bits; calculate with smaller ones")
        return value

    def _compute(self, node: ast.expr, depth: int) -> Fraction:
        if isinstance(node, ast.Constant):
            return Fraction(self._written[node.col_offset : node.end_col_offset])
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
            value = self._number(node.operand, depth)
            return -value if isinstance(node.op, ast.USub) else value
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
            left = self._number(node.left, depth)
            right = self._number(node.right, depth)
            return Fraction(_OPERATIONS[type(node.op)](left, right))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            values = [self._number(part, depth) for part in _arguments_of(node)]
            if not values:
                raise ToolError(f"{node.func.id} takes numbers; write at least one")
            return _FUNCTIONS[node.func.id](values)
        raise ToolError(
            "is no arithmetic; write decimals with a point, and thousands without a comma"
        )


def _arguments_of(node: ast.Call) -> Sequence[ast.expr]:
    """Return the arguments of a call; those in a list count as written without it."""
    if len(node.args) == 1 and isinstance(node.args[0], ast.List):
        return node.args[0].elts
    return node.args
