"""Rubric criteria, judged by a model (GEAR's local event scores p_i): met or not, on a scale, or in parts."""

import re

from jurygraph.agents.judging.evaluator import JudgeEvaluator
from jurygraph.agents.judging.forms import Binary, PartialCredit, Scale
from jurygraph.agents.judging.items import Item
from jurygraph.agents.roles import EvaluatorInput
from jurygraph.prompts import load_prompt
from jurygraph.schema import Criterion

_NUMBER = re.compile(r"\s*-?\d+(?:\.\d+)?")


class Criteria(JudgeEvaluator):
    """Score how far each criterion of the rubric is met.

    A criterion is met or not, and its score is P(met); with a `scale`, its position on the scale in [0, 1]; with
    `parts`, the share of their weight that is met.
    """

    name = "criteria"
    prompt = load_prompt("criteria")
    audience = "criterion"
    item_name = "criterion"

    def item(self, inputs: EvaluatorInput) -> Item:
        about = inputs.task.about
        assert isinstance(about, Criterion)
        if about.parts:
            weights = tuple(part.weight for part in about.parts)
            return Item(about.text, PartialCredit(weights), tuple(part.text for part in about.parts))
        if about.scale is not None:
            return Item(about.text, Scale(*about.scale), anchors=tuple(sorted(about.anchors.items(), key=_sort_key)))
        return Item(about.text, Binary())


def _sort_key(anchor: tuple[str, str]) -> tuple[float, str]:
    """Return the sort key of an anchor: the value, or the lower end of the range, that it describes."""
    match = _NUMBER.match(anchor[0])
    return float(match[0]) if match else float("inf"), anchor[0]
