"""Arithmetic as people type it: a small tokenizer and a precedence parser over exact fractions, without powers."""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

DEPTH_LIMIT = 30  # brackets and signs inside each other
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
    """A token and where it stands in the text. `kind`: blank, number, operator, bracket, percent, currency, other.

    Operators are spelled `+ - * /`; `x` is one only before a number.
    """

    kind: str
    text: str
    start: int
    end: int


def tokens(text: str, start: int, end: int) -> Iterator[Token]:
    """The tokens of `text[start:end]`, with offsets in `text`."""
    for match in _TOKEN.finditer(text, start, end):
        kind = match.lastgroup or "other"
        spelled = match.group()
        yield Token(kind, _OPERATORS.get(spelled, spelled) if kind == "operator" else spelled, *match.span())


def places(number: str) -> int:
    """How many digits a number has behind its point."""
    return len(number.partition(".")[2])


def value(expression: Sequence[Token], percent: Fraction) -> Fraction:
    """The exact value of an expression's tokens (blanks and currency signs left out); a percent sign is `percent`.

    Raises:
        NotArithmetic: it is no expression, or nested more than 30 deep.
        ZeroDivisionError: it divides by zero.
    """
    parser = _Parser(expression, percent)
    result = parser.sum(0)
    if parser.position != len(expression):
        raise NotArithmetic
    return Fraction(result)


class _Parser:
    """Whole numbers stay `int` until something is divided: it is several times as fast."""

    def __init__(self, expression: Sequence[Token], percent: Fraction) -> None:
        self.expression, self.percent, self.position = expression, percent, 0

    def sum(self, depth: int) -> Fraction | int:
        total = self.product(depth)
        while sign := self.taken("+", "-"):
            term = self.product(depth)
            total = total + term if sign == "+" else total - term
        return total

    def product(self, depth: int) -> Fraction | int:
        total = self.factor(depth)
        while sign := self.taken("*", "/"):
            term = self.factor(depth)
            total = total * term if sign == "*" else Fraction(total) / term
        return total

    def factor(self, depth: int) -> Fraction | int:
        if depth > DEPTH_LIMIT:
            raise NotArithmetic
        if sign := self.taken("+", "-"):
            return self.factor(depth + 1) * (-1 if sign == "-" else 1)
        result = self.atom(depth)
        return result * self.percent if self.taken("%", r"\%") else result

    def atom(self, depth: int) -> Fraction | int:
        if self.taken("("):
            result = self.sum(depth + 1)
            if not self.taken(")"):
                raise NotArithmetic
            return result
        token = self.expression[self.position] if self.position < len(self.expression) else None
        if token is None or token.kind != "number":
            raise NotArithmetic
        self.position += 1
        plain = token.text.replace(",", "")
        return int(plain) if plain.isdecimal() else Fraction(plain)

    def taken(self, *texts: str) -> str:
        """The next token's text if it is one of `texts`, which takes it; else nothing."""
        if self.position < len(self.expression) and self.expression[self.position].text in texts:
            self.position += 1
            return self.expression[self.position - 1].text
        return ""
