"""The agents of a run: the mean reward of each, and which of two is better, with their intervals.

The clusters of an interval are the independent units of a run: its tasks, or groups of tasks.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from jurygraph.arrays import Floats
from jurygraph.display import format_number
from jurygraph.inference.clusters import (
    Estimate,
    difference_interval,
    interval_among,
    ratio_interval,
)
from jurygraph.runs.reports.units import SINGULAR, describe_units


def name_agent(agent: str | None) -> str:
    return agent or "(no agent)"


@dataclass(frozen=True, kw_only=True)
class AgentDifference:
    """Two agents that follow each other in the order of their mean rewards.

    Attributes:
        difference: of their mean rewards, over the tasks, or groups of tasks, that both have; its interval holds
            together with those of all pairs. Of agents that have fewer than two in common, over those of each.
        units: what these are called, and `count` the number of those that both have, or, if the difference is not
            paired, of those that one of them has at least.
        is_clear: whether the interval is above 0, so that other tasks would hardly turn the order.
    """

    first: str
    second: str
    difference: float
    low: float | None
    high: float | None
    units: str
    count: int
    is_paired: bool
    is_clear: bool

    @property
    def sentence(self) -> str:
        ahead = f"{name_agent(self.first)} is ahead of {name_agent(self.second)}"
        if self.difference == 0.0:
            ahead = f"{name_agent(self.first)} is level with {name_agent(self.second)}, apart"
        tasks = f"{self.count} {self.units if self.count > 1 else SINGULAR[self.units]}"
        if not self.is_paired:
            tasks += " or more of each"
        by = format_number(self.difference)
        size = f"{ahead} by {by}; how sure that is cannot be told from {tasks}."
        if self.low is not None and self.high is not None:
            ends = f"{format_number(self.low)} to {format_number(self.high)}"
            design = "paired" if self.is_paired else "unpaired"
            chance = "is larger than chance" if self.is_clear else "may be chance"
            size = f"{ahead} by {by} ({ends}, {design} over {tasks}): that {chance}."
        if not self.is_paired:
            size += " Let both answer the same tasks: harder ones then count for both."
        return size


def compare_agents(
    first: str, second: str, sums: Floats, counts: Floats, units: str, pairs: int
) -> AgentDifference:
    """Return the difference of two agents that have a mean each.

    Args:
        sums: of the rewards of each in each unit, [2,U], without failed ones; `counts` are their numbers, [2,U].
        units: what the units are called.
        pairs: the number of pairs whose intervals are to hold together with 95 %.
    """
    is_shared = counts.all(axis=0)
    count = int(np.count_nonzero(is_shared))
    is_paired = count > 1
    if is_paired:
        means = sums[:, is_shared] / counts[:, is_shared]
        estimate = ratio_interval(means[0] - means[1], np.ones(count))
    else:
        # one task in common, or none, shows no more than those that each has alone
        estimate = difference_interval(sums, counts)
    assert estimate is not None, "both agents have a mean"
    low, high = interval_among(estimate, pairs)
    return AgentDifference(
        first=first,
        second=second,
        difference=estimate.value,
        low=low,
        high=high,
        units=units,
        count=estimate.clusters,
        is_paired=is_paired,
        is_clear=low is not None and low > 0.0,
    )


class UnitRewards(NamedTuple):
    """The rewards of an agent for one unit: how many, how many of them did not fail, and the sum of those."""

    agent: str
    unit: str
    responses: int
    scored: int
    total: float


class RankedAgent(NamedTuple):
    """An agent in the order of the means: its responses, those with a reward, and the units that these are of.

    `lead` is how far it is ahead of the next one; None for the last, and where one of the two has no mean.
    """

    agent: str
    responses: int
    scored: int
    units: int
    mean: Estimate | None
    lead: AgentDifference | None


def rank_agents(rewards: Iterable[UnitRewards]) -> list[RankedAgent]:
    """Return the agents, the best mean first and those without a mean last; failed rewards are in no mean."""
    rows = list(rewards)
    agents = {agent: number for number, agent in enumerate(sorted({row.agent for row in rows}))}
    units = {unit: number for number, unit in enumerate(dict.fromkeys(row.unit for row in rows))}
    responses, scored, sums = np.zeros((3, len(agents), len(units)))
    for row in rows:
        cell = agents[row.agent], units[row.unit]
        responses[cell] += row.responses
        scored[cell] += row.scored
        sums[cell] += row.total
    means = {agent: ratio_interval(sums[row], scored[row]) for agent, row in agents.items()}
    order = sorted(agents, key=lambda agent: _descending(means[agent]))
    with_mean = [agent for agent in order if means[agent] is not None]
    leads = {}
    for pair in pairwise(with_mean):
        both = [agents[agent] for agent in pair]
        leads[pair[0]] = compare_agents(
            *pair, sums[both], scored[both], describe_units(units), len(with_mean) - 1
        )
    return [
        RankedAgent(
            agent=agent,
            responses=int(responses[agents[agent]].sum()),
            scored=int(scored[agents[agent]].sum()),
            units=int(np.count_nonzero(scored[agents[agent]])),
            mean=means[agent],
            lead=leads.get(agent),
        )
        for agent in order
    ]


def _descending(mean: Estimate | None) -> float:
    return float("inf") if mean is None else -mean.value
