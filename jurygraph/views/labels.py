"""The agents of a run apart for each value of a label, such as a language: their means, and which one leads.

The order in the whole run may hold in one language and not in another. Many values are many chances to find a
difference by chance, so that the intervals of all leads hold together.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from jurygraph.display import format_number
from jurygraph.messages import join_names, notes_on_similar_names
from jurygraph.runs.export_table import json_value_to_text
from jurygraph.runs.reports.units import unit_name_of_task
from jurygraph.runs.run import Run
from jurygraph.runs.stored_groups import TraceWithoutTexts, read_stored_groups
from jurygraph.views.agents import (
    AgentDifference,
    RankedAgent,
    agent_label,
    rank_agents,
    reward_limits_of_decisions,
    unit_rewards,
)
from jurygraph.views.rewards import RewardColumn, find_column, make_score_readers

_MIN_UNITS_COMPARED = 5
"""With fewer tasks of both agents, no interval of a difference is worth its name."""
_NO_VALUE = "(no value)"


class ValueRow(NamedTuple):
    """The responses with one value of a label, or with none: the number of their units, and their agents, best first.

    A unit is a task, or a group of tasks.
    """

    value: str
    units: int
    agents: Sequence[RankedAgent]

    @property
    def means(self) -> str:
        means = {agent.agent: agent.mean and agent.mean.value for agent in self.agents}
        return join_names(
            f"{agent_label(name)} {format_number(mean)}" for name, mean in means.items()
        )

    @property
    def lead(self) -> AgentDifference | None:
        """Return how far the best agent is ahead of the next one; None with too few units of both."""
        lead = self.agents[0].lead
        has_enough_units = lead and lead.is_paired and lead.count >= _MIN_UNITS_COMPARED
        return lead if has_enough_units else None

    @property
    def outcome(self) -> str:
        """Return who leads, and whether that may be chance."""
        if self.lead is not None:
            return f"{self.lead.order}, {self.lead.certainty}"
        if len(self.agents) < 2:
            return "one agent alone"
        return "too few scored tasks in common"


class LabelComparison(NamedTuple):
    """The agents of a run for each value of a label."""

    label: str
    rows: Sequence[ValueRow]

    @property
    def conclusion(self) -> str:
        """Return in which values an agent is shown to be better, as a sentence."""
        values_by_outcome = defaultdict(list)
        for row in self.rows:
            if row.lead is not None and row.lead.is_better_agent_known:
                values_by_outcome[row.outcome].append(row.value)
        parts = [f"{text}, in {join_names(values)}" for text, values in values_by_outcome.items()]
        return (
            f"By {self.label}: {'; '.join(parts) or 'in no value is an agent shown to be better'}."
        )

    @property
    def notes(self) -> list[str]:
        """Return what the intervals allow for, and which values may be one."""
        similar = list(notes_on_similar_names(row.value for row in self.rows))
        if all(row.lead is None for row in self.rows):
            return similar
        return ["the leads in all values hold together with 95 % (Bonferroni)", *similar]


def read_label_values(run: Run, label: str) -> dict[str, str]:
    """Return the value of a label by response, without blanks around it; those without one are left out.

    Raises `InputError` where no response has the label.
    """
    column = find_column(run, "--by", f"label.{label}", make_score_readers(run))
    values = {}
    for group in read_stored_groups(run):
        for trace in group.traces:
            value = _label_text(column, trace)
            if value is not None:
                values[trace.response_id] = value
    return values


def _label_text(column: RewardColumn, trace: TraceWithoutTexts) -> str | None:
    """Return the value of a label of a response; None where it has none, or an empty one."""
    value = column.value(trace)
    return None if value in (None, "") else json_value_to_text(value)


def compare_by_label(run: Run, label: str) -> LabelComparison:
    """Return a row for each value of a label, that of most units first, and the responses without a value last.

    Blanks around a value do not count. Intervals of leads allow for the number of values with enough units, and of
    agents (Bonferroni). Raises `InputError` where no response has the label.
    """
    column = find_column(run, "--by", f"label.{label}", make_score_readers(run))
    agents = set()
    lowest_reward = 0.0
    rewards_by_value = defaultdict(list)
    units_by_value = defaultdict(set)
    for group in read_stored_groups(run):
        unit = unit_name_of_task(run, group.record.key)
        for trace in group.traces:
            value = _label_text(column, trace) or _NO_VALUE
            reward = unit_rewards(trace, unit)
            agents.add(reward.agent)
            lowest_reward = min(lowest_reward, reward.least)
            rewards_by_value[value].append(reward)
            units_by_value[value].add(unit)
    limits = reward_limits_of_decisions(list(run.decisions()), lowest_reward)
    compared = sum(len(units) >= _MIN_UNITS_COMPARED for units in units_by_value.values())
    rows = []
    for value, rewards in rewards_by_value.items():
        ranked_agents = rank_agents(rewards, limits, pairs=compared * (len(agents) - 1))
        rows.append(ValueRow(value, len(units_by_value[value]), ranked_agents))
    rows.sort(key=lambda row: (row.value == _NO_VALUE, -row.units, row.value))
    return LabelComparison(label, rows)
