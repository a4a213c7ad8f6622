"""Combine the verdicts of one judge into a reward component, by arithmetic alone: protocols, wins, strengths.

A protocol's component is its score R as a fraction of the range from 1 to 10. Comparisons are combined in both orders:
a pair that was judged in one order only, or in none, gives no response credit. For each response, the missing order
counts as lost, so that both get less.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
from pydantic import Field

from jurygraph import aggregation
from jurygraph.aggregation import pairwise
from jurygraph.aggregation.pairwise import bradley_terry
from jurygraph.arrays import Bools, Floats
from jurygraph.decision.combiners import (
    BoundArrays,
    Combiner,
    Component,
    ComponentInputs,
    InputMatrices,
    Mean,
    RowValuesByName,
    ScoreMatrix,
    count_true,
    totals,
    weighted_mean,
)
from jurygraph.errors import PlanError
from jurygraph.judges.protocols import HIGHEST_SCORE, LOWEST_SCORE, UTILITY_SUBJECT, WEIGHT_SUBJECT
from jurygraph.messages import format_count
from jurygraph.schema import Question
from jurygraph.schema.frozen_model import JsonFields, ParamsModel, RawParams


def _to_paper_scale(value: Floats) -> Floats:
    """Convert a value in [0, 1] to R, on the paper's scale."""
    return LOWEST_SCORE + (HIGHEST_SCORE - LOWEST_SCORE) * value


class InputWeightedMean(Mean):
    """R = Σ ω s / Σ ω by the weights of the inputs that apply (DecompR, Appendix A.2); `R` is a diagnostic."""

    name = "protocol"

    def combine(self, matrices: InputMatrices, params: RawParams) -> Component:
        component = super().combine(matrices, params)
        return replace(component, diagnostics={"R": _to_paper_scale(component.value)})


class AdaptiveSum(Combiner):
    """R = Σ w_i û_i / Σ w_i in each reply of a judge, and the mean over replies (DecompR, Appendix A.2, Decomposed).

    If the weights of a reply sum to 0, its value is 0. A reply of which a weight has no verdict has the value 0, or the
    highest û_i if the weight is filled by 1. So a person whose weight is missing is not left out, and the bounds hold.
    Parts are the û_i; the diagnostics are R on the paper's scale, and the weights.
    """

    name = "adaptive"
    version = "1"
    batched = True
    needs_all_columns = True
    has_fixed_weights = False

    def is_monotone_input(self, name: str) -> bool:
        """Return false for the weights, which are no scores."""
        return name != WEIGHT_SUBJECT

    def freeze(self, inputs: ComponentInputs, params: RawParams) -> JsonFields:
        super().freeze(inputs, params)
        if set(inputs) != {UTILITY_SUBJECT, WEIGHT_SUBJECT}:
            raise PlanError(
                f"combiner 'adaptive' takes the inputs {UTILITY_SUBJECT!r} and {WEIGHT_SUBJECT!r}, "
                f"not {sorted(inputs)}; leave it to an evaluator that asks about both"
            )
        utilities = inputs[UTILITY_SUBJECT].questions
        weights = inputs[WEIGHT_SUBJECT].questions
        if len(utilities) != len(weights):
            raise PlanError(
                f"combiner 'adaptive' has {len(utilities)} utilities and {len(weights)} weights; give one weight for "
                "each"
            )
        return {"people": list(map(_find_common_stakeholder, utilities, weights))}

    def combine(self, matrices: InputMatrices, params: RawParams) -> Component:
        people: Sequence[str] = params["people"]
        utilities = matrices[UTILITY_SUBJECT]
        weights = matrices[WEIGHT_SUBJECT]
        # [R,n,K] for n people and K samples: the columns of one person come after those of another
        shape = (len(utilities.value), len(people), -1)
        is_applicable = (utilities.applicable & weights.applicable).reshape(shape)
        utility = np.where(is_applicable, utilities.value.reshape(shape), 0.0)
        weight = np.where(is_applicable, weights.value.reshape(shape), 0.0)
        is_weight_unjudged = is_applicable & ~weights.judged.reshape(shape)
        total = totals(weight, axis=1)
        divisor = np.where(total > 0.0, total, 1.0)
        weighted_utility = aggregation.total(weight * utility, axis=1) / divisor
        # where some weights have no verdict, any û_i may be all that counts
        is_missing_weight_one = (is_weight_unjudged & np.greater(weight, 0.0)).any(axis=1)
        filled_utility = np.where(is_missing_weight_one, utility.max(axis=1), 0.0)
        utility_by_sample = np.where(
            is_weight_unjudged.any(axis=1), filled_utility, weighted_utility
        )
        applicable_sample_weights = np.where(is_applicable.any(axis=1), 1.0, 0.0)
        value, has_value = weighted_mean(utility_by_sample, applicable_sample_weights)
        applicable_weights = np.where(is_applicable, 1.0, 0.0)  # for means over the live samples
        share, _ = weighted_mean(weight / divisor[:, None], applicable_weights)
        means, _ = weighted_mean(utility, applicable_weights)
        parts = dict(zip(people, means.T, strict=True))
        shares = {f"weight of {name}": column for name, column in zip(people, share.T, strict=True)}
        return Component(value, has_value, parts, {"R": _to_paper_scale(value), **shares})


