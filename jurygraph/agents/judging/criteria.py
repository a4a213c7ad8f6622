"""Rubric criteria, judged by a model (GEAR's local event scores p_i): met or not, on a scale, or in parts."""

import re

from jurygraph.agents.judging.evaluator import Judging
from jurygraph.agents.judging.forms import InParts, MetOrNot, OnScale
from jurygraph.agents.judging.items import Item
from jurygraph.agents.roles import Ask
from jurygraph.prompts import load_prompt
from jurygraph.schema import Criterion

_NUMBER = re.compile(r"\s*-?\d+(?:\.\d+)?")


class Criteria(Judging):
    """Whether, or how far, each criterion of the rubric is met.

    A criterion is met or not, and its score is P(met); with a `scale`, its score is how far up the scale it lies; with
    `parts`, the share of their weight that is met.
    """

    name = "criteria"
    prompt = load_prompt("criteria")
    audience = "criterion"
    noun = "criterion"

    def item(self, ask: Ask) -> Item:
        about = ask.task.about
        assert isinstance(about, Criterion)
        if about.parts:
            weights = tuple(part.weight for part in about.parts)
            return Item(about.text, InParts(weights), tuple(part.text for part in about.parts))
        if about.scale is not None:
            return Item(about.text, OnScale(*about.scale), anchors=tuple(sorted(about.anchors.items(), key=_by_number)))
        return Item(about.text, MetOrNot())


def _by_number(anchor: tuple[str, str]) -> tuple[float, str]:
    """Anchors in the order of the values, or of the lower ends of the ranges, that they describe."""
    first = _NUMBER.match(anchor[0])
    return float(first[0]) if first else float("inf"), anchor[0]
