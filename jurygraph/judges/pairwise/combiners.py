"""Combine comparisons in both orders into a reward component: shares of wins, and Bradley-Terry strengths.

A pair that was judged in one order only, or in none, gives no response credit: for each response, the missing order
counts as lost, so that both get less.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, get_args

import numpy as np

from jurygraph import aggregation
from jurygraph.aggregation.arrays import Floats
from jurygraph.aggregation.pairwise import bradley_terry
from jurygraph.decision.combiner import Combiner, Component, ScoreMatrix
from jurygraph.errors import PlanError
from jurygraph.judges.pairwise.both_orders import READERS, BothOrders, ComparisonForm
from jurygraph.schema import ComponentInput, Question

PRIOR, MIN_PRIOR, MAX_PRIOR = 0.1, 0.01, 100.0
_DIGITS = 12
"""Decimal places of a probability. Digits beyond depend on the order of the responses, and would break ties by chance.
"""


_REQUIRED_VERDICTS: Mapping[ComparisonForm, tuple[str, int, str]] = {
    "pairs": ("pair", 1, "pairwise"),
    "lists": ("group", 2, "listwise"),
}
"""Verdicts that each form needs: their scope, the number of samples, and the evaluator that asks for them."""
_SCOPE_NAMES = {"response": "response", "pair": "ordered pair", "group": "group"}


class _ComparisonCombiner(Combiner):
    """Base of the combiners that take one input of one question, whose columns are opponents or listings."""

    needs_all_columns = True
    uses_other_rows = True

    def freeze(self, inputs: Mapping[str, ComponentInput], params: Mapping[str, Any]) -> dict[str, Any]:
        question_ids = [name for combiner_input in inputs.values() for name in combiner_input.questions]
        if len(question_ids) != 1:
            raise PlanError(f"combiner {self.name!r} reads the verdicts of one question, not of {len(question_ids)}")
        return super().freeze(inputs, params)

    def check_questions(self, questions: Sequence[Question], params: Mapping[str, Any]) -> None:
        scope, samples, evaluator = _REQUIRED_VERDICTS[self._form(params)]
        for question in questions:
            if (question.scope, question.samples) != (scope, samples) or (
                scope == "pair" and question.pairs != "ordered"
            ):
                raise PlanError(
                    f"combiner {self.name!r} reads {samples} verdict{'s' * (samples > 1)} on each "
                    f"{_SCOPE_NAMES[scope]}, and question {question.id!r} asks for {question.samples} on each "
                    f"{_SCOPE_NAMES[question.scope]}; give it the verdicts of `{evaluator}`, without `samples` of the "
                    "config's own"
                )

    @abstractmethod
    def _form(self, params: Mapping[str, Any]) -> ComparisonForm:
        """Return the form in which the columns are read."""


class _ShareCombiner(_ComparisonCombiner):
    """Mean over the opponents of the results of both orders: 1 won, 0.5 a tie or a flip, 0 lost."""

    shown: ClassVar[ComparisonForm]

    def _form(self, params: Mapping[str, Any]) -> ComparisonForm:
        return self.shown

    def combine(self, cells: Mapping[str, ScoreMatrix], params: Mapping[str, Any]) -> Component:
        (matrix,) = cells.values()
        orders = READERS[self.shown](matrix)
        value = aggregation.total(orders.outcomes) / np.maximum(orders.opponents, 1.0)
        return _build_component(orders, value, orders.diagnostics)


class WinShare(_ShareCombiner):
    """Share of its opponents that a response beats, from verdicts on ordered pairs."""

    name = "win-share"
    shown = "pairs"


class RankShare(_ShareCombiner):
    """Share of the other responses that a response is ranked above, from two listings in opposite orders."""

    name = "rank-share"
    shown = "lists"


class BradleyTerry(_ComparisonCombiner):
    """Mean probability p_i / (p_i + p_j) to win against the others, for strengths p that are fitted to all pairs.

    Each pair is one comparison; a tie or a flip is half a win for each. If all pairs were compared, the value is the
    share of wins W_i / m drawn to the middle: (W_i + a (1 - p_i)) / m, over m opponents. If some are unjudged, the
    strengths are those of the worst case for the response that is valued; unjudged pairs of others are ties.

    Params: `prior`, a, from 0.01 to 100; `shown`, `pairs` or `lists`, the kind of verdicts. In addition to the
    diagnostics of the shares, `strength` has mean 1 over the group.
    """

    name = "bradley-terry"

    def freeze(self, inputs: Mapping[str, ComponentInput], params: Mapping[str, Any]) -> dict[str, Any]:
        super().freeze(inputs, {key: value for key, value in params.items() if key not in ("prior", "shown")})
        prior, shown = params.get("prior", PRIOR), params.get("shown", "pairs")
        is_number = isinstance(prior, int | float) and not isinstance(prior, bool)
        if not is_number or not MIN_PRIOR <= prior <= MAX_PRIOR:
            raise PlanError(f"prior is {prior!r}: a number from {MIN_PRIOR:g} to {MAX_PRIOR:g} is needed")
        if shown not in get_args(ComparisonForm):
            raise PlanError(f"shown is {shown!r}: one of {', '.join(get_args(ComparisonForm))} is needed")
        return {"prior": float(prior), "shown": shown}

    def _form(self, params: Mapping[str, Any]) -> ComparisonForm:
        shown: ComparisonForm = params["shown"]
        return shown

    def combine(self, cells: Mapping[str, ScoreMatrix], params: Mapping[str, Any]) -> Component:
        (matrix,) = cells.values()
        orders = READERS[params["shown"]](matrix)
        strengths = _strengths(orders, params["prior"])
        own_strength = strengths.diagonal()
        likely = own_strength[:, None] / (own_strength[:, None] + strengths)
        value = aggregation.total(np.where(orders.compared, likely, 0.0)) / np.maximum(orders.opponents, 1.0)
        return _build_component(
            orders, _round_probability(np.asarray(value)), {**orders.diagnostics, "strength": np.array(own_strength)}
        )

    def bounds(
        self, low: Mapping[str, ScoreMatrix], high: Mapping[str, ScoreMatrix], params: Mapping[str, Any]
    ) -> tuple[Floats, Floats]:
        """Return the value twice if all is judged, else bounds from (W_i + a (1 - p_i)) / m, with 0 < p_i < m + 1.

        Unjudged pairs of other responses change p_i alone, and so no value leaves these bounds.
        """
        (low_matrix,), (high_matrix,) = low.values(), high.values()
        if np.array_equal(low_matrix.value, high_matrix.value):
            value = self.combine(low, params).value
            return value, value
        worst, best = (READERS[params["shown"]](matrix) for matrix in (low_matrix, high_matrix))
        opponents, prior = np.maximum(worst.opponents, 1.0), params["prior"]
        lowest = np.maximum(aggregation.total(worst.outcomes) / opponents - prior, 0.0)
        highest = np.minimum((aggregation.total(best.outcomes) + prior) / opponents, 1.0)
        compared = worst.opponents > 0
        limits = np.where(compared, lowest, worst.uncompared_value), np.where(compared, highest, best.uncompared_value)
        return _round_probability(limits[0]), _round_probability(limits[1])


def _round_probability(probability: Floats) -> Floats:
    return probability.round(_DIGITS)


def _strengths(orders: BothOrders, prior: float) -> Floats:
    """Return the strengths of all, as they count for response i in row i, [R,R]."""
    wins = orders.outcomes
    missing_wins = np.where(orders.compared, 1.0 - wins - wins.T, 0.0)
    agreed = wins + missing_wins / 2.0
    shared = bradley_terry(agreed, prior).strength
    rows = []
    for index in range(len(wins)):
        if missing_wins[index].any():
            worst_case = agreed.copy()
            worst_case[index], worst_case[:, index] = (
                wins[index],
                np.where(orders.compared[index], 1.0 - wins[index], 0.0),
            )
            rows.append(bradley_terry(worst_case, prior).strength)
        else:
            rows.append(shared)
    return np.stack(rows)


def _build_component(orders: BothOrders, value: Floats, figures: Mapping[str, Floats]) -> Component:
    return Component(np.where(orders.opponents > 0, value, orders.uncompared_value), orders.present, {}, figures)
