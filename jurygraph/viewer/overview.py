"""The state, totals, agents and distribution of rewards of a whole run, read from its index.

The overview of `jurygraph view` and a report that stands alone show the same.
"""

from collections.abc import Callable
from typing import Any

from jurygraph.display import ProgressCallback
from jurygraph.runs.reports.summary import count_findings
from jurygraph.runs.run import Run
from jurygraph.viewer.index import RunIndex
from jurygraph.views.agents import RankedAgent, UnitRewards, rank_agents

_BUCKETS = 20


def check_links(run: Run, advance: ProgressCallback) -> None:
    """Check that every record of a run, and of the one whose verdicts it has, follows the one before it.

    `advance` receives 1 for each response. Raises `TraceMismatch`.
    """
    for record in run.ledger.verified_records(1, run.ledger.count):
        if record.kind == "trace":
            advance(1)
    source = run.source.ledger
    if source is not run.ledger:
        for _ in source.verified_records(1, source.count):
            pass


def describe_progress(run: Run) -> str:
    if run.is_closed:
        return "complete"
    if run.header.is_open_ended:
        return f"open: {run.tasks_scored} groups so far"
    return f"{run.tasks_scored} of {run.header.extent.tasks} tasks so far"


def read_totals(index: RunIndex) -> dict[str, Any]:
    """Return counts of responses and calls, costs, times in milliseconds, and the mean of each component.

    `evidence_warning` is a sentence where most findings have no quotation; None elsewhere.
    """
    ((responses, failed, degraded, coverage, began, ended, unsupported),) = index.fetch(
        "SELECT count(*), total(status = 'failed'), total(status = 'degraded'), avg(coverage), min(at), max(at),"
        " total(unsupported) FROM responses"
    )
    warning = count_findings(index.run).warning if unsupported else None
    ((calls, cached, unpriced, cost),) = index.fetch(
        "SELECT count(*), total(is_cached), total(cost IS NULL), sum(iif(is_cached, 0, cost)) FROM calls"
    )
    components = index.fetch(
        "SELECT names.name, avg(judged), sum(judged IS NULL) FROM components"
        " JOIN names ON names.number = component GROUP BY component ORDER BY component"
    )
    return {
        "responses": responses,
        "failed": int(failed),
        "evidence_warning": warning,
        "degraded": int(degraded),
        "coverage": coverage,
        "calls": calls,
        "cached": int(cached),
        "unpriced": int(unpriced),
        "cost": cost,
        "began": began,
        "ended": ended,
        "components": components,
    }


def read_agents(index: RunIndex, name_unit: Callable[[str], str] = str) -> list[RankedAgent]:
    """Return the agents, the best mean first, with intervals over tasks, or over the units named by `name_unit`."""
    rows = index.fetch(
        "SELECT coalesce(agents.name, ''), tasks.name, count(*), count(reward), total(reward) FROM responses"
        " LEFT JOIN names AS agents ON agents.number = agent JOIN names AS tasks ON tasks.number = task"
        " GROUP BY agent, task"
    )
    return rank_agents(
        UnitRewards(agent, name_unit(task), *counts) for agent, task, *counts in rows
    )


def read_buckets(index: RunIndex) -> tuple[float, float, list[int]]:
    """Return the ends of the rewards' range, and the number of rewards in each twentieth of it."""
    ((low, high),) = index.fetch("SELECT min(reward), max(reward) FROM responses")
    if low is None:
        return 0.0, 1.0, []
    low = min(low, 0.0)
    high = max(high, 1.0)
    rows = index.fetch(
        "SELECT min(cast((reward - ?) / ? * ? AS INTEGER), ?), count(*) FROM responses"
        " WHERE reward IS NOT NULL GROUP BY 1",
        low,
        high - low,
        _BUCKETS,
        _BUCKETS - 1,
    )
    counts = [0] * _BUCKETS
    for bucket, count in rows:
        counts[bucket] = count
    return low, high, counts