def _find_common_stakeholder(utility: str, weight: str) -> str:
    for match in re.finditer(f"/{UTILITY_SUBJECT}/", utility):
        before = utility[: match.start()]
        person = utility[match.end() :]
        if weight == f"{before}/{WEIGHT_SUBJECT}/{person}":
            return person
    raise PlanError(
        f"combiner 'adaptive': {utility!r} and {weight!r} are not about the same person; ask about both"
    )


ComparisonForm = Literal["pairs", "lists"]
FloatsOrBools = TypeVar("FloatsOrBools", Floats, Bools)


class PairPreferences(NamedTuple):
    """Every pair of a group from the side of each response: rows are responses, columns their opponents, [R,R].

    `first` and `second` are the preferences for the row in the two orders, read from `matrix`. An order without a
    verdict holds the fill value, from both sides: a fill of 0 means lost for the row. `is_compared` marks the pairs
    that were compared at all. `diagnostics`, [R] each, are diagnostics of the effect of the order.
    """

    matrix: ScoreMatrix
    first: Floats
    second: Floats
    is_compared: Bools
    diagnostics: RowValuesByName

    @property
    def outcomes(self) -> Floats:
        """The result of both orders for the row, 1, 0.5 or 0, [R,R]; 0 where nothing was compared."""
        return np.where(self.is_compared, pairwise.outcomes(self.first, self.second), 0.0)

    @property
    def opponent_counts(self) -> Floats:
        """The number of opponents that each response was compared with, [R]."""
        return count_true(self.is_compared)

    def fill_uncompared(self, value: Floats) -> Floats:
        """Return the value of each response, [R], with that of a cell without a verdict where there is no opponent.

        A response was compared with none because a gate excluded it or its material failed.
        """
        is_unjudged = self.matrix.applicable & ~self.matrix.judged
        uncompared_value = np.where(is_unjudged, self.matrix.value, 0.0).max(axis=1)
        return np.where(self.opponent_counts > 0, value, uncompared_value)

    def component(self, value: Floats, **diagnostics: Floats) -> Component:
        return Component(
            self.fill_uncompared(value),
            np.asarray(self.matrix.applicable.any(axis=1)),
            {},
            {**self.diagnostics, **diagnostics},
        )


def read_pair_verdicts(matrix: ScoreMatrix) -> PairPreferences:
    """Read verdicts on ordered pairs: column j of row i is the score of i, shown first, against j.

    Diagnostics: `flips`, the share of opponents at which the order decided, among those judged in both orders; and
    `first`, the share of verdicts that preferred the response shown first, among those that preferred one (0.5 without
    any).
    """
    size = len(matrix.value)
    applicable = _pad_columns(matrix.applicable, size)
    judged = _pad_columns(matrix.judged, size)
    first = _pad_columns(matrix.value, size)
    is_other_response = ~np.eye(size, dtype=np.bool_)
    is_compared = applicable & applicable.T & is_other_response
    # A fill is not turned round: 0 is a loss for the row, in whichever order the verdict is missing.
    second = np.where(judged.T, 1.0 - first.T, first.T)
    has_verdict = is_compared & judged
    is_judged_in_both = has_verdict & has_verdict.T
    diagnostics = {
        "flips": _flip_share(first, second, is_judged_in_both),
        "first": _first_preferred_share(first, is_judged_in_both),
    }
    return PairPreferences(matrix, first, second, is_compared, diagnostics)


