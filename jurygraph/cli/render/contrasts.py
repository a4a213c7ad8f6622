"""Ranking of a response's contrasts, pair by pair; those ranked the wrong way matter most to a reader."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from jurygraph.cli.render.text import format_number
from jurygraph.schema import ComponentSpec, Trace

CONTRAST = "contrast"
"""Name of the combiner that writes these figures."""


class RankedContrast(NamedTuple):
    """One contrast and how it was ranked.

    Attributes:
        name: id of the contrast.
        edit: the edit that produced it.
        margin: score of the response minus score of the contrast; None if the pair was not judged.
    """

    name: str
    edit: Mapping[str, Any]
    margin: float | None

    @property
    def is_correct(self) -> bool:
        """Return True if the contrast scores less than the response."""
        return self.margin is not None and self.margin > 0.0

    @property
    def description(self) -> str:
        """Return a sentence part with the edit and the difference of the two scores."""
        scored = "was not judged" if self.margin is None else f"scores {_format_margin(self.margin)}"
        return f"{self.name} ({self.edit.get('says', self.edit.get('kind', 'an edit'))}) {scored}"


def _format_margin(margin: float) -> str:
    return "as much as the response" if margin == 0.0 else f"{format_number(-margin)} above the response"


def ranked_contrasts(trace: Trace, spec: ComponentSpec) -> list[RankedContrast]:
    """Return the contrasts of a trace under a component of combiner `contrast`, in the order of their ids."""
    questions = {question for one in spec.inputs.values() for question in one.questions}
    edits = {one.response.id: one.edit for material in trace.material for one in material.variants}
    compared = {name for verdict in trace.verdicts if verdict.question in questions for name in verdict.responses}
    figures = trace.reward.diagnostics.get(spec.name, {})
    names = sorted(compared & edits.keys())
    margins = (figures.get(f"pair {pair}") for pair in range(1, len(names) + 1))
    return [RankedContrast(name, _as_mapping(edits[name]), margin) for name, margin in zip(names, margins, strict=True)]


def _as_mapping(edit: Any) -> Mapping[str, Any]:
    return edit if isinstance(edit, Mapping) else {}


def contrast_lines(trace: Trace, spec: ComponentSpec) -> Iterator[str]:
    """Return how many contrasts were ranked the right way, and a line for each that was not."""
    contrasts = ranked_contrasts(trace, spec)
    if contrasts:
        correct = sum(one.is_correct for one in contrasts)
        yield f"{spec.name}: {correct} of {len(contrasts)} contrasts score less than the response"
        yield from (
            f"ranked the wrong way: {one.description}"
            for one in contrasts
            if one.margin is not None and not one.is_correct
        )
        yield from (f"not ranked: {one.description}" for one in contrasts if one.margin is None)
