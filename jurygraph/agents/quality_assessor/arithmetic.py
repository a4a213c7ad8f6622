"""Where the arithmetic of a solution first goes wrong, by code alone.

Each step's equalities are checked by `jurygraph.agents.maths.arithmetic`, in three readings of one text: as it stands,
without its annotations ("16 - 3 = <<16-3=13>>14" says 16 - 3 = 14), and with what stands behind an annotation in the
place of its own result ("9 eggs * $2 = <<9*2=18>>19" says 9 * 2 = 19). A result whose sign alone is left out behind an
annotation ("5 - 8 = <<5-8=-3>>3 fewer") is not wrong: the annotation has it.

Never called wrong are a number that is taken from elsewhere (right solutions bring in numbers that stand nowhere
before, too), and an answer that is not the last result (it is no step, and may be in another unit).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from jurygraph.agents.maths import arithmetic
from jurygraph.agents.quality_assessor.segments import Segment, segments, step_at
from jurygraph.sources.complaint import shortened

_ANNOTATED = re.compile(r"<<([^<>\n]{0,400})=([^<>=\n]{0,400})>>(?=[$£€]?(\.?[0-9][0-9.,]{0,99}))")
_NOISE = Fraction(1, 10**9)
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Slip:
    """A written calculation that is false, `text[start:end] == quote`, and the number of the step in which it stands.

    `value` is what it comes to; None where it divides by zero.
    """

    step: int
    quote: str
    start: int
    end: int
    value: Fraction | None

    @property
    def complaint(self) -> str:
        """What is wrong, as it is told."""
        truth = "it is not defined" if self.value is None else f"it is {float(self.value):.10g}"
        return f"{shortened(self.quote, _SHOWN)!r}, but {truth}"


def first_wrong(query: str, text: str) -> Slip | None:
    """The first false calculation in the steps of `text`, a response to `query`; None where there is none."""
    return next(iter(slips(query, text, segments(text))), None)


def slips(query: str, text: str, steps: Sequence[Segment]) -> list[Slip]:
    """The false calculations in a response, in the order of the text; one of several that overlap.

    One that stands in no step counts to the last step before it, or the first: nothing is hidden behind the answer or
    outside the tags. What the query writes, too, is none of the response's ("Why is 2 + 2 = 5 wrong?").
    """
    found: list[Slip] = []
    for equality in sorted(_false(text), key=lambda one: (one.start, -one.end)):
        quote = text[equality.start : equality.end]
        if quote not in query and not (found and equality.start < found[-1].end):
            found.append(Slip(_place(steps, equality.start), quote, equality.start, equality.end, equality.value))
    return found


def _place(steps: Sequence[Segment], start: int) -> int:
    """The number of the step in which something stands, or to which it counts."""
    step = step_at(steps, start)
    return step.number if step else max((one.number for one in steps if one.start <= start), default=1)


def _false(text: str) -> Iterator[arithmetic.Step]:
    yield from (one for one in arithmetic.steps(text) if not one.right)
    for reading in (_unannotated(text), _continued(text)):
        if reading != text:
            yield from (one for one in arithmetic.steps(reading) if not one.right and not _sign_left_out(one))


def _unannotated(text: str) -> str:
    """With blanks for each annotation that a number follows, so that everything else stays where it is."""
    return _ANNOTATED.sub(lambda found: " " * len(found[0]), text)


def _continued(text: str) -> str:
    """With blanks for the result of each annotation that another number follows, and a boundary before it."""
    return _ANNOTATED.sub(
        lambda found: found[0] if found[2] == found[3] else f" ;{found[1]}={' ' * (len(found[2]) + 2)}", text
    )


def _sign_left_out(one: arithmetic.Step) -> bool:
    return one.value is not None and abs(one.value + one.claimed) <= _NOISE * abs(one.claimed)
