"""The state, totals, agents and distribution of rewards of a whole run, read from its index.

The overview of `jurygraph view` and a report show the same.
"""

import itertools
from collections.abc import Iterator, Sequence
from math import isfinite

import numpy as np

from jurygraph.runs.reports.bill import CallBill, CallCosts
from jurygraph.runs.reports.summary import ComponentValuesByOutcome, FindingCounts
from jurygraph.runs.run import Run
from jurygraph.viewer.documents import TemplateContext
from jurygraph.viewer.index import RunIndex
from jurygraph.viewer.table import filter_values_by_field
from jurygraph.views.agents import (
    Limits,
    RankedAgent,
    UnitRewards,
    conclude_ranking,
    rank_agents,
    reward_limits_of_decisions,
)
from jurygraph.views.components import GateLoss, JudgedValues, add_all_else, compare_components
from jurygraph.views.juries import describe_jury_votes
from jurygraph.views.verdict import find_words_by_question

_HISTOGRAM_BUCKET_COUNT = 20


def describe_progress(run: Run) -> str:
    if run.is_closed:
        return "complete"
    if run.header.is_open_ended:
        return f"open: {run.tasks_scored} groups so far"
    return f"{run.tasks_scored} of {run.header.extent.tasks} tasks so far"


def run_overview_context(index: RunIndex) -> TemplateContext:
    """Return what an overview shows of a run: its state, totals, agents, distribution of rewards, and facets.

    `reward_scale` has the ends of the scale that rewards are drawn on, with every one that is possible, and the best
    possible; where a combiner of one's own leaves these open, the ends of the run's rewards, and None. It always has 0.
    """
    run = index.run
    ((lowest_reward,),) = index.fetch_rows("SELECT coalesce(min(least), 0) FROM responses")
    limits = reward_limits_of_decisions(list(run.decisions()), lowest_reward)
    least, best = limits
    agents = _read_agents(index, limits)
    low, high, counts = _read_reward_histogram(index)
    totals = _read_run_totals(index)
    return {
        "run": run,
        "header": run.header,
        "state": describe_progress(run),
        **totals,
        "jury": describe_jury_votes(run),
        "agents": agents,
        "conclusion": conclude_ranking(agents),
        "words": _read_component_words(index),
        "components_by_agent": add_all_else(
            compare_components(agents, _read_judged_values(index), run.config),
            agents,
            _read_gate_losses(index),
            run.config.scale,
        ),
        "buckets": (low, high, counts),
        "reward_scale": (min(least, 0.0), max(best, 0.0), best)
        if isfinite(best - least)
        else (low, high, None),
        "facets": filter_values_by_field(index),
    }


def _read_run_totals(index: RunIndex) -> TemplateContext:
    """Return counts of responses, the bill in words, times in milliseconds, and the mean of each component.

    The means are over responses that have a reward, as its own mean is, and so are the numbers of values below 0.5, by
    component and agent, with those in which a fault was found, and for faults of turns in how many of all turns.

    `findings` are the counts of those that need a quotation; None where each has one.
    `means_warning` is None where failed rewards are not known to differ from the others.
    """
    responses = index.fetch_single_row(
        "SELECT count(*) AS responses, count(reward) AS scored, count(*) FILTER (WHERE status = 'failed') AS failed,"
        " count(*) FILTER (WHERE status = 'degraded') AS degraded, avg(coverage) AS coverage, min(at) AS began,"
        " max(at) AS ended, sum(quotable) AS quotable, sum(unsupported) AS unsupported,"
        " (SELECT count(DISTINCT name) FROM units WHERE name LIKE 'group %') AS groups"
        " FROM responses"
    )
    bill = CallBill()
    costs_by_source = index.fetch_rows(
        "SELECT iif(fault IS NOT NULL, 'unanswered', iif(is_cached, 'cached', 'sent')),"
        " count(*), count(*) - count(cost), total(cost) FROM calls GROUP BY 1"
    )
    for source, *costs in costs_by_source:
        bill.costs_by_source[source] = CallCosts(*costs)
    components = index.fetch_rows(
        "SELECT names.name, avg(judged) FILTER (WHERE reward IS NOT NULL),"
        " count(*) FILTER (WHERE reward IS NULL OR judged IS NULL AND counted IS NOT NULL) FROM components"
        " JOIN names ON names.number = component JOIN responses ON responses.number = components.response"
        " GROUP BY component ORDER BY component"
    )
    below_half = index.fetch_rows(
        "WITH faults AS (SELECT component, response, sum(has_fault) AS number, count(*) AS turns FROM"
        " (SELECT component, response, max(gate IS NOT NULL OR score >= 0.5) AS has_fault"
        " FROM verdicts JOIN inputs USING (question)"
        " WHERE turn IS NOT NULL AND score IS NOT NULL AND gate IS NOT 'empty-turn'"
        " GROUP BY component, response, turn) GROUP BY component, response)"
        " SELECT names.name, coalesce(agents.name, ''), count(*) FILTER (WHERE judged < 0.5),"
        " count(*) FILTER (WHERE coalesce(faults.number > 0, judged >= 0.5)), sum(faults.number), sum(faults.turns)"
        " FROM components LEFT JOIN faults USING (component, response)"
        " JOIN names ON names.number = component JOIN responses ON responses.number = components.response"
        " LEFT JOIN names AS agents ON agents.number = agent"
        " WHERE reward IS NOT NULL AND judged IS NOT NULL GROUP BY component, agent"
    )
    findings = None
    if responses["unsupported"]:
        findings = FindingCounts(responses["quotable"], responses["unsupported"])
    return {
        **responses,
        "bill": bill.describe(),
        "components": components,
        "below_half": below_half,
        "findings": findings,
        "means_warning": _warn_of_failed_rewards(index, responses["failed"]),
    }


