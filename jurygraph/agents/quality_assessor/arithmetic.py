"""Find the first false calculation of a solution, by code alone.

Each step's equalities are checked by `jurygraph.agents.maths.arithmetic`, in three readings of the text: unchanged,
without its annotations ("16 - 3 = <<16-3=13>>14" claims 16 - 3 = 14), and with the text after an annotation in place of
the annotation's own result ("9 eggs * $2 = <<9*2=18>>19" claims 9 * 2 = 19). A result that only lacks its sign after an
annotation ("5 - 8 = <<5-8=-3>>3 fewer") is not wrong, since the annotation has it.

Never called wrong are a number from an unknown source (right solutions bring in such numbers too), and an answer that
is not the last result (it is not a step, and may be in another unit).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from jurygraph.agents.maths import arithmetic
from jurygraph.agents.quality_assessor.segments import Segment, step_at
from jurygraph.messages import shorten
from jurygraph.schema import Evidence

_ANNOTATED = re.compile(r"<<([^<>\n]{0,400})=([^<>=\n]{0,400})>>(?=[$£€]?(\.?[0-9][0-9.,]{0,99}))")
_NOISE = Fraction(1, 10**9)
_MAX_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class FalseCalculation:
    """A false calculation, `text[start:end] == quote`, and the number of the step that contains it.

    `value` is the correct result; None if it divides by zero.
    """

    step: int
    quote: str
    start: int
    end: int
    value: Fraction | None

    @property
    def description(self) -> str:
        """Return the description of the error for messages."""
        truth = "it is not defined" if self.value is None else f"it is {float(self.value):.10g}"
        return f"{shorten(self.quote, _MAX_CHARACTERS)!r}, but {truth}"

    @property
    def evidence(self) -> Evidence:
        """Return the calculation as verified evidence."""
        return Evidence(quote=self.quote, start=self.start, end=self.end, verified=True)


def find_false_calculations(query: str, text: str, steps: Sequence[Segment]) -> list[FalseCalculation]:
    """Return the false calculations in a response, in the order of the text; one of several that overlap.

    One outside all steps counts to the last step before it, or to the first: nothing can be hidden behind the answer or
    outside the tags. Text that also occurs in the query is not the response's ("Why is 2 + 2 = 5 wrong?").
    """
    errors: list[FalseCalculation] = []
    for equality in sorted(_false_equalities(text), key=lambda step: (step.start, -step.end)):
        start, end = equality.start, equality.end
        if text[start:end] not in query and not (errors and start < errors[-1].end):
            step = step_at(steps, start)
            before = (candidate.number for candidate in steps if candidate.start <= start)
            number = step.number if step else max(before, default=1)
            errors.append(FalseCalculation(number, text[start:end], start, end, equality.value))
    return errors


def _false_equalities(text: str) -> Iterator[arithmetic.Step]:
    yield from (equality for equality in arithmetic.steps(text) if not equality.is_right)
    for reading in (_without_annotations(text), _with_continuations(text)):
        equalities = arithmetic.steps(reading) if reading != text else ()
        yield from (equality for equality in equalities if not equality.is_right and not _differs_by_sign(equality))


def _without_annotations(text: str) -> str:
    """Blank out each annotation that a number follows, so that all other offsets are unchanged."""
    return _ANNOTATED.sub(lambda match: " " * len(match[0]), text)


def _with_continuations(text: str) -> str:
    """Blank out the result of each annotation that another number follows, and put a boundary before it."""
    return _ANNOTATED.sub(
        lambda match: match[0] if match[2] == match[3] else f" ;{match[1]}={' ' * (len(match[2]) + 2)}", text
    )


def _differs_by_sign(equality: arithmetic.Step) -> bool:
    return equality.value is not None and abs(equality.value + equality.claimed) <= _NOISE * abs(equality.claimed)
