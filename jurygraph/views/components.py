"""Why one agent of a run is better than another: the means of the components of which their rewards are sums.

A reward is Σ weight × value, so that to an agent's mean reward a component adds weight × mean × the share of the
rewards in which it was judged: where it does not apply, it adds nothing. The means are of judged values, and leave out
failed rewards, as the mean reward does. What gates take, and what values that were filled in add, is the rest.
"""

from collections.abc import Mapping, Sequence
from math import fsum
from typing import NamedTuple

from jurygraph.display import format_number
from jurygraph.schema import Config
from jurygraph.views.agents import RankedAgent, agent_label

ComponentMeans = Mapping[tuple[str, str], tuple[float | None, int]]
"""By component and agent: the mean of the judged values of rewards that did not fail, and their number."""


class AgentComponent(NamedTuple):
    """The mean of a component of an agent; None where no value was judged.

    `left_out` are the responses that are not in it: the reward failed, or the component was not judged or does not
    apply. `points` is by how much it puts the best agent ahead of this one.
    """

    agent: str
    mean: float | None
    judged: int
    left_out: int
    points: float

    def __str__(self) -> str:
        points = f" ({self.points:+.4f})" if round(self.points, 4) else ""
        left_out = f", {self.left_out} left out" if self.left_out else ""
        return format_number(self.mean) + points + left_out


class ComponentByAgent(NamedTuple):
    """A component, its weight in points of the reward, and its mean of each agent, the best agent first.

    All else has neither weight nor mean.
    """

    component: str
    weight: float | None
    agents: Sequence[AgentComponent]


def compare_components(
    agents: Sequence[RankedAgent], means: ComponentMeans, config: Config
) -> list[ComponentByAgent]:
    """Return the components, first the one that puts the best agent farthest ahead of, or behind, another.

    Those of weight 0 have no points, and are left out where no mean is known. There are none of one component alone, or
    of one agent. Agents without a mean have none of these.
    """
    weights = {
        name: weight * config.scale
        for name, weight in config.reward.items()
        if weight or any((name, agent.agent) in means for agent in agents)
    }
    if min(len(weights), len(agents)) < 2:
        return []
    components = []
    for name, weight in weights.items():
        rows: list[AgentComponent] = []
        best_agent_contribution = 0.0
        for agent in agents:
            mean, judged = means.get((name, agent.agent), (None, 0))
            added = 0.0 if mean is None else weight * mean * judged / agent.scored
            if not rows:
                best_agent_contribution = added
            left_out = agent.responses - judged
            rows.append(
                AgentComponent(agent.agent, mean, judged, left_out, best_agent_contribution - added)
            )
        components.append(ComponentByAgent(name, weight, rows))
    components.sort(key=lambda row: -max(abs(agent.points) for agent in row.agents))
    return components


def add_all_else(
    components: Sequence[ComponentByAgent], agents: Sequence[RankedAgent]
) -> Sequence[ComponentByAgent]:
    """Return the components with what they leave open of the differences, so that all points add up to these."""
    rows = []
    for number, agent in enumerate(agents if components else ()):
        points = fsum(row.agents[number].points for row in components)
        lead = agents[0].mean.value - agent.mean.value if agents[0].mean and agent.mean else points
        rows.append(AgentComponent(agent.agent, None, 0, 0, lead - points))
    has_rest = any(round(row.points, 4) for row in rows)
    return [*components, ComponentByAgent("all else", None, rows)] if has_rest else components


def conclude_components(components: Sequence[ComponentByAgent]) -> str:
    """Return what puts the best agent's mean reward ahead of the next one's, with all else, as a sentence."""
    points = {row.component: row.agents[1].points for row in components}
    parts = [f"{name} {share:+.4f}" for name, share in points.items() if round(share, 4)]
    best, second = (agent_label(row.agent) for row in components[0].agents[:2])
    size = format_number(fsum(points.values()))
    return f"The mean of {best} is {size} above that of {second}: {', '.join(parts) or 'equal in all'}."
