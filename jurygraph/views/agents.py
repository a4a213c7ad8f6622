"""The view of a run's agents: the mean reward of each with its interval over tasks, and how many rewards failed."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from jurygraph.inference.clusters import Estimate, ratio_interval
from jurygraph.runs.outline import read_groups
from jurygraph.runs.reports.units import unit_of
from jurygraph.runs.run import Run


@dataclass(kw_only=True)
class AgentView:
    """The rewards of one agent; failed ones are in no mean. `sums` and `counts` are by task, or group of tasks."""

    name: str | None
    responses: int = 0
    sums: Counter[str] = field(default_factory=Counter, repr=False)
    counts: Counter[str] = field(default_factory=Counter, repr=False)

    @property
    def failed(self) -> int:
        return self.responses - self.counts.total()

    @property
    def mean(self) -> Estimate | None:
        """Return the mean reward with its interval over tasks; None where all rewards failed."""
        sizes = np.array(list(self.counts.values()), dtype=np.float64)
        return ratio_interval([self.sums[unit] for unit in self.counts], sizes)

    @property
    def rank(self) -> tuple[bool, float, str]:
        """Return a key that puts the best agent first, and those without a mean last."""
        mean = self.mean
        return mean is None, 0.0 if mean is None else -mean.value, self.name or ""


def view_agents(run: Run) -> list[AgentView]:
    """Return the agents of a run, the best first; responses without an agent are those of None."""
    agents: dict[str | None, AgentView] = {}
    for group in read_groups(run):
        unit = unit_of(run, group.record.key)
        for trace in group.traces:
            agent = agents.setdefault(trace.agent, AgentView(name=trace.agent))
            agent.responses += 1
            if trace.value is not None:
                agent.sums[unit] += trace.value  # type: ignore[assignment]  # a Counter of numbers
                agent.counts[unit] += 1
    return sorted(agents.values(), key=lambda agent: agent.rank)
