from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.tools.calculator import calculate, format_value
from jurygraph.tools.tool import ToolError
from tests.rows import all_rows
from tests.tools.inputs import call_tool, tool_input

_DECIMALS = st.decimals(0, 10_000, places=2).map(str)


@st.composite
def _expressions(draw: st.DrawFn, depth: int = 3) -> tuple[str, Fraction]:
    """An expression, and its value by Python's fractions."""
    kind = draw(st.sampled_from("number + - * / // % ** - min max sum abs round".split()))
    if depth == 0 or kind == "number":
        number = draw(_DECIMALS)
        return number, Fraction(number)
    left, first = draw(_expressions(depth - 1))
    right, second = draw(_expressions(depth - 1))
    if kind in ("min", "max", "sum"):
        value = {"min": min, "max": max, "sum": sum}[kind]([first, second])  # type: ignore[operator]
        return f"{kind}({left}, {right})", Fraction(value)
    if kind in ("abs", "round"):
        return f"{kind}(-({left}))", Fraction(abs(first) if kind == "abs" else round(-first))
    if kind == "**":
        exponent = draw(st.integers(-3, 3))
        if first == 0:
            exponent = 2
        return f"({left}) ** {exponent}", Fraction(first**exponent)
    if kind in ("/", "//", "%") and second == 0:
        right, second = "7", Fraction(7)
    values = {
        "+": lambda: first + second,
        "-": lambda: first - second,
        "*": lambda: first * second,
        "/": lambda: first / second,
        "//": lambda: Fraction(first // second),
        "%": lambda: first % second,
    }
    return f"({left}) {kind} ({right})", values[kind]()


@given(_expressions())
def test_arithmetic_is_that_of_fractions(case: tuple[str, Fraction]) -> None:
    expression, value = case
    assert calculate(expression) == value
    written, _, exactly = format_value(value).partition(" (rounded; exactly ")
    if exactly:
        assert Fraction(exactly.removesuffix(")")) == value
        assert abs(Fraction(written) - value) <= abs(value) / 10**18
    else:
        assert Fraction(written) == value


@all_rows(
    "expression, result",
    [
        ("0.1 + 0.2", "0.3"),
        ("0.1 + 0.2 == 0.3", "true"),
        ("1 < 2 <= 2 != 3 > 3", "false"),
        ("-2 ** 2", "-4"),
        ("-1 ** 4000", "-1"),
        ("(-1) ** 10000000001", "-1"),
        ("2 / 3", "0.66666666666666666667 (rounded; exactly 2/3)"),
        ("round(2.5) + round(2.345, 2)", "4.34"),
        ("sum([1, 2.5,\n 3])", "6.5"),
        ("12345678901234567890.5 * 2", "24691357802469135781"),
        ("1e300 / 1e299", "10"),
        ("+".join(["1"] * 500), "500"),
        ("-" * 900 + "1", "1"),
    ],
)
def test_results(expression: str, result: str) -> None:
    assert call_tool("calculate", tool_input(), expression=expression) == result


@all_rows(
    "expression, problem",
    [
        ("10 ** 10 ** 10", "1024 bits"),
        ("9 ** 9 ** 9 ** 9", "1024 bits"),
        ("1e999", "1024 bits"),
        ("1e9999", "character 1 "),
        ("0.5 ** 0.5", "whole exponent"),
        ("0 ** -1", "zero"),
        ("1 / (3 - 3)", "zero"),
        ("1 % 0", "zero"),
        ("1,200 + 5", "without a comma"),
        ("(1 + 2", "no complete expression"),
        ("1 + + ", "no complete expression"),
        ("((" * 150 + "1" + "))" * 150, "no complete expression"),
        ("__import__('os')", "character 1 "),
        ("().__class__", "character 3 "),
        ("min", "no arithmetic"),
        ("min()", "at least one"),
        ("sum(*[1])", "no arithmetic"),
        ("1 < (2 < 3)", "no arithmetic"),
        ("round(1, 1e50)", "decimals"),
        ("007", "no complete expression"),
        ("1_000", "character 1 "),
        ("１ + 1", "character 1 "),
        ("1if 1else 2", "character 1 "),
        ("1(2)", "no arithmetic"),
    ],
)
def test_what_is_no_arithmetic_or_too_large_is_refused(expression: str, problem: str) -> None:
    with pytest.raises(ToolError, match=problem):
        calculate(expression)
