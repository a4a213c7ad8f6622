"""From a protocol's verdicts to its score R, as a share of the way from 1 to 10, by arithmetic alone."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from jurygraph import aggregation
from jurygraph.agents.combiners import Mean
from jurygraph.agents.roles import Bools, Cells, Combiner, Component, Floats
from jurygraph.errors import PlanError
from jurygraph.judges.protocols.decomposed import UTILITY, WEIGHT
from jurygraph.judges.protocols.scale import HIGHEST, LOWEST
from jurygraph.schema import Input


def _native(value: Floats) -> Floats:
    """R, on the paper's scale."""
    return LOWEST + (HIGHEST - LOWEST) * value


class ProtocolMean(Mean):
    """R = Σ ω s / Σ ω by the masses of the inputs, over those that apply (DecompR, Appendix A.2); `R` is a figure."""

    name = "protocol"

    def combine(self, cells: Mapping[str, Cells], params: Mapping[str, Any]) -> Component:
        one = super().combine(cells, params)
        return replace(one, figures={"R": _native(one.value)})


@dataclass(frozen=True, slots=True)
class _Judged:
    """What a judge said in each of its replies: utilities and weights of n people, [R,n,K] for K samples.

    `live` [R,n,K] is where both apply; a weight that is `open` [R,n,K] was not judged.
    """

    utility: Floats
    weight: Floats
    live: Bools
    open: Bools


class AdaptiveSum(Combiner):
    """R = Σ w_i û_i / Σ w_i in each of a judge's replies, and their mean (DecompR, Appendix A.2, Decomposed).

    Where the weights sum to 0 nothing is gained. A weight that was not judged counts whatever of [0, 1] makes the least
    of R, or the greatest where it is filled by 1: so nobody is left out whose weight is missing, the value never falls
    when a cell rises from 0 to 1, and the bounds are what they are for every combiner. Parts are the û_i; the figures
    are R on the paper's scale, and the weights.
    """

    name = "adaptive"
    keeps_columns: ClassVar[bool] = True
    fixes_weights: ClassVar[bool] = False

    def freeze(self, inputs: Mapping[str, Input], params: Mapping[str, Any]) -> dict[str, Any]:
        super().freeze(inputs, params)
        if set(inputs) != {UTILITY, WEIGHT}:
            raise PlanError(
                f"combiner 'adaptive' takes the inputs {UTILITY!r} and {WEIGHT!r}, not {sorted(inputs)}; leave it to "
                "an evaluator that asks about both"
            )
        return {"people": _people(inputs[UTILITY].questions, inputs[WEIGHT].questions)}

    def combine(self, cells: Mapping[str, Cells], params: Mapping[str, Any]) -> Component:
        people: Sequence[str] = params["people"]
        said = _by_person(cells[UTILITY], cells[WEIGHT], len(people))
        some = np.asarray(said.live.any(axis=1))
        utility = _over_samples(said.utility, said.live)
        share = _over_samples(_shares(said), said.live)
        value = _over_samples(_weighted(said)[:, None], some[:, None])[:, 0]
        parts = {name: utility[:, place] for place, name in enumerate(people)}
        weights = {f"weight of {name}": share[:, place] for place, name in enumerate(people)}
        return Component(value, np.asarray(some.any(axis=1)), parts, {"R": _native(value), **weights})


def _people(utilities: Sequence[str], weights: Sequence[str]) -> list[str]:
    """Whom the questions ask about, in their order. Raises PlanError where the two are not about the same people."""
    if len(utilities) != len(weights):
        raise PlanError(
            f"combiner 'adaptive' has {len(utilities)} utilities and {len(weights)} weights; give one weight for each"
        )
    return [_person(*both) for both in zip(utilities, weights, strict=True)]


def _person(utility: str, weight: str) -> str:
    for found in re.finditer(f"/{UTILITY}/", utility):
        before, person = utility[: found.start()], utility[found.end() :]
        if weight == f"{before}/{WEIGHT}/{person}":
            return person
    raise PlanError(f"combiner 'adaptive': {utility!r} and {weight!r} are not about the same person; ask about both")


def _by_person(utility: Cells, weight: Cells, people: int) -> _Judged:
    """The columns are those of one question after the other, each with all of its samples."""
    shape = (len(utility.value), people, -1)
    live = (utility.live & weight.live).reshape(shape)
    return _Judged(
        utility=utility.value.reshape(shape),
        weight=np.where(live, weight.value.reshape(shape), 0.0),
        live=live,
        open=live & ~weight.judged.reshape(shape),
    )


def _weighted(said: _Judged) -> Floats:
    """Σ w_i û_i / Σ w_i in each reply, [R,K]."""
    if not said.open.any():
        return _ratio(said.weight, said.utility)
    raised = (said.open & np.greater(said.weight, 0.0)).any(axis=1)
    return np.where(raised, _extreme(said, greatest=True), _extreme(said, greatest=False))


def _extreme(said: _Judged, greatest: bool) -> Floats:
    """The least or greatest that the open weights could make of it, [R,K].

    There each of them is 0 or 1: for the greatest 1 where û_i is some û_j or more, for the least where it is that or
    less.
    """
    settled = np.where(said.open, 0.0, said.weight)
    found = _ratio(settled, said.utility)
    for place in range(said.utility.shape[1]):
        bound = said.utility[:, place : place + 1]
        beyond = said.utility >= bound if greatest else said.utility <= bound
        reached = _ratio(np.where(said.open & beyond, 1.0, settled), said.utility)
        found = np.maximum(found, reached) if greatest else np.minimum(found, reached)
    return found


def _ratio(weight: Floats, utility: Floats) -> Floats:
    """Σ w_i û_i / Σ w_i over the people, [R,K]; 0 where the weights sum to 0."""
    total = np.asarray(aggregation.total(weight, axis=1))
    some = np.greater(total, 0.0)
    return np.where(some, aggregation.total(weight * utility, axis=1) / np.where(some, total, 1.0), 0.0)


def _shares(said: _Judged) -> Floats:
    """Everybody's share of the weights in each reply, [R,n,K]."""
    total = np.asarray(aggregation.total(said.weight, axis=1))
    return said.weight / np.where(total > 0.0, total, 1.0)[:, None]


def _over_samples(values: Floats, live: Bools) -> Floats:
    """Mean of [R,n,K] over the samples that there are, [R,n]; 0 where there is none."""
    count = np.asarray(aggregation.total(np.where(live, 1.0, 0.0)))
    return np.asarray(aggregation.total(np.where(live, values, 0.0)) / np.where(count > 0.0, count, 1.0))
