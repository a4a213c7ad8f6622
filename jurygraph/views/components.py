"""Why one agent of a run is better than another: the means of the components of which their rewards are sums.

A reward is Σ weight × value, so that to an agent's mean reward a component adds weight × mean × the share of the
rewards in which it was judged: where it does not apply, it adds nothing. The means are of judged values, and leave out
failed rewards, as the mean reward does. What a gate takes has a row of its own; what a clip takes, and what values
that were filled in add, is the rest.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import fsum
from typing import Any, NamedTuple

import numpy as np

from jurygraph.arrays import Floats
from jurygraph.display import format_number
from jurygraph.inference.clusters import Bounds, bonferroni_interval, ratio_interval
from jurygraph.schema import Config
from jurygraph.views.agents import RankedAgent, agent_label, estimate_mean_difference


class JudgedValues(NamedTuple):
    """The judged values of a component in an agent's rewards for one unit that did not fail: their number and sum."""

    component: str
    agent: str
    unit: str | int
    judged: int
    total: float


GateLoss = tuple[str, str, float]
"""A gate, an agent, and what the gate took from one or more of the agent's rewards, before the scale."""


class AgentComponent(NamedTuple):
    """The mean of a component of an agent; None where no value was judged.

    `left_out` are the responses that are not in it: the reward failed, or the component was not judged or does not
    apply. `points` is by how much it puts the best agent ahead of this one. From `low` to `high` goes the interval of
    how far the mean is behind that of the best agent, paired as that of their rewards; those of all components and
    agents hold together with 95 %. None where there is none.
    """

    agent: str
    mean: float | None
    judged: int
    left_out: int
    points: float
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        points = f" ({self.points:+.4f})" if round(self.points, 4) else ""
        left_out = f", {self.left_out} left out" if self.left_out else ""
        behind = ""
        if self.low is not None:
            behind = f", {format_number(self.low)} to {format_number(self.high)} behind"
        return format_number(self.mean) + points + behind + left_out


class ComponentByAgent(NamedTuple):
    """A component, its weight in points of the reward, and its mean of each agent, the best agent first.

    Gates and all else have neither weight nor mean.
    """

    component: str
    weight: float | None
    agents: Sequence[AgentComponent]


def compare_components(
    agents: Sequence[RankedAgent], values: Iterable[JudgedValues], config: Config
) -> list[ComponentByAgent]:
    """Return the components, first the one that puts the best agent farthest ahead of, or behind, another.

    Those of weight 0 have no points, and are left out where nothing was judged. There are none of one component alone,
    or of one agent. Agents without a mean have none of these.
    """
    numbers = {agent.agent: number for number, agent in enumerate(agents)}
    units: dict[Any, int] = {}  # texts or numbers
    # agent, unit, number and sum of each cell; tuples would take five times the memory
    rows_by_component: dict[str, array[float]] = defaultdict(lambda: array("d"))
    for name, agent_name, unit, judged, total in values:
        unit_number = units.setdefault(unit, len(units))
        rows_by_component[name].extend((numbers[agent_name], unit_number, judged, total))
    # sorted, so that no sum over units depends on the order of the rows
    unit_places = np.empty(len(units), np.intp)
    unit_places[[units[unit] for unit in sorted(units)]] = np.arange(len(units))
    weights = {
        name: weight * config.scale
        for name, weight in config.reward.items()
        if weight or name in rows_by_component
    }
    if min(len(weights), len(agents)) < 2:
        return []
    comparisons = len(weights) * (len(agents) - 1)
    components = []
    for name, weight in weights.items():
        rows = np.array(rows_by_component[name]).reshape(-1, 4).T
        rows[1] = unit_places[rows[1].astype(np.intp)]
        totals = np.zeros((2, len(agents), len(units)))
        np.add.at(totals, (slice(None), *rows[:2].astype(np.intp)), rows[2:])  # 100,000 at once
        rows_of_agents = _compare_to_best(agents, weight, totals, comparisons)
        components.append(ComponentByAgent(name, weight, rows_of_agents))
    components.sort(key=lambda row: -max(abs(agent.points) for agent in row.agents))
    return components


def _compare_to_best(
    agents: Sequence[RankedAgent], weight: float, totals: Floats, comparisons: int
) -> list[AgentComponent]:
    """Return a component of each agent beside the best; `totals` are numbers of values and sums by unit, [2,A,U]."""
    counts, sums = totals
    scored = [max(agent.scored, 1) for agent in agents]
    added = weight * sums.sum(axis=1) / scored
    rows = []
    for number, agent in enumerate(agents):
        mean = ratio_interval(sums[number], counts[number])
        interval: Bounds = (None, None)
        if number and mean and counts[0].any():
            pair = [0, number]
            difference, _ = estimate_mean_difference(sums[pair], counts[pair])
            interval = bonferroni_interval(difference, comparisons)
        judged = int(counts[number].sum())
        left_out = agent.responses - judged
        points = float(added[0] - added[number])
        rows.append(
            AgentComponent(agent.agent, mean and mean.value, judged, left_out, points, *interval)
        )
    return rows


def add_all_else(
    components: Sequence[ComponentByAgent],
    agents: Sequence[RankedAgent],
    gate_losses: Iterable[GateLoss],
    scale: float,
) -> Sequence[ComponentByAgent]:
    """Return the components with gates, and what these leave open of the differences: all points add up to them."""
    if not components:
        return components
    losses: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for gate, name, lost in sorted(gate_losses):  # so that no sum depends on the order of rewards
        losses[gate][name] += lost
    rows = [*components]
    for gate, lost_by_agent in losses.items():
        means = [scale * lost_by_agent[row.agent] / max(row.scored, 1) for row in agents]
        rows.append(_row_of_points(gate, agents, [mean - means[0] for mean in means]))
    rest = []
    for number, agent in enumerate(agents):
        points = fsum(row.agents[number].points for row in rows)
        lead = agents[0].mean.value - agent.mean.value if agents[0].mean and agent.mean else points
        rest.append(lead - points)
    rows.append(_row_of_points("all else", agents, rest))
    return [
        row
        for row in rows
        if row.weight is not None or any(round(agent.points, 4) for agent in row.agents)
    ]


def _row_of_points(
    name: str, agents: Sequence[RankedAgent], points: Sequence[float]
) -> ComponentByAgent:
    cells = [
        AgentComponent(agent.agent, None, 0, 0, behind)
        for agent, behind in zip(agents, points, strict=True)
    ]
    return ComponentByAgent(name, None, cells)


def conclude_components(components: Sequence[ComponentByAgent]) -> str:
    """Return what puts the best agent's mean reward ahead of the next one's, with all else, as a sentence."""
    points = {row.component: row.agents[1].points for row in components}
    parts = [f"{name} {share:+.4f}" for name, share in points.items() if round(share, 4)]
    best, second = (agent_label(row.agent) for row in components[0].agents[:2])
    size = round(fsum(points.values()), 4)
    order = f"{format_number(size)} above" if size else "level with"
    shares = ", ".join(parts) or "equal in all"
    return f"Over all responses with a reward, the mean of {best} is {order} that of {second}: {shares}."
