"""From what stakeholders' verdicts say to one reward: each one's utility û_i, and how a group's utilities count.

û_i = the mean of the stakeholder's verdicts by the weights of their layers; where a hard constraint is violated, at
      most `cap` times the mean of the hard constraints
R   = Σ w_i û_i (DecompR Eq. 2), or another rule of welfare over the same û_i
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jurygraph import aggregation
from jurygraph.agents.roles import Bools, Cells, Combiner, Component, Floats
from jurygraph.aggregation import stakeholders
from jurygraph.errors import PlanError
from jurygraph.schema import Input

RECORDED = ("difficulty", "calibration")
"""Params that are kept for the record and change nothing."""


class _Welfare(Combiner):
    """What the rules have in common: the masses are the weights w_i, frozen before any response was seen.

    Params: `hard` and `soft`, the places of each stakeholder's questions about such constraints; `cap`; and, for the
    record, `difficulty` and `calibration`, the terms and settings that the weights came from. The parts are the û_i;
    the figures those of the group.
    """

    takes: Sequence[str] = ()

    def freeze(self, inputs: Mapping[str, Input], params: Mapping[str, Any]) -> dict[str, Any]:
        total = float(aggregation.total([one.mass for one in inputs.values()]))
        if abs(total - 1.0) > stakeholders.SUM_TOLERANCE:
            raise PlanError(f"combiner {self.name!r} has masses that sum to {total}; choose masses that sum to 1")
        known = {*RECORDED, "hard", "soft", "cap", *self.takes}
        return super().freeze(inputs, {k: v for k, v in params.items() if k not in known}) | dict(params)

    def combine(self, cells: Mapping[str, Cells], params: Mapping[str, Any]) -> Component:
        columns = [
            _utility(one, params.get("hard", {}).get(name, ()), params.get("cap")) for name, one in cells.items()
        ]
        utility = np.stack([value for value, _ in columns], axis=1)
        some = np.stack([there for _, there in columns], axis=1)
        weight = np.where(some, np.array([one.mass for one in cells.values()]), 0.0)
        present = np.asarray(some.any(axis=1))
        scale = np.where(some.all(axis=1) | ~present, 1.0, aggregation.total(weight))
        value = self._welfare(weight / scale[:, None], utility, some, params)
        parts = {name: utility[:, place] for place, name in enumerate(cells)}
        return Component(value, present, parts, _figures(utility, cells, params.get("soft", {})))

    @abstractmethod
    def _welfare(self, weight: Floats, utility: Floats, some: Bools, params: Mapping[str, Any]) -> Floats:
        """R [R], from the weights, utilities, and where there is one, [R,n]."""


class Stakeholders(_Welfare):
    """R = Σ w_i û_i (DecompR Eq. 2).

    Where a stakeholder's questions were all gated out, the weights of the others are scaled up to 1.
    """

    name = "stakeholders"

    def _welfare(self, weight: Floats, utility: Floats, some: Bools, params: Mapping[str, Any]) -> Floats:
        return np.asarray(aggregation.total(weight * utility))


class Egalitarian(_Welfare):
    """R = Σ w_i û_i where everybody's û_i reaches the `floor`; else no more than the least û_i."""

    name = "egalitarian"
    takes = ("floor",)

    def _welfare(self, weight: Floats, utility: Floats, some: Bools, params: Mapping[str, Any]) -> Floats:
        together = np.asarray(aggregation.total(weight * utility))
        least = np.asarray(stakeholders.minimum(np.where(some, utility, 1.0)))
        return np.where(least < params["floor"], np.minimum(together, least), together)


class Nash(_Welfare):
    """R = Π û_i, Nash's product with nobody's disagreement worth anything: it has no weights, and one 0 makes it 0."""

    name = "nash"

    def _welfare(self, weight: Floats, utility: Floats, some: Bools, params: Mapping[str, Any]) -> Floats:
        counted = np.where(some, utility, 1.0)
        product = counted[:, 0]
        for column in range(1, counted.shape[1]):
            product = product * counted[:, column]
        return product


def _utility(cells: Cells, hard: Sequence[int], cap: float | None) -> tuple[Floats, Bools]:
    """û_i [R], and where there is one."""
    utility, some = cells.mean()
    if not len(hard) or cap is None:
        return utility, some
    places = list(hard)
    live = np.where(cells.live[:, places], 1.0, 0.0)
    asked = np.asarray(aggregation.total(live))
    held = aggregation.total(live * cells.value[:, places]) / np.where(asked > 0, asked, 1.0)
    violated = (cells.live[:, places] & ~cells.met[:, places]).any(axis=1)
    return np.where(violated, np.minimum(utility, cap * held), utility), some


def _figures(utility: Floats, cells: Mapping[str, Cells], soft: Mapping[str, Sequence[int]]) -> dict[str, Floats]:
    """DecompR's figures of the group: mean and least û, Gini and Jain, and the share of soft constraints addressed."""
    figures = {
        "group utility": stakeholders.group_utility(utility),
        "least utility": stakeholders.minimum(utility),
        "gini": stakeholders.gini(utility),
        "jain": stakeholders.jain(utility),
    }
    wished = [(cells[name], list(places)) for name, places in soft.items() if len(places)]
    if wished:
        met = np.concatenate([np.where(one.met[:, at] & one.live[:, at], 1.0, 0.0) for one, at in wished], axis=1)
        live = np.concatenate([np.where(one.live[:, at], 1.0, 0.0) for one, at in wished], axis=1)
        asked = np.asarray(aggregation.total(live))
        figures["preferences addressed"] = aggregation.total(met) / np.where(asked > 0, asked, 1.0)
    return {name: np.asarray(values) for name, values in figures.items()}
