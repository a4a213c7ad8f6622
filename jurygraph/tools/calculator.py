"""`calculate`: arithmetic that is exact, as fractions, with every size bounded before anything is computed."""

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any

from pydantic import StringConstraints

from jurygraph.errors import ToolError
from jurygraph.tools.tool import Tool, ToolArguments, ToolInput

MAX_NUMBER_BITS = 1024
"""Of a numerator or denominator: about 300 digits."""
MAX_DECIMAL_PLACES = 50
"""Decimals up to which a result is written out; a longer one is rounded to 20 digits."""
_ROUNDED_DIGITS = 20
_MAX_ROUNDING_PLACES = 100
_NUMBER_PATTERN = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?(?![\w.])"
_TOKEN_PATTERN = re.compile(
    rf"(?:{_NUMBER_PATTERN}|min|max|abs|round|sum|\*\*|//|[<>=!]=|[-+*/%<>(),\[\]]|\s+)*", re.ASCII
)


class CalculateArguments(ToolArguments):
    expression: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    """Such as `(3 * 12.50 + 8) / 2`, or `sum(1, 2, 3) <= 7`."""


class CalculateTool(Tool):
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
    normalised_expression = " ".join(expression.split())
    # Only these signs reach Python's parser, which could otherwise warn, or read names.
    match = _TOKEN_PATTERN.match(normalised_expression)
    assert match is not None, "it may match nothing"
    if match.end() < len(normalised_expression):
        raise ToolError(
            f"cannot be read at character {match.end() + 1} of the expression; write numbers such as 1200.50, "
            "+ - * / // % **, parentheses, comparisons, and min, max, abs, round and sum"
        )
    try:
        syntax_tree = ast.parse(normalised_expression, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ToolError(
            "is no complete expression; write one such as (3 * 12.50 + 8) / 2"
        ) from error
    try:
        return _evaluate_tree(syntax_tree, normalised_expression)
    except ZeroDivisionError as error:
        raise ToolError("divides by zero") from error
    except KeyError as error:
        raise ToolError(
            "is no arithmetic; write decimals with a point, and thousands without a comma"
        ) from error


def format_value(value: Fraction | bool) -> str:
    """Return a value as a decimal if it has one of up to 50 places, else rounded, next to the fraction."""
    if isinstance(value, bool):
        return str(value).lower()
    for places in range(MAX_DECIMAL_PLACES + 1):
        scaled_value = value * 10**places
        if scaled_value.denominator == 1:
            return _write_decimal(scaled_value.numerator, places)
    digits = len(str(abs(value.numerator))) - len(str(value.denominator))
    places = max(0, _ROUNDED_DIGITS - digits)
    rounded_text = _write_decimal(round(value * 10**places), places)
    return f"{rounded_text} (rounded; exactly {value.numerator}/{value.denominator})"


def _write_decimal(scaled_value: int, places: int) -> str:
    return f"{Decimal(f'{scaled_value}e-{places}'):f}"


_TOO_LARGE_MESSAGE = f"a number has more than {MAX_NUMBER_BITS} bits; calculate with smaller ones"
_BinaryOperation = Callable[[Fraction, Fraction], Any]


def _raise_to_power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        raise ToolError("a power has a whole exponent; write one")
    bit_count = max(base.numerator.bit_length(), base.denominator.bit_length())
    if base not in (-1, 0, 1) and bit_count * abs(exponent) > 2 * MAX_NUMBER_BITS:
        raise ToolError(_TOO_LARGE_MESSAGE)
    return Fraction(base**exponent.numerator)


_BINARY_OPERATIONS: Mapping[type[ast.AST], _BinaryOperation] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _raise_to_power,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def _round_fraction(value: Fraction, places: Fraction = Fraction(0)) -> Fraction:
    if places.denominator != 1 or abs(places) > _MAX_ROUNDING_PLACES:
        raise ToolError(f"round takes a whole number of decimals, {_MAX_ROUNDING_PLACES} at most")
    return Fraction(round(value, places.numerator))


_FUNCTION_BY_NAME: Mapping[str, Callable[[Sequence[Fraction]], Fraction]] = {
    "min": min,
    "max": max,
    "sum": lambda values: sum(values, Fraction(0)),
    "abs": lambda values: abs(*values),
    "round": lambda values: _round_fraction(*values),
}


def _evaluate_tree(syntax_tree: ast.expr, expression: str) -> Fraction | bool:
    """Return the value of a parsed expression; a part that is no arithmetic raises KeyError.

    `expression` has its numbers digit by digit, which floats have not.
    """
    numbers: dict[ast.AST, Fraction] = {}
    # Parts come before the whole that they belong to: without recursion any depth that was parsed can be computed.
    for node in reversed([*ast.walk(syntax_tree)]):
        number = _evaluate_ast_node(node, numbers, expression)
        if number is None:
            continue
        if max(number.numerator.bit_length(), number.denominator.bit_length()) > MAX_NUMBER_BITS:
            raise ToolError(_TOO_LARGE_MESSAGE)
        numbers[node] = number
    if not isinstance(syntax_tree, ast.Compare):
        return numbers[syntax_tree]
    operands = [numbers[part] for part in (syntax_tree.left, *syntax_tree.comparators)]
    return all(
        _BINARY_OPERATIONS[type(sign)](first, second)
        for sign, (first, second) in zip(syntax_tree.ops, pairwise(operands), strict=True)
    )


def _evaluate_ast_node(
    node: ast.AST, numbers: Mapping[ast.AST, Fraction], expression: str
) -> Fraction | None:
    """Return the number that a node is, from those of its parts; None for other nodes, such as signs and names."""
    match node:
        case ast.Constant():
            return Fraction(expression[node.col_offset : node.end_col_offset])
        case ast.UnaryOp():  # of its signs, only these two are read
            value = numbers[node.operand]
            return -value if isinstance(node.op, ast.USub) else value
        case ast.BinOp():
            operation = _BINARY_OPERATIONS[type(node.op)]
            return Fraction(operation(numbers[node.left], numbers[node.right]))
        case ast.Call(func=ast.Name(id=name), args=[ast.List(elts=parts)] | parts):
            values = [numbers[part] for part in parts]
            try:
                return _FUNCTION_BY_NAME[name](values)
            except (TypeError, ValueError) as error:
                raise ToolError(
                    f"{name} takes other numbers: abs has one, round one and its decimals, and the others at least one"
                ) from error
        case _:
            return None
