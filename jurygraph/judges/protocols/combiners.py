"""Compute a protocol's score R from its verdicts, as a fraction of the range from 1 to 10, by arithmetic alone."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from jurygraph import aggregation
from jurygraph.aggregation.arrays import Bools, Floats
from jurygraph.decision.combiner import Combiner, Component, ScoreMatrix
from jurygraph.decision.combiners import Mean
from jurygraph.errors import PlanError
from jurygraph.judges.protocols.protocol import HIGHEST, LOWEST, UTILITY, WEIGHT
from jurygraph.schema import ComponentInput


def _to_native_scale(value: Floats) -> Floats:
    """Convert a value in [0, 1] to R, on the paper's scale."""
    return LOWEST + (HIGHEST - LOWEST) * value


class ProtocolMean(Mean):
    """R = Σ ω s / Σ ω by the weights of the inputs that apply (DecompR, Appendix A.2); `R` is a diagnostic."""

    name = "protocol"

    def combine(self, matrices: Mapping[str, ScoreMatrix], params: Mapping[str, Any]) -> Component:
        component = super().combine(matrices, params)
        return replace(component, diagnostics={"R": _to_native_scale(component.value)})


class _PeopleScores(NamedTuple):
    """Utilities and weights of n people in each reply of a judge, [R,n,K] for K samples.

    `live` [R,n,K] marks where both apply; `open` [R,n,K] marks weights without a verdict.
    """

    utility: Floats
    weight: Floats
    live: Bools
    open: Bools


class AdaptiveSum(Combiner):
    """R = Σ w_i û_i / Σ w_i in each reply of a judge, and the mean over replies (DecompR, Appendix A.2, Decomposed).

    If the weights of a reply sum to 0, its value is 0. A weight without a verdict takes the value in [0, 1] that
    minimizes R, or that maximizes it if it is filled by 1. So a person whose weight is missing is not left out, the
    value never decreases when a cell rises from 0 to 1, and the bounds hold as for every combiner. Parts are the û_i;
    the diagnostics are R on the paper's scale, and the weights.
    """

    name = "adaptive"
    needs_all_columns = True
    has_fixed_weights = False

    def freeze(self, inputs: Mapping[str, ComponentInput], params: Mapping[str, Any]) -> dict[str, Any]:
        super().freeze(inputs, params)
        if set(inputs) != {UTILITY, WEIGHT}:
            raise PlanError(
                f"combiner 'adaptive' takes the inputs {UTILITY!r} and {WEIGHT!r}, not {sorted(inputs)}; leave it to "
                "an evaluator that asks about both"
            )
        return {"people": _match_people(inputs[UTILITY].questions, inputs[WEIGHT].questions)}

    def combine(self, matrices: Mapping[str, ScoreMatrix], params: Mapping[str, Any]) -> Component:
        people: Sequence[str] = params["people"]
        judged = _split_by_person(matrices[UTILITY], matrices[WEIGHT], len(people))
        is_live = np.asarray(judged.live.any(axis=1))
        utility = _mean_over_samples(judged.utility, judged.live)
        total = np.asarray(aggregation.total(judged.weight, axis=1))
        share = _mean_over_samples(judged.weight / np.where(total > 0.0, total, 1.0)[:, None], judged.live)
        value = _mean_over_samples(_weighted_mean(judged)[:, None], is_live[:, None])[:, 0]
        parts = {name: utility[:, index] for index, name in enumerate(people)}
        weights = {f"weight of {name}": share[:, index] for index, name in enumerate(people)}
        return Component(value, np.asarray(is_live.any(axis=1)), parts, {"R": _to_native_scale(value), **weights})


def _match_people(utilities: Sequence[str], weights: Sequence[str]) -> list[str]:
    """Return the people that the questions are about, in order.

    Raises PlanError if utilities and weights are not of the same people.
    """
    if len(utilities) != len(weights):
        raise PlanError(
            f"combiner 'adaptive' has {len(utilities)} utilities and {len(weights)} weights; give one weight for each"
        )
    return [_match_person(*pair) for pair in zip(utilities, weights, strict=True)]


def _match_person(utility: str, weight: str) -> str:
    for match in re.finditer(f"/{UTILITY}/", utility):
        before, person = utility[: match.start()], utility[match.end() :]
        if weight == f"{before}/{WEIGHT}/{person}":
            return person
    raise PlanError(f"combiner 'adaptive': {utility!r} and {weight!r} are not about the same person; ask about both")


def _split_by_person(utility: ScoreMatrix, weight: ScoreMatrix, people: int) -> _PeopleScores:
    """Split the columns by person; they are those of one question after the other, each with all of its samples."""
    shape = (len(utility.value), people, -1)
    live = (utility.applicable & weight.applicable).reshape(shape)
    return _PeopleScores(
        utility=utility.value.reshape(shape),
        weight=np.where(live, weight.value.reshape(shape), 0.0),
        live=live,
        open=live & ~weight.judged.reshape(shape),
    )


def _weighted_mean(judged: _PeopleScores) -> Floats:
    """Return Σ w_i û_i / Σ w_i of each reply, [R,K]."""
    if not judged.open.any():
        return _ratio(judged.weight, judged.utility)
    is_filled_high = (judged.open & np.greater(judged.weight, 0.0)).any(axis=1)
    return np.where(is_filled_high, _extreme_mean(judged, greatest=True), _extreme_mean(judged, greatest=False))


def _extreme_mean(judged: _PeopleScores, greatest: bool) -> Floats:
    """Return the least or greatest R that the open weights allow, [R,K].

    It is reached where each open weight is 0 or 1: for the greatest, 1 where û_i is at least some û_j, for the least, 1
    where it is at most that.
    """
    known_weights = np.where(judged.open, 0.0, judged.weight)
    extreme = _ratio(known_weights, judged.utility)
    for index in range(judged.utility.shape[1]):
        bound = judged.utility[:, index : index + 1]
        beyond = judged.utility >= bound if greatest else judged.utility <= bound
        candidate = _ratio(np.where(judged.open & beyond, 1.0, known_weights), judged.utility)
        extreme = np.maximum(extreme, candidate) if greatest else np.minimum(extreme, candidate)
    return extreme


def _ratio(weight: Floats, utility: Floats) -> Floats:
    """Return Σ w_i û_i / Σ w_i over the people, [R,K]; 0 where the weights sum to 0."""
    total = np.asarray(aggregation.total(weight, axis=1))
    is_positive = np.greater(total, 0.0)
    return np.where(is_positive, aggregation.total(weight * utility, axis=1) / np.where(is_positive, total, 1.0), 0.0)


def _mean_over_samples(values: Floats, live: Bools) -> Floats:
    """Return the mean of [R,n,K] over the live samples, [R,n]; 0 where there are none."""
    count = np.asarray(aggregation.total(np.where(live, 1.0, 0.0)))
    return np.asarray(aggregation.total(np.where(live, values, 0.0)) / np.where(count > 0.0, count, 1.0))