def read_listing_verdicts(matrix: ScoreMatrix) -> PairPreferences:
    """Read verdicts of two listings: column s of row i is the rank score of i in listing s; one listing is reversed.

    Diagnostics: `flips`, as for pairs. The matrix does not tell which response was shown first in a listing.
    """
    size = len(matrix.value)
    applicable = _pad_columns(matrix.applicable, 2)
    judged = _pad_columns(matrix.judged, 2)
    value = _pad_columns(matrix.value, 2)
    first = _compare_ranks(value[:, 0], judged[:, 0])
    second = _compare_ranks(value[:, 1], judged[:, 1])
    is_row_applicable = np.asarray(applicable.all(axis=1))
    is_row_judged = np.asarray(judged.all(axis=1))
    is_other_response = ~np.eye(size, dtype=np.bool_)
    is_compared = is_row_applicable[:, None] & is_row_applicable & is_other_response
    is_judged_in_both = is_compared & is_row_judged[:, None] & is_row_judged
    diagnostics = {"flips": _flip_share(first, second, is_judged_in_both)}
    return PairPreferences(matrix, first, second, is_compared, diagnostics)


PREFERENCE_READERS: dict[ComparisonForm, Callable[[ScoreMatrix], PairPreferences]] = {
    "pairs": read_pair_verdicts,
    "lists": read_listing_verdicts,
}


def _flip_share(first: Floats, second: Floats, judged: Bools) -> Floats:
    flips = count_true(judged & pairwise.flips(first, second))
    pairs = count_true(judged)
    return flips / np.maximum(pairs, 1.0)


def _first_preferred_share(first: Floats, has_verdict: Bools) -> Floats:
    """Return the share of decided verdicts that preferred the first response; each counts for both of its pair."""
    is_decisive = has_verdict & (first != 0.5)
    is_win = has_verdict & (first > 0.5)
    verdicts = count_true(is_decisive) + count_true(is_decisive.T)
    wins = count_true(is_win) + count_true(is_win.T)
    return np.where(verdicts > 0, wins / np.maximum(verdicts, 1.0), 0.5)


def _compare_ranks(value: Floats, judged: Bools) -> Floats:
    """Compare ranks from the side of the row, [R,R]; where one of the two has no verdict, the fill value counts."""
    row_rank_score = value[:, None]
    is_row_judged = judged[:, None]
    lower_or_tied_result = np.where(row_rank_score < value, 0.0, 0.5)
    result = np.where(row_rank_score > value, 1.0, lower_or_tied_result)
    filled_value = np.where(is_row_judged, value, row_rank_score)
    return np.where(is_row_judged & judged, result, filled_value)


def _pad_columns(matrix: FloatsOrBools, width: int) -> FloatsOrBools:
    """Pad with empty columns up to a width, for opponents without a comparison."""
    return np.pad(matrix, ((0, 0), (0, width - matrix.shape[1])))


DEFAULT_PRIOR = 0.1
MIN_PRIOR = 0.01
MAX_PRIOR = 100.0
_ROUNDING_DECIMALS = (
    12  # of a probability: those beyond depend on the order of responses, and break ties by chance
)

_REQUIRED_VERDICTS_BY_FORM: Mapping[ComparisonForm, tuple[str, int, str]] = {
    "pairs": ("pair", 1, "pairwise"),
    "lists": ("group", 2, "listwise"),
}
"""Verdicts that each form needs: their scope, the number of samples, and the evaluator that asks for them."""
_SCOPE_NAMES = {"response": "response", "pair": "ordered pair", "group": "group"}


class WinShare(Combiner):
    """Share of its opponents that a response beats, from verdicts on ordered pairs: one input of one question.

    It is the mean over the opponents of the results of both orders: 1 won, 0.5 a tie or a flip, 0 lost.
    """

    name = "win-share"
    version = "1"
    needs_all_columns = True
    uses_other_rows = True
    shown: ClassVar[ComparisonForm] = "pairs"
    """The form in which the columns are read."""

    def freeze(self, inputs: ComponentInputs, params: RawParams) -> JsonFields:
        question_ids = chain.from_iterable(use.questions for use in inputs.values())
        number = len(list(question_ids))
        if number != 1:
            raise PlanError(
                f"combiner {self.name!r} reads the verdicts of one question, not of {number}"
            )
        return super().freeze(inputs, params)

    def validate_questions(self, questions: Sequence[Question], params: RawParams) -> None:
        form: ComparisonForm = params.get("shown", self.shown)
        scope, samples, evaluator = _REQUIRED_VERDICTS_BY_FORM[form]
        for question in questions:
            has_required_order = scope != "pair" or question.pairs == "ordered"
            if has_required_order and question.scope == scope and question.samples == samples:
                continue
            raise PlanError(
                f"combiner {self.name!r} reads {format_count(samples, 'verdict')} on each {_SCOPE_NAMES[scope]}, "
                f"and question {question.id!r} asks for {question.samples} on each {_SCOPE_NAMES[question.scope]}; "
                f"give it the verdicts of `{evaluator}`, without `samples` of the config's own"
            )

    def combine(self, matrices: InputMatrices, params: RawParams) -> Component:
        (matrix,) = matrices.values()
        preferences = PREFERENCE_READERS[self.shown](matrix)
        value = aggregation.total(preferences.outcomes) / np.maximum(
            preferences.opponent_counts, 1.0
        )
        return preferences.component(value)


