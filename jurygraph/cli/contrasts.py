"""How the contrasts of a response were ranked, pair by pair: those ranked the wrong way are what a reader looks for."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from jurygraph.cli.text import number
from jurygraph.schema import Spec, Trace

CONTRAST = "contrast"
"""The combiner whose figures these are."""


class Ranked(NamedTuple):
    """One contrast: its id, the edit that made it, and what the response scores above it; None if it was not judged."""

    name: str
    edit: Mapping[str, Any]
    margin: float | None

    @property
    def rightly(self) -> bool:
        """Whether the contrast scores less than the response."""
        return self.margin is not None and self.margin > 0.0

    @property
    def told(self) -> str:
        """What the edit was, and how the two scored."""
        scored = "was not judged" if self.margin is None else f"scores {_above(self.margin)}"
        return f"{self.name} ({self.edit.get('says', self.edit.get('kind', 'an edit'))}) {scored}"


def _above(margin: float) -> str:
    return "as much as the response" if margin == 0.0 else f"{number(-margin)} above the response"


def ranked(trace: Trace, spec: Spec) -> list[Ranked]:
    """The contrasts of a trace under a component of combiner `contrast`, in the order of their ids."""
    asked = {question for one in spec.inputs.values() for question in one.questions}
    edits = {one.response.id: one.edit for material in trace.material for one in material.variants}
    shown = {name for verdict in trace.verdicts if verdict.question in asked for name in verdict.responses}
    figures = trace.reward.figures.get(spec.name, {})
    names = sorted(shown & edits.keys())
    margins = (figures.get(f"pair {place}") for place in range(1, len(names) + 1))
    return [Ranked(name, _mapping(edits[name]), margin) for name, margin in zip(names, margins, strict=True)]


def _mapping(edit: Any) -> Mapping[str, Any]:
    return edit if isinstance(edit, Mapping) else {}


def contrast_lines(trace: Trace, spec: Spec) -> Iterator[str]:
    """How many contrasts were ranked the right way, and each that was not."""
    found = ranked(trace, spec)
    if found:
        right = sum(one.rightly for one in found)
        yield f"{spec.name}: {right} of {len(found)} contrasts score less than the response"
        yield from (f"ranked the wrong way: {one.told}" for one in found if one.margin is not None and not one.rightly)
        yield from (f"not ranked: {one.told}" for one in found if one.margin is None)
