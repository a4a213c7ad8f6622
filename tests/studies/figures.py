"""The figures of a report as `--json` prints them, with attributes."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from jurygraph.arrays import Floats
from jurygraph.studies.ranking import AgentRanker, rank_with_intervals
from jurygraph.studies.report import Report


class Figures(dict[str, Any]):
    """A JSON object whose values are also attributes."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def figures_of(report: Report) -> Figures:
    return read_figures(report.to_json())


def read_figures(value: Any) -> Any:
    """Return a JSON value with attributes, also of the objects in it."""
    return json.loads(json.dumps(value), object_hook=Figures)


def means_by_agent(ranker: AgentRanker, settings: Sequence[str] = ()) -> dict[str, float]:
    """Return the means under some settings, the best first."""
    rows = rank_with_intervals(ranker, settings)
    return {row.agent: row.mean.value for row in rows if row.mean is not None}


def two_sums(lead_of_b: float) -> Floats:
    """Return the sums and numbers of agents a and b in one unit; NaN is a lead of an agent b that has none."""
    return np.array([[[0.0], [np.nan_to_num(lead_of_b)]], [[1.0], [not np.isnan(lead_of_b)]]])
