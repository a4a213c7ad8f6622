"""The agents of a run apart for each value of a label, such as a language: their means, and who of the best two leads.

The order in the whole run may hold in one language and not in another. Many values are many chances to find a
difference by chance, so that the intervals of all values hold together.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from jurygraph.errors import InputError
from jurygraph.inference.clusters import Estimate
from jurygraph.messages import join_names, notes_on_similar_names, suggest_known_name
from jurygraph.runs.export_table import json_value_to_text
from jurygraph.runs.reports.units import unit_name_of_task
from jurygraph.runs.run import Run
from jurygraph.runs.store.packing import unpack_response_metadata
from jurygraph.runs.stored_groups import read_stored_groups
from jurygraph.views.agents import (
    AgentDifference,
    rank_agents,
    reward_limits_of_decisions,
    unit_rewards,
)

MIN_UNITS_COMPARED = 5
"""With fewer tasks of a value, no interval of a difference is worth its name."""


class ValueRow(NamedTuple):
    """The responses with one value of a label, an empty one for those that have none.

    `units` are their tasks, or groups of tasks, and `means` the mean reward of each agent, in the order of the whole
    run, with its own interval. `lead` is how far one of the best two agents of the whole run is ahead of the other;
    None with fewer than `MIN_UNITS_COMPARED` units of both. The leads of all values with so many hold together.
    """

    value: str
    units: int
    means: Mapping[str, Estimate | None]
    lead: AgentDifference | None

    @property
    def label(self) -> str:
        return self.value or "(no value)"

    @property
    def outcome(self) -> str:
        """Return who leads, and whether that may be chance."""
        return f"{self.lead.order}, {self.lead.certainty}" if self.lead else "too few tasks of both"


def compare_by_label(run: Run, label: str) -> list[ValueRow]:
    """Return a row for each value of a label, that of most units first, and the responses without a value last.

    Rewards are those of the run as it was decided. Blanks around a value do not count. Raises `InputError` where no
    response has the label.
    """
    names: set[str] = set()
    rewards_by_value = defaultdict(list)
    for group in read_stored_groups(run):
        unit = unit_name_of_task(run, group.record.key)
        for trace in group.traces:
            texts = run.source.ledger.texts_of_record(trace.record)
            labels = unpack_response_metadata(trace.body, texts)["labels"]
            names.update(labels)
            value = labels.get(label)
            text = "" if value is None else json_value_to_text(value).strip()
            rewards_by_value[text].append(unit_rewards(trace, unit))
    if label not in names:
        hint = suggest_known_name(label, sorted(names))
        raise InputError(f"{run.folder}: no response has a label {label!r}; {hint}")
    rewards = list(chain.from_iterable(rewards_by_value.values()))
    lowest_reward = min(row.least for row in rewards)
    limits = reward_limits_of_decisions(list(run.decisions()), lowest_reward)
    agents = [row.agent for row in rank_agents(rewards, limits)]
    units_by_value = {
        value: len({row.unit for row in rows}) for value, rows in rewards_by_value.items()
    }
    pairs = sum(units >= MIN_UNITS_COMPARED for units in units_by_value.values())
    value_rows = []
    for value, rows in rewards_by_value.items():
        means = dict.fromkeys(agents) | {row.agent: row.mean for row in rank_agents(rows, limits)}
        lead = None
        for agent in rank_agents(
            (row for row in rows if row.agent in agents[:2]), limits, pairs=pairs
        ):
            if agent.lead and agent.lead.is_paired and agent.lead.count >= MIN_UNITS_COMPARED:
                lead = agent.lead
        value_rows.append(ValueRow(value, units_by_value[value], means, lead))
    return sorted(value_rows, key=lambda row: (not row.value, -row.units, row.value))


def conclude_by_label(label: str, rows: Iterable[ValueRow]) -> str:
    """Return in which values one of the best two agents is shown to be better, as a sentence."""
    values_by_outcome = defaultdict(list)
    for row in rows:
        if row.lead is not None and row.lead.is_better_agent_known:
            values_by_outcome[row.outcome].append(row.label)
    parts = [f"{outcome}, in {join_names(names)}" for outcome, names in values_by_outcome.items()]
    return f"By {label}: {'; '.join(parts) or 'in no value is an agent shown to be better'}."


def notes_on_values(rows: Sequence[ValueRow]) -> Iterator[str]:
    """Yield what the intervals allow for, and which values may be one."""
    for lead in [row.lead for row in rows if row.lead is not None][:1]:
        yield f"the leads in {lead.pairs} values hold together with 95 % (Bonferroni)"
    yield from notes_on_similar_names(row.value for row in rows)
