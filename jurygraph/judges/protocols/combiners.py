"""Compute a protocol's score R from its verdicts, as a fraction of the range from 1 to 10, by arithmetic alone."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jurygraph import aggregation
from jurygraph.arrays import Bools, Floats
from jurygraph.decision.combiners import Combiner, Component, Mean, ScoreMatrix
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


class AdaptiveSum(Combiner):
    """R = Σ w_i û_i / Σ w_i in each reply of a judge, and the mean over replies (DecompR, Appendix A.2, Decomposed).

    If the weights of a reply sum to 0, its value is 0. A weight without a verdict takes the value in [0, 1] that
    minimizes R, or that maximizes it if it is filled by 1. So a person whose weight is missing is not left out, the
    value never decreases when a cell rises from 0 to 1, and the bounds hold as for every combiner. Parts are the û_i;
    the diagnostics are R on the paper's scale, and the weights.
    """

    name = "adaptive"
    version = "1"
    batched = True
    needs_all_columns = True
    has_fixed_weights = False

    def has_direction(self, name: str) -> bool:
        """Return false for the weights, which are no scores."""
        return name != WEIGHT

    def freeze(self, inputs: Mapping[str, ComponentInput], params: Mapping[str, Any]) -> dict[str, Any]:
        super().freeze(inputs, params)
        if set(inputs) != {UTILITY, WEIGHT}:
            raise PlanError(
                f"combiner 'adaptive' takes the inputs {UTILITY!r} and {WEIGHT!r}, not {sorted(inputs)}; leave it to "
                "an evaluator that asks about both"
            )
        utilities = inputs[UTILITY].questions
        weights = inputs[WEIGHT].questions
        if len(utilities) != len(weights):
            counts = f"{len(utilities)} utilities and {len(weights)} weights"
            raise PlanError(f"combiner 'adaptive' has {counts}; give one weight for each")
        return {"people": list(map(_match_person, utilities, weights))}

    def combine(self, matrices: Mapping[str, ScoreMatrix], params: Mapping[str, Any]) -> Component:
        people: Sequence[str] = params["people"]
        utilities = matrices[UTILITY]
        weights = matrices[WEIGHT]
        # [R,n,K] for n people and K samples: the columns of one person come after those of another
        shape = (len(utilities.value), len(people), -1)
        live = (utilities.applicable & weights.applicable).reshape(shape)
        utility = utilities.value.reshape(shape)
        weight = np.where(live, weights.value.reshape(shape), 0.0)
        by_sample = _weighted_mean(utility, weight, live & ~weights.judged.reshape(shape))
        is_live = np.asarray(live.any(axis=1))
        value = _mean_over_samples(by_sample[:, None], is_live[:, None])[:, 0]
        total = np.asarray(aggregation.total(weight, axis=1))
        share = _mean_over_samples(weight / np.where(total > 0.0, total, 1.0)[:, None], live)
        parts = dict(zip(people, _mean_over_samples(utility, live).T, strict=True))
        shares = {f"weight of {name}": column for name, column in zip(people, share.T, strict=True)}
        return Component(value, np.asarray(is_live.any(axis=1)), parts, {"R": _to_native_scale(value), **shares})


def _match_person(utility: str, weight: str) -> str:
    for match in re.finditer(f"/{UTILITY}/", utility):
        before = utility[: match.start()]
        person = utility[match.end() :]
        if weight == f"{before}/{WEIGHT}/{person}":
            return person
    raise PlanError(f"combiner 'adaptive': {utility!r} and {weight!r} are not about the same person; ask about both")


def _weighted_mean(utility: Floats, weight: Floats, is_open: Bools) -> Floats:
    """Return Σ w_i û_i / Σ w_i of each reply, [R,K], where some weights are open, without a verdict.

    The least and the greatest R that the open weights allow are reached where each is 0 or 1: for the greatest, 1 where
    û_i is at least some û_j, for the least, 1 where it is at most that.
    """
    if not is_open.any():
        return _ratio(weight, utility)
    known_weights = np.where(is_open, 0.0, weight)
    least = greatest = _ratio(known_weights, utility)
    for index in range(utility.shape[1]):
        bound = utility[:, index : index + 1]
        least = np.minimum(least, _ratio(np.where(is_open & (utility <= bound), 1.0, known_weights), utility))
        greatest = np.maximum(greatest, _ratio(np.where(is_open & (utility >= bound), 1.0, known_weights), utility))
    is_filled_high = (is_open & np.greater(weight, 0.0)).any(axis=1)
    return np.where(is_filled_high, greatest, least)


def _ratio(weight: Floats, utility: Floats) -> Floats:
    """Return Σ w_i û_i / Σ w_i over the people, [R,K]; 0 where the weights sum to 0."""
    total = np.asarray(aggregation.total(weight, axis=1))
    is_positive = np.greater(total, 0.0)
    return np.where(is_positive, aggregation.total(weight * utility, axis=1) / np.where(is_positive, total, 1.0), 0.0)


def _mean_over_samples(values: Floats, live: Bools) -> Floats:
    """Return the mean of [R,n,K] over the live samples, [R,n]; 0 where there are none."""
    count = np.asarray(aggregation.total(np.where(live, 1.0, 0.0)))
    return np.asarray(aggregation.total(np.where(live, values, 0.0)) / np.where(count > 0.0, count, 1.0))
