"""A panel of judges: what they say together, and how far apart they are.

Which of a judge's verdicts are heard is said before: those that are not sure enough are discarded, and more than half
of the seeds must agree (`panel` in the config). A question without a majority counts as abstained from.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from jurygraph import aggregation
from jurygraph.agents.combiners import Mean
from jurygraph.agents.roles import Cells, Component


class Panel(Mean):
    """Mean of the judges, each a part; the figures keep their disagreement.

    `disagreement` is the mean of |r_i - r_j| over pairs of judges who were heard, 0 where there is no pair (the paper
    finds that it is structure, and no noise); `lowest` and `highest` are what the harshest and the kindest say.
    """

    name = "panel"

    def combine(self, cells: Mapping[str, Cells], params: Mapping[str, Any]) -> Component:
        together = super().combine(cells, params)
        heard = [replace(one, live=one.live & one.judged).mean() for one in cells.values()]
        value = np.stack([value for value, _ in heard], axis=1)
        some = np.stack([there for _, there in heard], axis=1)
        apart = np.abs(value[:, :, None] - value[:, None, :])
        both = some[:, :, None] & some[:, None, :] & ~np.eye(len(cells), dtype=np.bool_)
        pairs = np.asarray(aggregation.total(aggregation.total(np.where(both, 1.0, 0.0))))
        figures = {
            "disagreement": aggregation.total(aggregation.total(np.where(both, apart, 0.0))) / np.maximum(pairs, 1.0),
            "lowest": np.where(some.any(axis=1), np.where(some, value, 1.0).min(axis=1), 0.0),
            "highest": np.where(some, value, 0.0).max(axis=1),
        }
        parts = {name: one.mean()[0] for name, one in cells.items()}
        return Component(together.value, together.present, parts, figures)
