"""From stakeholders' verdicts to one reward: each stakeholder's utility û_i, and welfare rules over a group of them.

û_i = the mean of the stakeholder's verdicts, weighted by layer; if a hard constraint is violated, at most `cap` times
      the mean of the hard constraints
R   = Σ w_i û_i (DecompR Eq. 2), or another rule of welfare over the same û_i
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jurygraph import aggregation
from jurygraph.aggregation import stakeholders
from jurygraph.aggregation.arrays import Bools, Floats
from jurygraph.decision.combiner import Combiner, Component, ScoreMatrix
from jurygraph.errors import PlanError
from jurygraph.schema import ComponentInput

RECORD_ONLY_PARAMS = ("difficulty", "calibration")
"""Params that are stored for the record and do not affect the result."""


class _Welfare(Combiner):
    """Base class of the welfare rules: the masses are the weights w_i, frozen before any response was seen.

    Params: `hard` and `soft`, the column indices of each stakeholder's questions about such constraints; `cap`; and,
    for the record, `difficulty` and `calibration`, the terms and settings that the weights come from. The parts are the
    û_i; the figures are those of the group.
    """

    extra_params: Sequence[str] = ()

    def freeze(self, inputs: Mapping[str, ComponentInput], params: Mapping[str, Any]) -> dict[str, Any]:
        total = float(aggregation.total([cells_of_input.total_weight for cells_of_input in inputs.values()]))
        if abs(total - 1.0) > stakeholders.SUM_TOLERANCE:
            raise PlanError(f"combiner {self.name!r} has masses that sum to {total}; choose masses that sum to 1")
        known = {*RECORD_ONLY_PARAMS, "hard", "soft", "cap", *self.extra_params}
        return super().freeze(inputs, {k: v for k, v in params.items() if k not in known}) | dict(params)

    def combine(self, cells: Mapping[str, ScoreMatrix], params: Mapping[str, Any]) -> Component:
        columns = [
            _utility(stakeholder_cells, params.get("hard", {}).get(name, ()), params.get("cap"))
            for name, stakeholder_cells in cells.items()
        ]
        utility = np.stack([value for value, _ in columns], axis=1)
        has_utility = np.stack([present_rows for _, present_rows in columns], axis=1)
        weight = np.where(
            has_utility, np.array([stakeholder_cells.total_weight for stakeholder_cells in cells.values()]), 0.0
        )
        present = np.asarray(has_utility.any(axis=1))
        scale = np.where(has_utility.all(axis=1) | ~present, 1.0, aggregation.total(weight))
        value = self._welfare(weight / scale[:, None], utility, has_utility, params)
        parts = {name: utility[:, place] for place, name in enumerate(cells)}
        return Component(value, present, parts, _figures(utility, cells, params.get("soft", {})))

    @abstractmethod
    def _welfare(self, weight: Floats, utility: Floats, has_utility: Bools, params: Mapping[str, Any]) -> Floats:
        """Return R [R] from the weights, the utilities and the mask of utilities that exist, each [R,n]."""


class Stakeholders(_Welfare):
    """R = Σ w_i û_i (DecompR Eq. 2).

    If all of a stakeholder's questions were gated out, the weights of the others are scaled up to sum to 1.
    """

    name = "stakeholders"

    def _welfare(self, weight: Floats, utility: Floats, has_utility: Bools, params: Mapping[str, Any]) -> Floats:
        return np.asarray(aggregation.total(weight * utility))


class Egalitarian(_Welfare):
    """R = Σ w_i û_i if every û_i reaches the `floor`; otherwise no more than the least û_i."""

    name = "egalitarian"
    extra_params = ("floor",)

    def _welfare(self, weight: Floats, utility: Floats, has_utility: Bools, params: Mapping[str, Any]) -> Floats:
        weighted = np.asarray(aggregation.total(weight * utility))
        least = np.asarray(stakeholders.minimum(np.where(has_utility, utility, 1.0)))
        return np.where(least < params["floor"], np.minimum(weighted, least), weighted)


class Nash(_Welfare):
    """R = Π û_i, Nash's product with a disagreement point of 0: it uses no weights, and a single 0 makes it 0."""

    name = "nash"

    def _welfare(self, weight: Floats, utility: Floats, has_utility: Bools, params: Mapping[str, Any]) -> Floats:
        counted = np.where(has_utility, utility, 1.0)
        product = counted[:, 0]
        for column in range(1, counted.shape[1]):
            product = product * counted[:, column]
        return product


def _utility(cells: ScoreMatrix, hard: Sequence[int], cap: float | None) -> tuple[Floats, Bools]:
    """Return û_i [R] and a mask of the rows that have one."""
    utility, has_utility = cells.mean()
    if not len(hard) or cap is None:
        return utility, has_utility
    places = list(hard)
    live = np.where(cells.applicable[:, places], 1.0, 0.0)
    applicable = np.asarray(aggregation.total(live))
    mean_hard = aggregation.total(live * cells.value[:, places]) / np.where(applicable > 0, applicable, 1.0)
    violated = (cells.applicable[:, places] & ~cells.met[:, places]).any(axis=1)
    return np.where(violated, np.minimum(utility, cap * mean_hard), utility), has_utility


def _figures(utility: Floats, cells: Mapping[str, ScoreMatrix], soft: Mapping[str, Sequence[int]]) -> dict[str, Floats]:
    """Return DecompR's group figures: mean and least û, Gini and Jain, and the share of soft constraints addressed."""
    figures = {
        "group utility": stakeholders.group_utility(utility),
        "least utility": stakeholders.minimum(utility),
        "gini": stakeholders.gini(utility),
        "jain": stakeholders.jain(utility),
    }
    soft_columns = [(cells[name], list(columns)) for name, columns in soft.items() if len(columns)]
    if soft_columns:
        met = np.concatenate(
            [
                np.where(stakeholder.met[:, places] & stakeholder.applicable[:, places], 1.0, 0.0)
                for stakeholder, places in soft_columns
            ],
            axis=1,
        )
        live = np.concatenate(
            [np.where(stakeholder.applicable[:, places], 1.0, 0.0) for stakeholder, places in soft_columns], axis=1
        )
        applicable = np.asarray(aggregation.total(live))
        figures["preferences addressed"] = aggregation.total(met) / np.where(applicable > 0, applicable, 1.0)
    return {name: np.asarray(values) for name, values in figures.items()}