def _warn_of_failed_rewards(index: RunIndex, number_failed: int) -> str | None:
    """Return a sentence where failed rewards differ from the others, by the first component in which they do."""
    if not number_failed:
        return None
    values = ComponentValuesByOutcome(number_failed)
    rows = index.fetch_rows(
        "SELECT names.name, judged, reward IS NULL FROM components"
        " JOIN names ON names.number = component JOIN responses ON responses.number = response"
        " WHERE judged IS NOT NULL ORDER BY component, response"
    )
    # as `TraceWithoutTexts.comparable_names`
    specs = itertools.chain.from_iterable(decision.specs for decision in index.run.decisions())
    not_comparable = {spec.name for spec in specs if spec.has_prerequisites}
    for name, judged, has_failed in rows:
        if name not in not_comparable:
            values.add_value(name, judged, has_failed)
    return values.failed.warning


def _read_agents(index: RunIndex, limits: Limits) -> list[RankedAgent]:
    """Return the agents, the best mean first, with intervals over the independent units of the run."""
    rows = index.fetch_rows(
        "SELECT coalesce(agents.name, ''), units.name, count(*), count(reward), total(reward),"
        " total(least), total(most) FROM responses"
        " LEFT JOIN names AS agents ON agents.number = agent JOIN units USING (task)"
        " GROUP BY agent, task"
    )
    return rank_agents(itertools.starmap(UnitRewards, rows), limits)


def _read_judged_values(index: RunIndex) -> Iterator[JudgedValues]:
    rows = index.iter_rows(
        "SELECT names.name, coalesce(agents.name, ''), units.name, count(judged), total(judged) FROM components"
        " JOIN names ON names.number = component JOIN responses ON responses.number = components.response"
        " LEFT JOIN names AS agents ON agents.number = agent JOIN units USING (task)"
        " WHERE reward IS NOT NULL GROUP BY component, agent, task"
    )
    return itertools.starmap(JudgedValues, rows)


def _read_gate_losses(index: RunIndex) -> Sequence[GateLoss]:
    return index.fetch_rows(
        "SELECT names.name, coalesce(agents.name, ''), total(lost) FROM gates"
        " JOIN names ON names.number = gate JOIN responses ON responses.number = gates.response"
        " LEFT JOIN names AS agents ON agents.number = agent WHERE reward IS NOT NULL GROUP BY gate, agent"
    )


def _read_component_words(index: RunIndex) -> dict[str, str]:
    """Return by component of one question what it asks of every task, in the words of the question."""
    rows = index.fetch_rows(
        "SELECT names.name, min(asked.name) FROM inputs"
        " JOIN names ON names.number = component JOIN names AS asked ON asked.number = question"
        " GROUP BY component HAVING count(*) = 1"
    )
    words: dict[str, str] = {}
    first_task = "SELECT name FROM names WHERE number = (SELECT min(task) FROM responses)"
    for (task,) in index.fetch_rows(first_task):
        words = find_words_by_question(index.run, task)
    return {name: words.get(asked, "") for name, asked in rows}


def _read_reward_histogram(index: RunIndex) -> tuple[float, float, list[int]]:
    """Return the ends of the rewards' range, and the number of rewards in each twentieth of it."""
    rows = index.fetch_rows("SELECT reward FROM responses WHERE reward IS NOT NULL")
    rewards = [reward for (reward,) in rows]
    ends = min([0.0, *rewards]), max([1.0, *rewards])
    counts, _ = np.histogram(rewards, _HISTOGRAM_BUCKET_COUNT, ends)
    return *ends, counts.tolist() if rewards else []
