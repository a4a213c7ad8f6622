"""Who gains by the choice of an agent, and who pays: what each reviewer, or stakeholder, of a run gets from each.

The values are those of the run as it was scored: what a reviewer is predicted to give, on the reviewer's own scale,
and the utility û of a stakeholder, from 0 to 1.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from jurygraph.arrays import Floats
from jurygraph.display import format_interval
from jurygraph.explanation.predictions import predicted_scores
from jurygraph.explanation.terms import ExplainedTrace
from jurygraph.inference.clusters import Estimate, ratio_interval
from jurygraph.runs.run import Run
from jurygraph.views.agents import (
    AgentDifference,
    Limits,
    UnitTotals,
    agent_label,
    clip_to_limits,
    compare_agents,
)
from jurygraph.views.rewards import PREDICTED_COLUMN_PREFIX, predicted_score_column_names

_MEMBER_KINDS = ("reviewer", "stakeholder")
_UTILITY_SCALE = (0.0, 1.0)
_MemberScale = tuple[str, Limits | None]
_Outcome = Literal["gains", "pays", "unclear", "not judged"]


class MemberComparison(NamedTuple):
    """The mean value of each agent to a reviewer or a stakeholder, on a scale of their own, the best agent first.

    `left_out` is the number of responses without a value, which are in no mean. `difference` is that of the first two,
    below 0 where the second is ahead; None where one of them has no value. One whose judge failed throughout has no
    scale. `component` is the one that counts these values.
    """

    member: str
    component: str
    scale: Limits | None
    means: Mapping[str, Estimate | None]
    left_out: int
    difference: AgentDifference | None
    outcome: _Outcome

    @property
    def label(self) -> str:
        if self.scale is None:
            return self.member
        low, high = self.scale
        return f"{self.member} ({low:g} to {high:g})"

    @property
    def sentence(self) -> str:
        """Return who is ahead for one who surely pays for the choice of the best agent; else an empty text."""
        difference = self.difference
        if (
            self.outcome != "pays"
            or self.scale is None
            or not difference
            or difference.high is None
        ):
            return ""
        lead = format_interval(
            -difference.difference, -difference.high, -(difference.low or 0.0), 2
        )
        return (
            f"{self.member} pays for the choice of {agent_label(difference.first)}: "
            f"{agent_label(difference.second)} is ahead there, by {lead} on {self.scale[0]:g} to {self.scale[1]:g}."
        )


def compare_members(
    run: Run, agents: Sequence[str], unit_by_task: Mapping[str, int], units: str
) -> list[MemberComparison]:
    """Return the comparison of agents, the best first, by each reviewer and stakeholder; none of a run without them.

    `unit_by_task` has the number of each task's unit, and `units` is what these are called. The intervals of all
    differences are to hold together with 95 %.
    """
    if len(agents) < 2 or not has_members(run):
        return []
    numbers = {agent: number for number, agent in enumerate(agents)}
    shape = 3, len(agents), max(unit_by_task.values()) + 1
    totals_by_member: dict[_MemberScale, Floats] = defaultdict(lambda: np.zeros(shape))
    components = _find_components(run)
    questions = list(filter(components.__contains__, run.reviewer_questions()))
    names = {}
    for question, column in zip(questions, predicted_score_column_names(questions), strict=True):
        names[question] = column.removeprefix(PREDICTED_COLUMN_PREFIX)
        components[names[question]] = components[question]
    for trace in run.traces():
        agent = numbers.get(trace.agent or "")
        if agent is not None:
            values = _read_member_values(run.explain_trace(trace).explained, names)
            for member, value in values.items():
                totals = totals_by_member[member][:, agent, unit_by_task[trace.task_id]]
                totals += 1.0, value is not None, value or 0.0
    members = [(name, scale) for name, scale in totals_by_member if scale is not None]
    comparisons = [
        _compare_member(
            name,
            components[name],
            scale,
            agents,
            # what failed has no scale of its own
            totals_by_member[name, scale] + totals_by_member.get((name, None), 0.0),
            units,
            len(members),
        )
        for name, scale in sorted(members)
    ]
    judged_names = {name for name, _ in members}
    for (name, _), (responses, *_) in totals_by_member.items():
        if name not in judged_names:
            means = dict.fromkeys(agents)
            left_out = int(responses.sum())
            comparisons.append(
                MemberComparison(name, components[name], None, means, left_out, None, "not judged")
            )
    return comparisons


def _find_components(run: Run) -> dict[str, str]:
    """Return the component that counts the utility of each stakeholder, or the answers to each question."""
    components: dict[str, str] = {}
    for decision in run.decisions():
        for spec in decision.effective_specs:
            for stakeholder, use in spec.inputs.items():
                components |= dict.fromkeys((stakeholder, *use.questions), spec.name)
    return components


def has_members(run: Run) -> bool:
    """Return whether a run judges for reviewers or stakeholders."""
    surveys = map(run.source.survey_without_texts, run.source.ledger.keys("survey"))
    return any(kind in _MEMBER_KINDS for survey in surveys for kind, *_ in survey.members)


def _read_member_values(
    explained_trace: ExplainedTrace, names: Mapping[str, str]
) -> dict[_MemberScale, float | None]:
    """Return the value of a response to each, by name and scale, None without one; `names` are those of the members
    that questions are about. Where all verdicts failed, there is no scale."""
    values: dict[_MemberScale, float | None] = {}
    predictions = {
        verdict.question: (verdict.scale, value)
        for verdict, value in predicted_scores(explained_trace)
        if verdict.question in names
    }
    for verdict in explained_trace.trace.verdicts:
        if verdict.question in names and verdict.status != "not_applicable":
            predictions.setdefault(verdict.question, (None, None))
    for question, (scale, value) in predictions.items():
        values[names[question], scale] = value
    for term in explained_trace.terms:
        for name, utility in term.parts.items() if term.combiner.aggregates_utilities else ():
            values[name, _UTILITY_SCALE] = None if term.is_unjudged_part(name) else utility
    return values


def _compare_member(
    member: str,
    component: str,
    scale: Limits,
    agents: Sequence[str],
    totals: Floats,
    units: str,
    comparisons: int,
) -> MemberComparison:
    """Return the comparison for one; `totals` has, by agent and unit, the numbers of responses and of values, and the
    sum of these, [3,A,U]."""
    responses, counts, sums = totals
    means = {}
    for agent, agent_sums, agent_counts in zip(agents, sums, counts, strict=True):
        mean = ratio_interval(agent_sums, agent_counts)
        means[agent] = mean and clip_to_limits(mean, scale)
    first, second = agents[:2]
    difference = None
    outcome: _Outcome = "unclear"
    if means[first] and means[second]:
        least, most = (sums + (responses - counts) * limit for limit in scale)
        pair = UnitTotals._make(columns[:2] for columns in (*totals, least, most))
        difference = compare_agents(first, second, pair, units, comparisons, scale)
        if difference.is_better_agent_known:
            outcome = "gains" if difference.is_clear else "pays"
    return MemberComparison(
        member,
        component,
        scale,
        means,
        int((responses - counts).sum()),
        difference,
        outcome,
    )
