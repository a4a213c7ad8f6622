"""From comparisons in both orders to one component of the reward: shares of wins, and Bradley-Terry strengths.

A pair that was judged in one order only, or in none, gives nobody credit by being unjudged: the order that is missing
counts as lost for whoever asks, so that both get less.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, get_args

import numpy as np

from jurygraph import aggregation
from jurygraph.agents.roles import Cells, Combiner, Component, Floats
from jurygraph.aggregation.pairwise import bradley_terry
from jurygraph.errors import PlanError
from jurygraph.judges.pairwise.both_orders import READERS, BothOrders, Shown
from jurygraph.schema import Input, Question

PRIOR, LEAST_PRIOR, LARGEST_PRIOR = 0.1, 0.01, 100.0
_DIGITS = 12
"""Of a probability, behind the point: what lies beyond hangs on who stands where, and would break ties by chance."""


_READS: Mapping[Shown, tuple[str, int, str]] = {"pairs": ("pair", 1, "pairwise"), "lists": ("group", 2, "listwise")}
"""What is read as which: verdicts of this scope, so many samples each, as this evaluator asks for them."""
_WHAT = {"response": "response", "pair": "ordered pair", "group": "group"}


class _Comparing(Combiner):
    """What they share: one input, of one question, whose columns are the opponents or the listings."""

    keeps_columns = True
    across = True

    def freeze(self, inputs: Mapping[str, Input], params: Mapping[str, Any]) -> dict[str, Any]:
        asked = [name for one in inputs.values() for name in one.questions]
        if len(asked) != 1:
            raise PlanError(f"combiner {self.name!r} reads the verdicts of one question, not of {len(asked)}")
        return super().freeze(inputs, params)

    def fits(self, questions: Sequence[Question], params: Mapping[str, Any]) -> None:
        scope, samples, evaluator = _READS[self._reads(params)]
        for one in questions:
            if (one.scope, one.samples) != (scope, samples) or (scope == "pair" and one.pairs != "ordered"):
                raise PlanError(
                    f"combiner {self.name!r} reads {samples} verdict{'s' * (samples > 1)} on each {_WHAT[scope]}, and "
                    f"question {one.id!r} asks for {one.samples} on each {_WHAT[one.scope]}; give it the verdicts of "
                    f"`{evaluator}`, without `samples` of the config's own"
                )

    @abstractmethod
    def _reads(self, params: Mapping[str, Any]) -> Shown:
        """What its cells are read as."""


class _Share(_Comparing):
    """Mean over the opponents of what both orders come to: 1 won, 0.5 a tie or a flip, 0 lost."""

    shown: ClassVar[Shown]

    def _reads(self, params: Mapping[str, Any]) -> Shown:
        return self.shown

    def combine(self, cells: Mapping[str, Cells], params: Mapping[str, Any]) -> Component:
        (one,) = cells.values()
        orders = READERS[self.shown](one)
        value = aggregation.total(orders.outcomes) / np.maximum(orders.opponents, 1.0)
        return _component(orders, value, orders.figures)


class WinShare(_Share):
    """The share of its opponents that a response beats, from verdicts on ordered pairs."""

    name = "win-share"
    shown = "pairs"


class RankShare(_Share):
    """The share of the others above which a response is ranked, from two listings in opposite orders."""

    name = "rank-share"
    shown = "lists"


class BradleyTerry(_Comparing):
    """The mean probability p_i / (p_i + p_j) to win against the others, under strengths p that all pairs together say.

    One comparison a pair, of which a tie or a flip is half a win for each. Where all pairs were compared, it is the
    share of wins W_i / m drawn to the middle: (W_i + a (1 - p_i)) / m, over m opponents. Where some are unjudged, the
    strengths are those of the case that is worst for whoever asks; what is unjudged between others is a tie.

    Params: `prior`, a, from 0.01 to 100; `shown`, `pairs` or `lists`, for what the verdicts are on. A figure more than
    the shares have is `strength`, of mean 1 over the group.
    """

    name = "bradley-terry"

    def freeze(self, inputs: Mapping[str, Input], params: Mapping[str, Any]) -> dict[str, Any]:
        super().freeze(inputs, {key: value for key, value in params.items() if key not in ("prior", "shown")})
        prior, shown = params.get("prior", PRIOR), params.get("shown", "pairs")
        fits = isinstance(prior, int | float) and not isinstance(prior, bool)
        if not fits or not LEAST_PRIOR <= prior <= LARGEST_PRIOR:
            raise PlanError(f"prior is {prior!r}: a number from {LEAST_PRIOR:g} to {LARGEST_PRIOR:g} is needed")
        if shown not in get_args(Shown):
            raise PlanError(f"shown is {shown!r}: one of {', '.join(get_args(Shown))} is needed")
        return {"prior": float(prior), "shown": shown}

    def _reads(self, params: Mapping[str, Any]) -> Shown:
        shown: Shown = params["shown"]
        return shown

    def combine(self, cells: Mapping[str, Cells], params: Mapping[str, Any]) -> Component:
        (one,) = cells.values()
        orders = READERS[params["shown"]](one)
        strengths = _strengths(orders, params["prior"])
        own = strengths.diagonal()
        likely = own[:, None] / (own[:, None] + strengths)
        value = aggregation.total(np.where(orders.there, likely, 0.0)) / np.maximum(orders.opponents, 1.0)
        return _component(orders, _rounded(np.asarray(value)), {**orders.figures, "strength": np.array(own)})

    def bounds(
        self, low: Mapping[str, Cells], high: Mapping[str, Cells], params: Mapping[str, Any]
    ) -> tuple[Floats, Floats]:
        """Nothing to spare where all is judged. Else from (W_i + a (1 - p_i)) / m, with 0 < p_i < m + 1.

        What is unjudged between others moves p_i alone, and so nothing out of these bounds.
        """
        (least,), (most,) = low.values(), high.values()
        if np.array_equal(least.value, most.value):
            value = self.combine(low, params).value
            return value, value
        worst, best = (READERS[params["shown"]](one) for one in (least, most))
        opponents, prior = np.maximum(worst.opponents, 1.0), params["prior"]
        lowest = np.maximum(aggregation.total(worst.outcomes) / opponents - prior, 0.0)
        highest = np.minimum((aggregation.total(best.outcomes) + prior) / opponents, 1.0)
        compared = worst.opponents > 0
        ends = np.where(compared, lowest, worst.alone), np.where(compared, highest, best.alone)
        return _rounded(ends[0]), _rounded(ends[1])


def _rounded(likely: Floats) -> Floats:
    return likely.round(_DIGITS)


def _strengths(orders: BothOrders, prior: float) -> Floats:
    """Row i: the strengths of all as they count for i, [R,R]."""
    wins = orders.outcomes
    short = np.where(orders.there, 1.0 - wins - wins.T, 0.0)
    agreed = wins + short / 2.0
    shared = bradley_terry(agreed, prior).strength
    rows = []
    for place in range(len(wins)):
        if short[place].any():
            own = agreed.copy()
            own[place], own[:, place] = wins[place], np.where(orders.there[place], 1.0 - wins[place], 0.0)
            rows.append(bradley_terry(own, prior).strength)
        else:
            rows.append(shared)
    return np.stack(rows)


def _component(orders: BothOrders, value: Floats, figures: Mapping[str, Floats]) -> Component:
    return Component(np.where(orders.opponents > 0, value, orders.alone), orders.present, {}, figures)
