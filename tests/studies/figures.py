"""The figures of a report as `--json` prints them, with attributes."""

import json
from collections.abc import Sequence
from typing import Any

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


def two_leads(lead_of_b: float) -> dict[tuple[str, str], float]:
    """Return who is ahead of two agents, by the lead of the second one."""
    return {("a", "b"): lead_of_b, ("b", "a"): -lead_of_b}
