"""R_enhanced: the share of a response's contrasts that the evaluators rank below it (MACRM §3.3; our formula)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jurygraph import aggregation
from jurygraph.arrays import Bools, Floats
from jurygraph.decision.combiners import Combiner, Component, ScoreMatrix
from jurygraph.errors import PlanError
from jurygraph.schema import ComponentInput, Question

OF = "-of-"
SUBMITTED = "submitted"


class Contrast(Combiner):
    """Share of the contrasts that score less than the response itself, by the mean of the same evaluators of both.

    Inputs come in pairs: `NAME` has questions about the responses, and `NAME-of-…` the same about their contrasts; each
    pair is weighted by the weight of the first. A tie is not a correct ranking. A pair with an unjudged part counts by
    the rule for unjudged values: 0 for a gain. If no contrast could be made, there is nothing to rank: the component
    does not apply, and nothing is gained. Figures: the number of judged `pairs`, and the margin of each, in the order
    of the variants' ids: above 0 if it was ranked correctly.
    """

    name = "contrast"
    version = "1"
    batched = True
    needs_all_columns = True
    if_skipped = "left-out"
    ranks_contrasts = True

    def has_direction(self, name: str) -> bool:
        """Return false: a verdict on a contrast counts against the same verdict on the response."""
        return False

    def freeze(self, inputs: Mapping[str, ComponentInput], params: Mapping[str, Any]) -> dict[str, Any]:
        super().freeze(inputs, params)
        originals = [name for name in inputs if OF not in name]
        contrasts = {name: [other for other in inputs if other.startswith(f"{name}{OF}")] for name in originals}
        is_paired = all(len(found) == 1 for found in contrasts.values())
        if not originals or not is_paired or len(inputs) != 2 * len(originals):
            raise PlanError(
                "combiner 'contrast' takes inputs in twos, such as {accuracy: maths.accuracy, accuracy-of-contrasts: "
                "maths.accuracy-of-contrasts}; name the second of each NAME-of-..."
            )
        for key, component_input in inputs.items():
            if len(component_input.questions) != 1:
                raise PlanError(
                    f"input {key!r} holds {len(component_input.questions)} questions; name one of them by its id"
                )
        twos = {name: contrast for name, (contrast,) in contrasts.items()}
        for contrast in twos.values():
            if inputs[contrast].if_skipped == "zero":
                raise PlanError(
                    f"input {contrast!r}: a contrast that counts as zero would be credit; write `if_skipped: left-out`"
                )
        pairs = {name: [inputs[name].questions[0], inputs[contrast].questions[0]] for name, contrast in twos.items()}
        return {"twos": twos, "asked": pairs}

    def check_questions(self, questions: Sequence[Question], params: Mapping[str, Any]) -> None:
        for question in questions:
            if question.samples > 1 or question.scope != "response":
                raise PlanError(f"question {question.id!r} must have scope `response` and one sample")
        by_id = {question.id: question for question in questions}
        for name, (original, contrast) in params["asked"].items():
            _require_same_question(name, by_id[original], by_id[contrast])

    def combine(self, matrices: Mapping[str, ScoreMatrix], params: Mapping[str, Any]) -> Component:
        cell_pairs = [(matrices[original], matrices[contrast]) for original, contrast in sorted(params["twos"].items())]
        margin, is_judged, live, fill = _margins(cell_pairs)
        ranked = np.where(is_judged, np.where(margin > 0.0, 1.0, 0.0), fill)
        count = np.asarray(aggregation.total(np.where(live, 1.0, 0.0)))
        present: Bools = np.greater(count, 0.0)
        value = aggregation.total(np.where(live, ranked, 0.0)) / np.where(present, count, 1.0)
        shown_margin = np.where(live & is_judged, margin, np.nan)
        judged = np.asarray(aggregation.total(np.where(live & is_judged, 1.0, 0.0)))
        margins = {f"pair {number}": column for number, column in enumerate(shown_margin.T, 1)}
        shown = {name: column for name, column in margins.items() if not np.isnan(column).all()}
        return Component(value, present, {}, {"pairs": judged, **shown})


def _require_same_question(name: str, original: Question, contrast: Question) -> None:
    if original.material != SUBMITTED or contrast.material == SUBMITTED:
        raise PlanError(
            f"input {name!r} has to ask of the responses (no `material`), and {name}{OF}... of their contrasts"
        )
    evaluator = contrast.evaluator.partition(OF)[0]
    if original.version != contrast.version or (OF in contrast.evaluator and evaluator != original.evaluator):
        raise PlanError(
            f"inputs {name!r} and {name}{OF}...: {original.evaluator!r} and {evaluator!r} are not the same evaluator"
        )


def _margins(cell_pairs: Sequence[tuple[ScoreMatrix, ScoreMatrix]]) -> tuple[Floats, Bools, Bools, Floats]:
    """Return for each pair, [R,V]: the margin, if all of it was judged, if it exists, and its value if unjudged.

    The margin is the response's score minus its contrast's, by the mean over the pairs of inputs.
    """
    width = max(contrast.value.shape[1] for _, contrast in cell_pairs)
    shape = len(cell_pairs[0][0].value), width
    margin = np.zeros(shape)
    size = np.zeros(shape)
    fill = np.ones(shape)
    is_judged = np.full(shape, True)
    live = np.full(shape, False)
    for original, contrast in cell_pairs:
        weight = original.input_weight
        padding = ((0, 0), (0, width - contrast.value.shape[1]))
        columns: Sequence[Any] = (contrast.value, contrast.applicable, contrast.judged)
        value, exists, judged = (np.pad(column, padding) for column in columns)
        exists = exists & original.applicable[:, :1]
        both_judged = judged & original.judged[:, :1]
        margin = margin + np.where(exists, weight * (original.value[:, :1] - value), 0.0)
        size = size + np.where(exists, weight, 0.0)
        is_judged = is_judged & (both_judged | ~exists)
        fill = np.minimum(fill, np.where(exists & ~both_judged, np.where(judged, original.value[:, :1], value), 1.0))
        live = live | exists
    return margin / np.where(size > 0.0, size, 1.0), is_judged, live, fill