class RankWinShare(WinShare):
    """Share of the other responses that a response is ranked above, from two listings in opposite orders."""

    name = "rank-share"
    shown = "lists"


class BradleyTerry(WinShare):
    """Mean probability p_i / (p_i + p_j) to win against the others, for strengths p that are fitted to all pairs.

    Each pair is one comparison; a tie or a flip is half a win for each. If all pairs were compared, the value is the
    share of wins W_i / m drawn to the middle: (W_i + a (1 - p_i)) / m, over m opponents. If some are unjudged, the
    strengths are those of the worst case for the response that is valued; unjudged pairs of others are ties.

    In addition to the diagnostics of the shares, `strength` has mean 1 over the group.
    """

    class Params(ParamsModel):
        prior: float = Field(DEFAULT_PRIOR, strict=True, ge=MIN_PRIOR, le=MAX_PRIOR)
        """a: how much the values are drawn to the middle."""
        shown: ComparisonForm = "pairs"
        """The kind of verdicts: on `pairs`, or on `lists`."""

    name = "bradley-terry"

    def combine(self, matrices: InputMatrices, params: RawParams) -> Component:
        (matrix,) = matrices.values()
        preferences = PREFERENCE_READERS[params["shown"]](matrix)
        strengths = _fit_strengths(preferences, params["prior"])
        own_strength = strengths.diagonal()
        win_probability = own_strength[:, None] / (own_strength[:, None] + strengths)
        expected_wins = aggregation.total(np.where(preferences.is_compared, win_probability, 0.0))
        value = np.asarray(expected_wins / np.maximum(preferences.opponent_counts, 1.0)).round(
            _ROUNDING_DECIMALS
        )
        return preferences.component(value, strength=np.array(own_strength))

    def bounds(
        self,
        low: InputMatrices,
        high: InputMatrices,
        params: RawParams,
    ) -> BoundArrays:
        """Return the value twice if all is judged, else bounds from (W_i + a (1 - p_i)) / m, with 0 < p_i < m + 1.

        Unjudged pairs of other responses change p_i alone, and so no value leaves these bounds.
        """
        (lower_bound_matrix,) = low.values()
        (upper_bound_matrix,) = high.values()
        if np.array_equal(lower_bound_matrix.value, upper_bound_matrix.value):
            value = self.combine(low, params).value
            return value, value
        read = PREFERENCE_READERS[params["shown"]]
        lowest_preferences = read(lower_bound_matrix)
        highest_preferences = read(upper_bound_matrix)
        opponent_count = np.maximum(lowest_preferences.opponent_counts, 1.0)
        prior = params["prior"]
        lowest = np.maximum(
            aggregation.total(lowest_preferences.outcomes) / opponent_count - prior, 0.0
        )
        highest = np.minimum(
            (aggregation.total(highest_preferences.outcomes) + prior) / opponent_count, 1.0
        )
        lower_bound = lowest_preferences.fill_uncompared(lowest)
        upper_bound = highest_preferences.fill_uncompared(highest)
        return lower_bound.round(_ROUNDING_DECIMALS), upper_bound.round(_ROUNDING_DECIMALS)


def _fit_strengths(preferences: PairPreferences, prior: float) -> Floats:
    """Return the strengths of all, as they count for response i in row i, [R,R]."""
    wins = preferences.outcomes
    unjudged_share = np.where(preferences.is_compared, 1.0 - wins - wins.T, 0.0)
    wins_with_ties = wins + unjudged_share / 2.0
    strengths_with_ties = bradley_terry(wins_with_ties, prior)
    rows = []
    for index, unjudged in enumerate(unjudged_share):
        worst_case_wins = wins_with_ties.copy()
        # What is missing of this response is won by its opponents; what is missing of others stays half for each.
        worst_case_wins[index] = wins[index]
        worst_case_wins[:, index] = np.where(preferences.is_compared[index], 1.0 - wins[index], 0.0)
        rows.append(
            bradley_terry(worst_case_wins, prior) if unjudged.any() else strengths_with_ties
        )
    return np.stack(rows)
