"""The agents of a run: the mean reward of each, and which of two is better, with their intervals.

The clusters of an interval are the independent units of a run: its tasks, or groups of tasks.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jurygraph.agents.registry import BUILTIN_COMBINER_PATHS
from jurygraph.arrays import Floats
from jurygraph.decision.decide import ROUNDING_TOLERANCE, reward_limits
from jurygraph.display import format_number
from jurygraph.inference.clusters import (
    Estimate,
    bonferroni_interval,
    difference_interval,
    divide_or_nan,
    ratio_interval,
)
from jurygraph.messages import format_count
from jurygraph.runs.reports.units import SINGULAR_UNIT_LABELS, units_label
from jurygraph.runs.stored_groups import TraceWithoutTexts
from jurygraph.schema import Decision

NO_AGENT_LABEL = "(no agent)"
_MIN_RELIABLE_UNIT_COUNT = 20
"""With fewer, the interval of a difference is rough."""
Limits = tuple[float, float]
"""The least and the greatest reward, or difference of rewards, that is possible."""
UNBOUNDED_LIMITS = (-np.inf, np.inf)


def agent_label(agent: str | None) -> str:
    return agent or NO_AGENT_LABEL


@dataclass(frozen=True, kw_only=True)
class AgentDifference:
    """Two agents, of which in a ranking the first is ahead, or level.

    Attributes:
        difference: of their mean rewards, over the tasks, or groups of tasks, that both have; its interval holds
            together with those of all pairs. Of agents that have fewer than two in common, over those of each.
        units: what these are called, and `count` the number of those that both have, or, if the difference is not
            paired, of those that one of them has at least.
        left_out: the number of their rewards that failed, and are in no mean.
        least: the difference if those of the first had been as low, and those of the second as high as they could;
            `most` is that of the opposite. Both are None where none failed.
        lowest: the lower end of the intervals of these two, which decides where something failed, and `highest` the
            upper one; None where they have none.
        is_widest: whether the interval has every difference that rewards can have.
        unpaired_units: the number of units that one of them has, and the other has not.
        wins: the numbers of units of both in which the first has the higher mean, they are equal, the second has it.
        pairs: the number of differences whose intervals hold together.
        is_mean_lower: whether the second has the higher mean over all that each has, where the first is ahead.
        is_clear: whether the interval is above 0, so that other tasks would hardly turn the order, and those of
            `least` and `most` are, too: what failed decides nothing in silence.
    """

    first: str
    second: str
    difference: float
    low: float | None
    high: float | None
    units: str
    count: int
    is_paired: bool
    left_out: int
    least: float | None
    most: float | None
    lowest: float | None
    highest: float | None
    is_widest: bool
    unpaired_units: int
    wins: Sequence[int]
    pairs: int
    is_mean_lower: bool
    is_clear: bool

    @property
    def value(self) -> float:
        """Return the difference, under the name that an estimate with its interval has."""
        return self.difference

    @property
    def is_better_agent_known(self) -> bool:
        """Return whether one of the two is shown to be better: the first, or the second over what both have."""
        is_second_better = self.high is not None and self.high < 0.0 and not self.left_out
        return self.is_clear or is_second_better

    @property
    def order(self) -> str:
        """Return who is ahead of whom, as the beginning of a sentence."""
        first, second = agent_label(self.first), agent_label(self.second)
        if not round(self.difference, 4):
            return f"{first} is level with {second}"
        if self.is_mean_lower:
            return f"{first} is ahead of {second} over {self.units} of both ({second} has the higher mean over all)"
        return f"{first} is ahead of {second}"

    @property
    def sentence(self) -> str:
        size = format_number(self.difference)
        ends = ""
        if self.low is not None and self.high is not None:
            design = "paired" if self.is_paired else "unpaired"
            small_sample_note = (
                f"; rough, with fewer than {_MIN_RELIABLE_UNIT_COUNT}"
                if self.count < _MIN_RELIABLE_UNIT_COUNT
                else ""
            )
            interval = f"{format_number(self.low)} to {format_number(self.high)}"
            if self.is_widest:
                interval += ", all that is possible"
            ends = f" ({interval}, {design} over {self._tasks}{small_sample_note})"
        return f"{self.order}, {self.certainty}: the difference is {size}{ends}.{self.caveats}"

    @property
    def caveats(self) -> str:
        """Return what the difference leaves out, as further sentences, each after a space."""
        sentence = ""
        if self.left_out:
            range_text = f"{format_number(self.least)} and {format_number(self.most)}"
            if self.lowest is not None and self.highest is not None:
                interval = f"{format_number(self.lowest)} to {format_number(self.highest)}"
                range_text += f" ({interval} with its interval)"
            failed_text = format_count(self.left_out, "failed reward")
            sentence += (
                f" {failed_text} left out; with all {self.units} it would be between {range_text}."
            )
        if not self.is_paired:
            sentence += " No task, by its id, has answers of both, so that a harder one counts for one of them alone."
        elif self.unpaired_units:
            units = self._count_units(self.unpaired_units)
            sentence += f" Not in it: {units} that only one of them has."
        return sentence

    @property
    def certainty(self) -> str:
        """Return whether the lead may be chance, as a part of a sentence."""
        if self.low is None or self.high is None or self.is_widest:
            return f"though how sure that is cannot be told from {self._tasks}"
        if self.is_better_agent_known:
            return "by more than chance"
        if self.low <= 0.0 <= self.high:
            return "which may be chance"
        return "by more than chance unless the failed rewards go against it"

    @property
    def _tasks(self) -> str:
        """Return the number of units, and whether both have them."""
        tasks = self._count_units(self.count)
        if not self.is_paired:
            return f"{tasks} or more of each"
        return f"{tasks} where both were scored" if self.left_out else tasks

    def _count_units(self, number: int) -> str:
        return f"{number} {self.units if number > 1 else SINGULAR_UNIT_LABELS[self.units]}"


class UnitTotals(NamedTuple):
    """The rewards of agents in each unit, as arrays [A,U]: how many, how many did not fail, and the sum of those.

    `least` and `most` are the sums of all, with those that failed as low, or as high, as they could have been.
    """

    responses: Floats
    scored: Floats
    total: Floats
    least: Floats
    most: Floats


def compare_agents(
    first: str,
    second: str,
    totals: UnitTotals,
    units: str,
    pairs: int,
    limits: Limits,
) -> AgentDifference:
    """Return the difference of two agents that have a mean each, from the totals of both, [2,U].

    The intervals of all `pairs` are to hold together with 95 %.
    """
    estimate, is_paired = estimate_mean_difference(totals.total, totals.scored)
    left_out = int((totals.responses - totals.scored).sum())
    ends = []
    if left_out:
        for sums in (totals.least[0], totals.most[1]), (totals.most[0], totals.least[1]):
            ends.append(estimate_mean_difference(np.stack(sums), totals.responses)[0])
    signs = np.sign(np.round(_differences_in_units(totals.total, totals.scored), 12))
    max_difference = limits[1] - limits[0]
    possible = (-max_difference, max_difference)
    clipped = []
    for estimate_or_bound in (estimate, *ends):
        low, high = bonferroni_interval(estimate_or_bound, pairs)
        interval = estimate_or_bound._replace(low=low, high=high)
        clipped.append(clip_to_limits(interval, possible))
    clipped_estimate, *clipped_ends = clipped
    least, most = [end.value for end in ends] or (None, None)
    low_ends = [end.low for end in clipped_ends if end.low is not None]
    high_ends = [end.high for end in clipped_ends if end.high is not None]
    means = totals.total.sum(axis=1) / totals.scored.sum(axis=1)
    has_intervals = len(low_ends) == len(clipped_ends) > 0
    return AgentDifference(
        first=first,
        second=second,
        # differences that cancel leave an error in the last bits
        difference=round(estimate.value, 12) + 0.0,
        low=clipped_estimate.low,
        high=clipped_estimate.high,
        units=units,
        count=estimate.clusters,
        is_paired=is_paired,
        left_out=left_out,
        least=least,
        most=most,
        lowest=min(low_ends) if has_intervals else None,
        highest=max(high_ends) if has_intervals else None,
        is_widest=(clipped_estimate.low, clipped_estimate.high) == possible,
        wins=[int(np.count_nonzero(signs == sign)) for sign in (1.0, 0.0, -1.0)],
        unpaired_units=int(np.count_nonzero((totals.responses > 0.0).sum(axis=0) == 1)),
        pairs=pairs,
        is_mean_lower=bool(estimate.value > 0.0 and means[1] - means[0] > ROUNDING_TOLERANCE),
        is_clear=all(end.low is not None and end.low > 0.0 for end in clipped),
    )


def estimate_mean_difference(sums: Floats, counts: Floats) -> tuple[Estimate, bool]:
    """Return the difference of two means, from the sums and numbers of each in each unit, and whether it is paired."""
    differences = _differences_in_units(sums, counts)
    if len(differences) < 2:
        # one task in common, or none, shows no more than those that each has alone
        return difference_interval(sums, counts), False
    estimate = ratio_interval(differences, np.ones(len(differences)))
    assert estimate is not None, "they have two units in common"
    return estimate, True


def _differences_in_units(sums: Floats, counts: Floats) -> Floats:
    """Return the difference of two means in each unit that both have."""
    is_unit_shared = counts.all(axis=0)
    means = sums[:, is_unit_shared] / counts[:, is_unit_shared]
    differences: Floats = means[0] - means[1]
    return differences


def measure_leads(sums: Floats, counts: Floats) -> Floats:
    """Return by how much each agent is ahead of each other one, [A,A], from the sums and numbers [A,U] of all.

    It is the value of `estimate_mean_difference`; NaN where one of two has no mean.
    """
    has_unit = counts > 0.0
    unit_means = np.where(has_unit, divide_or_nan(sums, counts), 0.0)
    means = divide_or_nan(sums.sum(axis=1), counts.sum(axis=1))
    leads = np.subtract.outer(means, means)
    for agent, means_of_agent in enumerate(unit_means):
        is_shared = has_unit[agent] & has_unit[:agent]
        shared_units = np.count_nonzero(is_shared, axis=1)
        differences = (means_of_agent - unit_means[:agent]) * is_shared
        is_paired = shared_units > 1
        paired_leads = differences.sum(axis=1)[is_paired] / shared_units[is_paired]
        leads[agent, :agent][is_paired] = paired_leads
        leads[:agent, agent][is_paired] = -paired_leads
    # differences that cancel leave an error in the last bits
    rounded_leads: Floats = leads.round(12)
    return rounded_leads


def clip_to_limits(estimate: Estimate, limits: Limits) -> Estimate:
    """Return the estimate cut off at the limits; where its value is outside, they are not those of its rewards."""
    clipped = estimate.within(*limits)
    # a combiner of one's own may give more than 1, and rounding a little more
    if abs(clipped.value - estimate.value) > ROUNDING_TOLERANCE:
        return estimate
    return clipped._replace(value=estimate.value)


def reward_limits_of_decisions(decisions: Sequence[Decision], lowest_reward: float) -> Limits:
    """Return the least and the greatest reward that some decisions can give; of none, any is possible.

    With a combiner of one's own, which may give more than 1, they are those of the clip, if there is one.

    Where the `lowest_reward` of all is below what penalties cost if every gain applies, some gains do not.
    """
    limits = [UNBOUNDED_LIMITS]
    for all_criteria_apply in (True, False) if decisions else ():
        limits = [
            _reward_limits_of_decision(decision, all_criteria_apply) for decision in decisions
        ]
        if lowest_reward >= min(limits)[0] - ROUNDING_TOLERANCE:
            break
    return min(limits)[0], max(high for _, high in limits)


def _reward_limits_of_decision(decision: Decision, all_criteria_apply: bool) -> Limits:
    if all(spec.combiner in BUILTIN_COMBINER_PATHS for spec in decision.effective_specs):
        return reward_limits(decision, all_criteria_apply=all_criteria_apply)
    return decision.clip or UNBOUNDED_LIMITS


class UnitRewards(NamedTuple):
    """The rewards of an agent for one unit, as `UnitTotals` has those of many."""

    agent: str
    unit: str
    responses: int
    scored: int
    total: float
    least: float
    most: float


def unit_rewards(trace: TraceWithoutTexts, unit: str) -> UnitRewards:
    """Return the reward of one response for its unit."""
    scored = int(trace.value is not None)
    return UnitRewards(trace.agent or "", unit, 1, scored, trace.value or 0.0, *trace.span)


class RankedAgent(NamedTuple):
    """An agent in the order of the means: its responses, those with a reward, and the units that these are of.

    `lead` is its difference from the next one; None for the last, and where one of the two has no mean. `gap` is that
    of the best one from it; None for the best and the next, whose difference is the best one's lead.
    """

    agent: str
    responses: int
    scored: int
    units: int
    mean: Estimate | None
    lead: AgentDifference | None
    gap: AgentDifference | None

    @property
    def missing_interval(self) -> str | None:
        """Return why the mean of several units has no interval; None where it has one."""
        has_no_interval = self.mean is not None and self.mean.low is None and self.units > 1
        return f"none: all {self.units} are alike" if has_no_interval else None


def conclude_ranking(agents: Iterable[RankedAgent]) -> list[str]:
    """Return that no agent is shown to be better than one it was compared with; nothing where one is, and of fewer
    than three."""
    pairs = [pair for row in agents for pair in (row.lead, row.gap) if pair is not None]
    if len(pairs) < 2 or any(pair.is_better_agent_known for pair in pairs):
        return []
    return ["No agent is shown to be better than the next, nor the first than any other."]


def rank_agents(
    rewards: Iterable[UnitRewards],
    limits: Limits,
    unit_names: str | None = None,
    pairs: int | None = None,
) -> list[RankedAgent]:
    """Return the agents, the best mean first and those without a mean last; failed rewards are in no mean.

    `limits` are the least and the greatest reward that is possible. `unit_names` is what the units are called; None:
    tasks, or groups of tasks. `pairs` is the number of differences whose intervals hold together; None: of these.
    """
    rows = list(rewards)
    agents = {agent: number for number, agent in enumerate(sorted({row.agent for row in rows}))}
    # sorted, as the agents are, so that no sum depends on the order of the rows
    units = {unit: number for number, unit in enumerate(sorted({row.unit for row in rows}))}
    arrays = np.zeros((len(UnitTotals._fields), len(agents), len(units)))
    for row in rows:
        arrays[:, agents[row.agent], units[row.unit]] += row[2:]
    return rank_agents_by_mean([*agents], arrays, unit_names or units_label(units), limits, pairs)


def rank_agents_by_mean(
    names: Sequence[str],
    arrays: Floats,
    units: str,
    limits: Limits,
    pairs: int | None = None,
) -> list[RankedAgent]:
    """Return agents in the order of their means, those without one last, from their `UnitTotals` as an array [5,A,U].

    `units` is what the units are called, and `pairs` is that of `rank_agents`.
    """
    _, scored_counts, sums, _, _ = arrays.sum(axis=2)
    order = np.argsort(-divide_or_nan(sums, scored_counts), kind="stable")
    agents = [names[index] for index in order]
    totals = UnitTotals._make(arrays[:, order])
    means = []
    for total, scored in zip(totals.total, totals.scored, strict=True):
        mean = ratio_interval(total, scored)
        means.append(mean and clip_to_limits(mean, limits))
    count = len(means) - means.count(None)
    # neighbours, and the best with each that is not the next
    pairs = pairs or max(count - 1, 2 * count - 3)

    def compare(first: int, second: int) -> AgentDifference:
        unit_totals_of_pair = UnitTotals._make(array[[first, second]] for array in totals)
        difference = compare_agents(
            agents[first], agents[second], unit_totals_of_pair, units, pairs, limits
        )
        # over what both have, the one with the lower mean over all may be ahead
        return compare(second, first) if difference.difference < 0.0 else difference

    return [
        RankedAgent(
            agent=agent,
            responses=int(totals.responses[row].sum()),
            scored=int(totals.scored[row].sum()),
            units=int(np.count_nonzero(totals.scored[row])),
            mean=means[row],
            lead=compare(row, row + 1) if row + 1 < count else None,
            gap=compare(0, row) if 1 < row < count else None,
        )
        for row, agent in enumerate(agents)
    ]
