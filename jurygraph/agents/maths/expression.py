"""Arithmetic as people type it: a small tokenizer and a precedence parser over exact fractions, without powers."""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

DEPTH_LIMIT = 30  # nested brackets and signs
_TOKEN = re.compile(
    r"(?P<blank>[ \t]+)"
    r"|(?P<number>(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)"
    r"|(?P<operator>\*(?!\*)|[-+−–/÷×·⋅∗]|\\(?:times|cdot|div)(?![A-Za-z])|[xX](?=[ \t]*[0-9($£€.]))"
    r"|(?P<bracket>[()])|(?P<percent>\\?%)|(?P<currency>\\?\$|[£€])|(?P<other>[^\W\d_]+|\*+|.)",
    re.DOTALL,
)
_OPERATORS = {"−": "-", "–": "-", "÷": "/", "×": "*", "·": "*", "⋅": "*", "∗": "*", "x": "*", "X": "*"}
_OPERATORS |= {r"\times": "*", r"\cdot": "*", r"\div": "/"}


class NotArithmetic(Exception):
    """The text is not pure arithmetic within the limits."""


class Token(NamedTuple):
    """A token and its offsets in the text. `kind`: blank, number, operator, bracket, percent, currency, other.

    Operators are normalised to `+ - * /`; `x` is an operator only before a number.
    """

    kind: str
    text: str
    start: int
    end: int


def tokens(text: str, start: int, end: int) -> Iterator[Token]:
    """Yield the tokens of `text[start:end]`, with offsets in `text`."""
    for match in _TOKEN.finditer(text, start, end):
        kind = match.lastgroup or "other"
        written = match.group()
        yield Token(kind, _OPERATORS.get(written, written) if kind == "operator" else written, *match.span())


def decimal_places(number: str) -> int:
    """Return the number of decimals of a number."""
    return len(number.partition(".")[2])


def evaluate(expression: Sequence[Token], percent: Fraction) -> Fraction:
    """Return the exact value of tokens without blanks and currency signs; a percent sign multiplies by `percent`.

    Raises:
        NotArithmetic: it is not an expression, or nested more than 30 deep.
        ZeroDivisionError: it divides by zero.
    """
    parser = _Parser(expression, percent)
    result = parser.sum(0)
    if parser.position != len(expression):
        raise NotArithmetic
    return Fraction(result)


class _Parser:
    """Parser that keeps whole numbers as `int` until something is divided, which is several times as fast."""

    def __init__(self, expression: Sequence[Token], percent: Fraction) -> None:
        self.expression, self.percent, self.position = expression, percent, 0

    def sum(self, depth: int) -> Fraction | int:
        total = self.product(depth)
        while sign := self.take("+", "-"):
            term = self.product(depth)
            total = total + term if sign == "+" else total - term
        return total

    def product(self, depth: int) -> Fraction | int:
        total = self.factor(depth)
        while sign := self.take("*", "/"):
            term = self.factor(depth)
            total = total * term if sign == "*" else Fraction(total) / term
        return total

    def factor(self, depth: int) -> Fraction | int:
        if depth > DEPTH_LIMIT:
            raise NotArithmetic
        if sign := self.take("+", "-"):
            return self.factor(depth + 1) * (-1 if sign == "-" else 1)
        result = self.atom(depth)
        return result * self.percent if self.take("%", r"\%") else result

    def atom(self, depth: int) -> Fraction | int:
        if self.take("("):
            result = self.sum(depth + 1)
            if not self.take(")"):
                raise NotArithmetic
            return result
        token = self.expression[self.position] if self.position < len(self.expression) else None
        if token is None or token.kind != "number":
            raise NotArithmetic
        self.position += 1
        digits = token.text.replace(",", "")
        return int(digits) if digits.isdecimal() else Fraction(digits)

    def take(self, *texts: str) -> str:
        """Consume the next token if its text is one of `texts` and return the text; else return an empty text."""
        if self.position < len(self.expression) and self.expression[self.position].text in texts:
            self.position += 1
            return self.expression[self.position - 1].text
        return ""
