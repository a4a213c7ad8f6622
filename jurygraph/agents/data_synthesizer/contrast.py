"""R_enhanced: how many contrasts of a response the evaluators rank below it (MACRM §3.3; the formula is ours)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jurygraph import aggregation
from jurygraph.agents.roles import Bools, Cells, Combiner, Component, Floats
from jurygraph.errors import PlanError
from jurygraph.schema import Input, Question

OF = "-of-"
SUBMITTED = "submitted"


class Contrast(Combiner):
    """Share of the contrasts that score less than the response itself, by the mean of the same evaluators of both.

    Inputs come in twos: `NAME` asks of the responses, and `NAME-of-…` asks the same of their contrasts; each two count
    by the mass of the first. A tie is no right ranking. A pair of which something was not judged counts as the rule
    fills what is unjudged: 0 for a gain. Where no contrast could be made, nothing is gained. Figures: how many `pairs`
    were judged, and the margin of each, in the order of the variants' ids: above 0 where it was ranked the right way.
    """

    name = "contrast"
    keeps_columns = True

    def freeze(self, inputs: Mapping[str, Input], params: Mapping[str, Any]) -> dict[str, Any]:
        super().freeze(inputs, params)
        own = [name for name in inputs if OF not in name]
        twos = {name: [one for one in inputs if one.startswith(f"{name}{OF}")] for name in own}
        if not own or any(len(found) != 1 for found in twos.values()) or len(inputs) != 2 * len(own):
            raise PlanError(
                "combiner 'contrast' takes inputs in twos, such as {accuracy: maths.accuracy, accuracy-of-contrasts: "
                "maths.accuracy-of-contrasts}; name the second of each NAME-of-..."
            )
        for key, one in inputs.items():
            if len(one.questions) != 1:
                raise PlanError(f"input {key!r} holds {len(one.questions)} questions; name one of them by its id")
        for (other,) in twos.values():
            if inputs[other].gated == "zero":
                raise PlanError(
                    f"input {other!r}: a contrast that counts as zero would be credit; write `gated: missing`"
                )
        asked = {name: [inputs[name].questions[0], inputs[found[0]].questions[0]] for name, found in twos.items()}
        return {"twos": {name: found[0] for name, found in twos.items()}, "asked": asked}

    def fits(self, questions: Sequence[Question], params: Mapping[str, Any]) -> None:
        for question in questions:
            if question.samples > 1 or question.scope != "response":
                raise PlanError(f"question {question.id!r} is not asked once of each response alone; ask it so")
        by_id = {question.id: question for question in questions}
        for name, (own, other) in params["asked"].items():
            _refuse_mismatch(name, by_id[own], by_id[other])

    def combine(self, cells: Mapping[str, Cells], params: Mapping[str, Any]) -> Component:
        twos = [(cells[own], cells[other]) for own, other in sorted(params["twos"].items())]
        masses = np.array([own.mass for own, _ in twos])
        width = max(other.value.shape[1] for _, other in twos)
        margin, known, live, fill = _pairs(twos, masses, width)
        ranked = np.where(known, np.where(margin > 0.0, 1.0, 0.0), fill)
        count = np.asarray(aggregation.total(np.where(live, 1.0, 0.0)))
        present: Bools = np.greater(count, 0.0)
        value = aggregation.total(np.where(live, ranked, 0.0)) / np.where(present, count, 1.0)
        told = np.where(live & known, margin, np.nan)
        judged = np.asarray(aggregation.total(np.where(live & known, 1.0, 0.0)))
        margins = {f"pair {place + 1}": told[:, place] for place in range(width) if not np.isnan(told[:, place]).all()}
        return Component(value, present, {}, {"pairs": judged, **margins})


def _refuse_mismatch(name: str, own: Question, other: Question) -> None:
    """Raise PlanError where two inputs are not the same question, once of the response and once of its contrasts."""
    if own.of != SUBMITTED or other.of == SUBMITTED:
        raise PlanError(f"input {name!r} has to ask of the responses (no `of`), and {name}{OF}... of their contrasts")
    stated = other.evaluator.partition(OF)[0]
    if own.version != other.version or (OF in other.evaluator and stated != own.evaluator):
        raise PlanError(
            f"inputs {name!r} and {name}{OF}...: {own.evaluator!r} and {stated!r} are not the same evaluator"
        )


def _pairs(twos: Sequence[tuple[Cells, Cells]], masses: Floats, width: int) -> tuple[Floats, Bools, Bools, Floats]:
    """Of each pair, [R,V]: the margin, whether all of it was judged, whether there is one, and what it counts if not.

    The margin is what the response scores above its contrast, by the mean over the twos that ask of it.
    """
    rows = len(twos[0][0].value)
    margin, size = np.zeros((rows, width)), np.zeros((rows, width))
    known, live = np.full((rows, width), True), np.full((rows, width), False)
    fill = np.ones((rows, width))
    for (own, other), mass in zip(twos, masses, strict=True):
        value, there, judged = (_wide(one, width) for one in (other.value, other.live, other.judged))
        there = there & own.live[:, :1]
        both = judged & own.judged[:, :1]
        margin = margin + np.where(there, mass * (own.value[:, :1] - value), 0.0)
        size = size + np.where(there, mass, 0.0)
        known = known & (both | ~there)
        fill = np.minimum(fill, np.where(there & ~both, np.where(judged, own.value[:, :1], value), 1.0))
        live = live | there
    return margin / np.where(size > 0.0, size, 1.0), known, live, fill


def _wide(array: Any, width: int) -> Any:
    """The array with columns up to a width, of nothing."""
    return np.pad(array, ((0, 0), (0, width - array.shape[1])))
