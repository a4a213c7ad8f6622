"""The order of a run's agents: how sure it is, and how far it is from turning if a setting had another value.

A run is decided again under other settings with the code of `rescore`, without a call. An order can turn for two
reasons that have nothing to do with each other: other tasks would have been drawn, which the interval of a difference
shows, or somebody would have chosen another weight, which is searched for here.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, zip_longest
from math import ceil, floor, log10
from typing import NamedTuple, get_args

import numpy as np

from jurygraph.arrays import Floats
from jurygraph.decision.recipe import RUBRIC_COMPONENT_NAME, STAKEHOLDERS_COMPONENT_NAME
from jurygraph.display import ProgressCallback, ignore_progress
from jurygraph.errors import InputError
from jurygraph.messages import format_count, join_names, notes_on_similar_names
from jurygraph.runs.reports.summary import (
    compare_failed_rewards,
    count_findings,
)
from jurygraph.runs.reports.units import unit_name, units_label
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.deciding import DecidedRewards, PackedGroupVerdicts, VerdictTables
from jurygraph.schema import Config
from jurygraph.schema.plan import FailureRule
from jurygraph.sources.config import apply_settings
from jurygraph.studies import symbols
from jurygraph.studies.conclusions import describe_lead
from jurygraph.studies.report import (
    Columns,
    Figures,
    Plot,
    PlotSeries,
    Report,
    ReportTable,
)
from jurygraph.views.agents import (
    AgentDifference,
    RankedAgent,
    UnitTotals,
    agent_label,
    conclude_ranking,
    measure_leads,
    rank_agents_by_mean,
    reward_limits_of_decisions,
)
from jurygraph.views.components import (
    JudgedValues,
    add_all_else,
    compare_components,
    conclude_components,
)
from jurygraph.views.labels import LabelComparison
from jurygraph.views.members import MemberComparison, compare_members, has_members

_SETTING_GRID_STEPS = 8
"""Steps from the lowest to the highest value of a setting at which a ranking is computed."""
_SWAP_WIDTH = 2.0**-20
"""How near the value of a swap is to that where the order is as before, as a share of the step that was searched."""
_SMALL_LEAD = 1e-9
"""What the first of two agents that are level counts as ahead."""
RELATIVE_CHANGE_SIZES = tuple(2.0**power for power in range(-6, 8))
"""Changes of a setting that are tried, smallest first, as shares of its present value: from 1/64 to 128 times."""
_WIDEST_WEIGHT_FACTOR = 64.0
"""How many times its present value a weight is searched to."""
_MAX_NUMBERS_KEPT = 2**20
"""Most numbers in the sums by unit that are kept, with 1024 for each config: 1024 configs of a small run."""
_MAX_RESPONSES_EXPLAINED = 10_000
"""Most responses for which it is told who pays: each is explained for that, in 0.7 ms."""
_UNTOLD_MEMBERS_NOTES = (
    "who of reviewers or stakeholders pays for the choice is told of runs of up to "
    f"{_MAX_RESPONSES_EXPLAINED:,} responses",
)
_MAX_CRITERIA_VARIED = 12
"""Most criteria whose weights are tried: each takes up to 28 decisions of the whole run."""

SumsFunction = Callable[[float], Floats]
"""A function of a setting's value that returns the sums and numbers [2,A,U] of the rewards of agents in units."""


@dataclass(frozen=True, kw_only=True)
class TriedSetting:
    """A setting that decides how verdicts count: its key, its present value, and its range or its other choices."""

    key: str
    label: str
    value: str
    choices: Sequence[str] = ()
    low: float = 0.0
    high: float = 1.0

    @property
    def is_number(self) -> bool:
        return not self.choices

    @property
    def name(self) -> str:
        """Return the label without its explanation."""
        return self.label.partition(",")[0]

    @property
    def searched_range(self) -> tuple[float, float]:
        """Return the range that the search reaches, without values of another sign: a gain would become a penalty.

        What does not count now could be a gain.
        """
        present = float(self.value)
        low = self.low if present < 0.0 else max(self.low, 0.0)
        high = self.high if present >= 0.0 else min(self.high, 0.0)
        if self.key.startswith(("reward.", "criteria.")):  # a weight has no natural end
            low = min(low, _WIDEST_WEIGHT_FACTOR * present)
            high = max(high, _WIDEST_WEIGHT_FACTOR * present)
        reach = RELATIVE_CHANGE_SIZES[-1] * (abs(present) or 1.0)
        return max(low, present - reach), min(high, present + reach)


@dataclass(frozen=True, kw_only=True)
class DecisionMethods:
    """The means by which a run was decided.

    Attributes:
        combiners: the components of all decisions, with their combiners.
        criteria: the weights of the rubric's criteria that can be tried: those that every rubric has, of one weight.
        others: the number of all other criteria of rubrics.
    """

    combiners: Collection[tuple[str, str]] = ()
    criteria: Mapping[str, float] = field(default_factory=dict)
    others: int = 0


def collect_decision_methods(run: Run) -> DecisionMethods:
    """Return the means by which a run was decided; this reads every decision."""
    combiners = set()
    rubrics = []
    for decision in run.decisions():
        for spec in decision.effective_specs:
            combiners.add((spec.name, spec.combiner))
            if spec.name == RUBRIC_COMPONENT_NAME:
                rubrics.append({(name, use.signed_weight) for name, use in spec.inputs.items()})
    names = {name for rubric in rubrics for name, _ in rubric}
    shared_criteria = set.intersection(*rubrics) if rubrics else set()
    criteria = {name: weight for name, weight in sorted(shared_criteria) if is_settable_name(name)}
    if len(criteria) > _MAX_CRITERIA_VARIED:
        criteria = {}
    return DecisionMethods(
        combiners=frozenset(combiners), criteria=criteria, others=len(names) - len(criteria)
    )


def describe_untried_weights(config: Config, decided_by: DecisionMethods) -> list[str]:
    """Return notes on the weights that `list_settings` leaves out, of criteria and of components."""
    notes = []
    if decided_by.others:
        notes.append(
            f"not tried: {format_count(decided_by.others, 'weight')} of criteria, since they are many, not alike in "
            "all tasks, or have `.` or `=` in their names: `rescore --set criteria.NAME.weight=W`, or `criteria` as a "
            "whole"
        )
    components = [name for name in config.reward if not is_settable_name(name)]
    if components:
        notes.append(
            f"not tried: the weight of {join_names(components)}, since `--set` takes no name with `.` or `=`; "
            "it takes `reward` as a whole"
        )
    return notes


def list_settings(config: Config, decided_by: DecisionMethods) -> Iterator[TriedSetting]:
    """Yield the settings that decide how verdicts count, with their values; `decided_by` is of the run."""
    combiners = decided_by.combiners
    components = {component for component, _ in combiners}
    names = {combiner for _, combiner in combiners}
    weighted_component_names = [name for name, weight in config.reward.items() if weight]
    for name, weight in config.reward.items():
        if weighted_component_names == [name] or not is_settable_name(name):
            continue  # a reward needs a weight, and the only one that counts decides no order
        max_value = max(5.0, 4.0 * abs(weight))
        yield _number_setting(f"reward.{name}", f"weight of {name}", weight, -max_value, max_value)
    for name, weight in decided_by.criteria.items():
        criterion_config = config.criteria.get(name)
        if criterion_config is not None:
            weight = criterion_config.weight or weight
        # It keeps its sign: without a weight it would be no criterion.
        low, high = abs(weight) / 1000.0, max(5.0, 4.0 * abs(weight))
        if weight <= 0:
            low, high = -high, -low
        key = f"criteria.{name}.weight"
        yield _number_setting(key, f"weight of criterion {name}", weight, low, high)
    rubric = config.rubric
    if names & set(_RUBRIC_AGGREGATION_NAMES):
        if "gear" in names:
            max_value = max(10.0, 4.0 * rubric.kappa)
            label = "κ, how strictly prerequisites count"
            yield _number_setting("rubric.kappa", label, rubric.kappa, 0.0, max_value)
        yield _make_choice_setting(
            "rubric.aggregation",
            "aggregation of the rubric",
            rubric.aggregation,
            _RUBRIC_AGGREGATION_NAMES,
        )
    if STAKEHOLDERS_COMPONENT_NAME in components:
        weights = config.weights
        max_value = max(100.0, 4.0 * weights.temperature)
        label = "τ, how alike stakeholders count"
        yield _number_setting("weights.temperature", label, weights.temperature, 0.01, max_value)
        yield _make_choice_setting(
            "weights.method",
            "weights of stakeholders",
            weights.method,
            ("calibrated", "uniform"),
        )
    for index, gate in enumerate(config.gates):
        name, off_value = ("above", 1) if gate.kind == "repetition" else ("below", 0)
        label = f"{gate.title}, where {gate.component} is {name} ({off_value} is off)"
        yield _number_setting(f"gates.{index}.{name}", label, getattr(gate, name), 0.0, 1.0)
    failure = config.failure
    yield _make_choice_setting(
        "failure.rule", "what is not judged", failure.rule, get_args(FailureRule)
    )
    label = "least judged share of a reward"
    yield _number_setting("failure.min_coverage", label, failure.min_coverage, 0.0, 1.0)


_RUBRIC_AGGREGATION_NAMES = ("flat", "gear", "hard-local", "hard-transitive")


def is_settable_name(name: str) -> bool:
    """Return whether `--set` can lead to a field of this name: a dot would go on to a field of it."""
    return not {".", "="} & set(name)


def _number_setting(key: str, label: str, value: float, low: float, high: float) -> TriedSetting:
    return TriedSetting(key=key, label=label, value=f"{value:.12g}", low=low, high=high)


def _make_choice_setting(key: str, label: str, value: str, choices: Sequence[str]) -> TriedSetting:
    others = [choice for choice in choices if choice != value]
    return TriedSetting(key=key, label=label, value=value, choices=others)


class AgentRanker:
    """Ranks the agents of a run, which must stay open, under other settings; each config is decided once.

    `groups` are its groups; by default they are read. `advance` receives 1 before each decision, and may raise to end a
    search. Tasks whose texts were erased keep their rewards. Raises as `VerdictTables` and `rescore` do.
    """

    def __init__(
        self,
        run: Run,
        groups: Iterable[PackedGroupVerdicts] | None = None,
        advance: ProgressCallback = ignore_progress,
    ) -> None:
        self.run = run
        self._advance = advance
        self.tables = VerdictTables(run, groups)
        names_of_rows = np.array(self.tables.agents, dtype=object)
        agents, self.agent = np.unique(names_of_rows, return_inverse=True)
        self.agents: list[str] = agents.tolist()
        names = [unit_name(*task) for task in self.tables.tasks]
        self.units = units_label(names)
        # sorted, so that no sum over units depends on the order of the rows
        _, self.unit = np.unique(np.array(names, dtype=object), return_inverse=True)
        tasks = (task for task, _ in self.tables.tasks)
        self.unit_by_task = dict(zip(tasks, self.unit.tolist(), strict=True))
        self._sums: dict[str, Floats] = {}

    def sum_rewards(self, settings: Sequence[str] = ()) -> Floats:
        """Return the sums and numbers [2,A,U] of rewards that did not fail; settings are as `--set`."""
        config = apply_settings(self.run.config, settings)
        key = config.model_dump_json()
        if key not in self._sums:
            self.decide(config)
        return self._sums[key]

    def decide(self, config: Config) -> DecidedRewards:
        """Return the run decided under a config, whose sums are kept."""
        self._advance(1)
        decided_rewards = self.tables.decide(config)
        rewards = decided_rewards.values.value
        columns = np.nan_to_num(rewards), 1.0 - np.isnan(rewards)
        sums = np.array([self.sum_by_unit(column) for column in columns])
        if len(self._sums) * (1024 + sums.size) >= _MAX_NUMBERS_KEPT:
            self._sums.clear()
        self._sums[config.model_dump_json()] = sums
        return decided_rewards

    def sum_by_unit(self, values: Floats) -> Floats:
        """Return the sums [A,U] of a value of each row."""
        shape = len(self.agents), int(self.unit.max(initial=-1)) + 1
        cells = np.ravel_multi_index((self.agent, self.unit), shape)
        sums = np.bincount(cells, values, math.prod(shape))
        return sums.astype(np.float64).reshape(shape)

    def sums_function(self, key: str, settings: Sequence[str]) -> SumsFunction:
        """Return the sums as a function of one setting; `settings` are tried with it."""
        return lambda value: self.sum_rewards([*settings, f"{key}={value!r}"])


class RankSwap(NamedTuple):
    """A value of a setting at which two agents change places: below it `first` is ahead, from it on `second`."""

    value: float
    first: str
    second: str


def find_rank_swaps(
    agents: Sequence[str], sum_rewards: SumsFunction, low: float, high: float
) -> list[RankSwap]:
    """Return where agents change places as a setting moves from `low` to `high`, by a search between a few points.

    Of `agents` that are level, the first is ahead. Agents that change places and back between two of the points are not
    found.
    """
    points = [
        low + (high - low) * step / _SETTING_GRID_STEPS for step in range(_SETTING_GRID_STEPS + 1)
    ]
    leads = [measure_leads(*sum_rewards(point)) for point in points]
    rank_swaps = []
    for (interval_start, before), (interval_end, after) in pairwise(
        zip(points, leads, strict=True)
    ):
        is_ahead = np.triu(before == 0.0, 1) | (before > 0.0)
        for first, second in np.argwhere(is_ahead & (after < 0.0)).tolist():
            value = _find_rank_swap_value(
                sum_rewards, interval_start, interval_end, (first, second)
            )
            rank_swaps.append(RankSwap(value, agents[first], agents[second]))
    return sorted(rank_swaps)


def _find_rank_swap_value(
    sum_rewards: SumsFunction, start: float, end: float, pair: tuple[int, int]
) -> float:
    """Return the value nearest to `start` at which the second agent is ahead, as it is at `end`.

    By Brent's method, since each step decides the whole run again, and to the far side of what it finds.
    """
    from scipy.optimize import brentq  # imported lazily: every `study` command would wait for it

    def value_at(share: float) -> float:
        return start * (1.0 - share) + end * share

    def lead_at(share: float) -> float:
        # a zero would end the search, and of two that are level the first one keeps its place
        sums = sum_rewards(value_at(share))[:, pair]
        lead = float(measure_leads(*sums)[1, 0]) or -_SMALL_LEAD
        return -1.0 if math.isnan(lead) else lead

    if lead_at(0.0) > 0.0:  # two that are level today may differ by rounding
        return start
    share = brentq(lead_at, 0.0, 1.0, xtol=_SWAP_WIDTH / 4.0)
    return value_at(min(share + _SWAP_WIDTH / 2.0, 1.0))


def format_reversal(value: float, *, is_rounded_up: bool) -> str:
    """Format a value at which the order of two agents is reversed: four digits, rounded to where they stay so."""
    if not value:
        return "0"
    scale = 10.0 ** (3 - floor(log10(abs(value))))
    rounded_value = (ceil if is_rounded_up else floor)(value * scale) / scale
    return f"{rounded_value:.4g}"


@dataclass(frozen=True, kw_only=True)
class NearestRankReversal:
    """The smallest change of one setting that was found to reverse two agents; `share` is its size by today's value."""

    key: str
    label: str
    today: float
    value: float
    share: float

    def __str__(self) -> str:
        word = "less" if abs(self.value) < abs(self.today) else "more"
        size = f"{100.0 * self.share:.3g} % {word}" if self.today else "it is 0 without it"
        value = format_reversal(self.value, is_rounded_up=self.value > self.today)
        return f"with {self.label} at {value} instead of {self.today:g} ({size})"


class NearestReversals(NamedTuple):
    """The nearest reversal of each pair of agents, None where none was found; of the first, by setting, too."""

    by_pair: Sequence[NearestRankReversal | None]
    of_first_pair: Mapping[str, NearestRankReversal]


def find_nearest_reversals(
    ranker: AgentRanker,
    settings: Sequence[TriedSetting],
    pairs: Sequence[tuple[str, str]],
    tried_settings: Sequence[str],
    advance: ProgressCallback,
) -> NearestReversals:
    """Return the smallest changes that reverse the order of pairs of agents, of which the first is ahead.

    Each setting moves alone, from its present value outwards on both sides. The first pair is searched until each
    setting reverses it; another one until any setting does. `advance` receives 1 for each size of a change.
    """
    nearest: list[NearestRankReversal | None] = [None] * len(pairs)
    of_first_pair: dict[str, NearestRankReversal] = {}
    agent_indices = [
        (ranker.agents.index(first), ranker.agents.index(second)) for first, second in pairs
    ]
    numbers = [setting for setting in settings if setting.is_number]
    inner = 0.0
    for relative_change in RELATIVE_CHANGE_SIZES:
        reversals: dict[int, list[NearestRankReversal]] = defaultdict(list)
        later_pairs = [index for index in range(1, len(pairs)) if nearest[index] is None]
        for setting in numbers:
            searched_pairs = list(later_pairs)
            if pairs and setting.key not in of_first_pair:
                searched_pairs.append(0)
            if not searched_pairs:
                continue
            for start, end in _steps(setting, inner, relative_change):
                sum_rewards = ranker.sums_function(setting.key, tried_settings)
                after = measure_leads(*sum_rewards(end))
                for index in searched_pairs:
                    pair = agent_indices[index]
                    if after[pair] < 0.0:
                        value = _find_rank_swap_value(sum_rewards, start, end, pair)
                        reversals[index].append(_to_reversal(setting, value))
        for index, candidates in reversals.items():
            candidates.sort(key=lambda reversal: (reversal.share, reversal.key))
            nearest[index] = nearest[index] or candidates[0]
        for reversal in reversals[0]:
            of_first_pair.setdefault(reversal.key, reversal)
        inner = relative_change
        advance(1)
    return NearestReversals(nearest, of_first_pair)


def _to_reversal(setting: TriedSetting, value: float) -> NearestRankReversal:
    today = float(setting.value)
    share = abs(value - today) / (abs(today) or 1.0)
    return NearestRankReversal(
        key=setting.key, label=setting.name, today=today, value=value, share=share
    )


def _steps(
    setting: TriedSetting, smaller_relative_change: float, larger_relative_change: float
) -> Iterator[tuple[float, float]]:
    """Yield the steps of a setting, from one size of a change to the next: down and up, as far as its range goes."""
    current_value = float(setting.value)
    low, high = setting.searched_range
    scale = abs(current_value) or 1.0
    for sign in (-1.0, 1.0):
        start, end = (
            min(max(current_value + sign * change * scale, low), high)
            for change in (smaller_relative_change, larger_relative_change)
        )
        if start != end:
            yield start, end


@dataclass(frozen=True, kw_only=True)
class NeighbouringAgents(AgentDifference):
    """Two agents that follow each other in the order, and what could turn them.

    Attributes:
        turn: the smallest change of a setting that turns them; None where none was found.
    """

    turn: NearestRankReversal | None

    def sentences(self) -> list[str]:
        if self.difference == 0.0:
            return [self.sentence]  # any change turns them
        change = "No single setting that was tried, changed alone, makes them change places."
        if self.turn is not None:
            change = f"They change places {self.turn}."
        return [describe_lead(self), change]


def rank_with_intervals(ranker: AgentRanker, tried_settings: Sequence[str]) -> list[RankedAgent]:
    """Return the agents in the order that the settings give them; those without a mean are left out."""
    decided_rewards = ranker.decide(apply_settings(ranker.run.config, tried_settings))
    return _agent_means(ranker, decided_rewards)


def measure_ranking(
    ranker: AgentRanker,
    tried_settings: Sequence[str] = (),
    advance: ProgressCallback = ignore_progress,
) -> Report:
    """Return the order of the agents under the config, or with the settings that are tried, and what could turn it.

    `advance` receives 1 for each of `RELATIVE_CHANGE_SIZES` that was searched. Raises `InputError` where no reward has
    a value.
    """
    run = ranker.run
    config = apply_settings(run.config, tried_settings)
    decided_rewards = ranker.decide(config)
    ranked_agents = _agent_means(ranker, decided_rewards)
    names = [row.agent for row in ranked_agents]
    if not names:
        raise InputError(f"{run.folder}: no reward has a value, so there is nothing to rank")
    values = _judged_values(ranker, decided_rewards)
    components = compare_components(ranked_agents, values, config)
    gates = {gate.step for decision in decided_rewards.decisions for gate in decision.gates}
    gate_losses = [
        (row.component, row.agent, row.total)
        for row in _judged_values(ranker, decided_rewards)
        if row.component in gates
    ]
    rows_of_components = add_all_else(components, ranked_agents, gate_losses, config.scale)
    decided_by = collect_decision_methods(run)
    settings = list(list_settings(config, decided_by))
    leads_over_next_agent = [row.lead for row in ranked_agents if row.lead is not None]
    pairs = [(lead.first, lead.second) for lead in leads_over_next_agent]
    reversals = find_nearest_reversals(ranker, settings, pairs, tried_settings, advance)
    turning_points = list_turning_points(settings, reversals.of_first_pair) if pairs else []
    neighbours = [
        NeighbouringAgents(**vars(lead), turn=turn)
        for lead, turn in zip(leads_over_next_agent, reversals.by_pair, strict=True)
    ]
    gaps = [row.gap for row in ranked_agents if row.gap is not None]
    members: list[MemberComparison] = []
    untold_notes: Sequence[str] = ()
    if len(ranker.tables.responses) <= _MAX_RESPONSES_EXPLAINED:
        members = compare_members(run, names, ranker.unit_by_task, ranker.units)
    elif has_members(run):
        untold_notes = _UNTOLD_MEMBERS_NOTES
    agents = [
        {
            "agent": row.agent,
            "mean": row.mean,
            "responses": row.responses,
            "left_out": row.responses - row.scored,
        }
        for row in ranked_agents
    ]
    figures = {
        "settings": list(tried_settings),
        "agents": agents,
        "pairs": neighbours,
        "gaps": gaps,
        "components": components,
        "searched": [setting.key for setting in settings if setting.is_number],
        "turning_points": turning_points,
        "members": members,
    }
    columns: Columns = {
        "agent": _agent_name,
        "mean reward": "mean",
        "responses": "responses",
        "left out": "left_out",
    }
    conclusion = conclude_ranking(ranked_agents)
    if sum(bool(row.weight) for row in components) > 1:
        conclusion.append(conclude_components(rows_of_components))
    for pair in neighbours[:1]:
        conclusion += pair.sentences()
    conclusion += filter(None, [member.sentence for member in members])
    if not pairs:
        conclusion.append(
            "there is one agent alone, so that no order can turn"
            if any(names)
            else "no response names an agent; score a table with --agent-column, a file with `agent`"
        )
    warning = None
    # of the rewards of today: with other settings, others may fail
    if not tried_settings and np.isnan(decided_rewards.values.value).any():
        warning = compare_failed_rewards(run).warning
    by_name = {_agent_name(row): row["mean"] for row in agents}
    series = PlotSeries.from_estimates_with_intervals("mean reward", by_name)
    plots = [Plot("Mean reward of each agent, with its 95 % interval", "points", [series])]
    return Report(
        figures,
        [
            ReportTable.of(columns, agents),
            *([_pair_table(neighbours, gaps)] if gaps else []),
            _member_table(members, names),
            ReportTable.of(_TURNING_POINT_COLUMNS, turning_points),
            ReportTable(
                ["component (points behind)", "weight", *map(_agent_name, agents)],
                [[row.component, row.weight, *row.agents] for row in rows_of_components],
            ),
        ],
        [
            *_notes(figures, describe_untried_weights(config, decided_by), ranker),
            *untold_notes,
            *([warning] if warning else []),
            *notes_on_similar_names(ranker.agents),
        ],
        plots,
        conclusion,
        symbols.RANKING_SYMBOL_MEANINGS,
    )


def list_turning_points(
    settings: Sequence[TriedSetting], turns_of_lead: Mapping[str, NearestRankReversal]
) -> list[Figures]:
    """Return for each number what it is today, the range that was searched, and the value that turns the first two."""
    rows: list[Figures] = []
    for setting in settings:
        if not setting.is_number:
            continue
        low, high = setting.searched_range
        turn = turns_of_lead.get(setting.key)
        outcome = f"not within {low:g} to {high:g}"
        if turn is not None:
            value = format_reversal(turn.value, is_rounded_up=turn.value > turn.today)
            outcome = f"from {value} on" if turn.value > turn.today else f"from {value} down"
        rows.append(
            {
                "setting": setting.key,
                "today": float(setting.value),
                "value": turn and turn.value,
                "low": low,
                "high": high,
                "outcome": outcome,
            }
        )
    return rows


_TURNING_POINT_COLUMNS: Columns = {
    "setting, changed alone": "setting",
    "today": "today",
    "the first two change places": "outcome",
}


def add_label(report: Report, by: LabelComparison) -> Report:
    """Return the report of a ranking with the agents apart for each value of a label."""
    header = [by.label, "tasks", "mean rewards", "lead", "over tasks of both", "that is"]
    cells = [
        [row.value, row.units, row.means, row.lead, row.lead and row.lead.count, row.outcome]
        for row in by.rows
    ]
    values = [{**row._asdict(), "outcome": row.outcome} for row in by.rows]
    return replace(
        report,
        figures={**report.figures, "by": {"label": by.label, "values": values}},
        sections=[*report.sections, ReportTable(header, cells)],
        notes=[*report.notes, *by.notes],
        conclusion=[*report.conclusion, by.conclusion],
    )


def _pair_table(
    neighbours: Sequence[NeighbouringAgents], gaps: Sequence[AgentDifference]
) -> ReportTable:
    """Return how far each agent is ahead of the next one, and what turns them, then the first of the others."""
    header = ("ahead", "behind", "lead", "that is", "change places with")
    turns = [
        str(pair.turn or "nothing that was tried").removeprefix("with ") for pair in neighbours
    ]
    rows: list[Sequence[object]] = []
    for pair, turn in zip_longest([*neighbours, *gaps], turns):
        agents = agent_label(pair.first), agent_label(pair.second)
        rows.append((*agents, pair, pair.certainty.removeprefix("which "), turn))
    return ReportTable(header, rows, left=2)


def _member_table(members: Sequence[MemberComparison], agents: Sequence[str]) -> ReportTable:
    """Return what each reviewer or stakeholder gets from each agent, and who pays for the choice of the first."""
    names = list(map(agent_label, agents))
    components = join_names(dict.fromkeys(row.component for row in members))
    title = f"reviewer or stakeholder (scale), by {components}"
    header = [title, *names, "lead of the first", "gains or pays"]
    # one axis for all agents: a dot farther to the right is a higher mean
    ends = [end for row in members for end in row.scale or ()]
    axes = dict.fromkeys(names, (min(ends, default=0.0), max(ends, default=1.0)))
    rows = []
    for row in members:
        # what is left out could turn a lead whose interval does not contain 0
        left_out = f", {row.left_out} left out" if row.left_out else ""
        rows.append((row.label, *row.means.values(), row.difference, row.outcome + left_out))
    return ReportTable(header, rows, digits=2, axes=axes)


def _agent_name(row: Figures) -> str:
    return agent_label(row["agent"])


def _notes(figures: Figures, untried: Sequence[str], ranker: AgentRanker) -> Iterator[str]:
    yield (
        "settings were searched one at a time, from today's value outwards in steps that double, from 1/64 of it on, "
        "then between them. Two turns between two steps are missed, and so are changes of several settings at once; "
        "a weight keeps its sign. Not moved are which criteria are musts (`criteria.NAME.must`; of one in `gates` the "
        "threshold is moved, and 0 takes it away), and response gates "
        "(`safety.gates`): what they stop, no judge has read, as `score --branch` lets it"
    )
    yield from untried
    differences = len(figures["pairs"]) + len(figures["gaps"])
    if differences > 1:
        yield f"the intervals of the {differences} differences hold together with 95 %"
    yield "failed rewards are in no mean"
    erased = len(ranker.tables.erased_tasks)
    if erased:
        yield f"the rewards of {format_count(erased, 'task')} whose texts were erased stay, whatever setting is tried"
    judged_members = [member for member in figures["members"] if member.scale is not None]
    if judged_members:
        yield (
            "reviewers and stakeholders: values of the run as it was scored, on their own scales (what a reviewer is "
            "predicted to give; the utility of a stakeholder). Left out here are predictions that failed or have no "
            "valid quotation, which the mean rewards count, by default as the worst score: with any of these, both "
            f"rest on different data. Leads are paired over {ranker.units} of both, and their {len(judged_members)} "
            "intervals hold together with 95 %, without the error of the judges themselves"
        )
    findings = count_findings(ranker.run, {*ranker.tables.responses})
    if findings.unsupported:
        yield (
            f"{findings.unsupported} of {findings.quotable} findings that need a quotation have none that counts: in "
            "these means they count as `safety: {evidence: …}` says, by default as the worst score"
        )


def _judged_values(ranker: AgentRanker, decided_rewards: DecidedRewards) -> Iterator[JudgedValues]:
    """Yield the values of each component and gate by agent and unit: by response they take 100 MB for 100,000."""
    rewards, _, _, judged = decided_rewards.values
    for name, values in zip(decided_rewards.components, judged.T, strict=True):
        is_counted = ~np.isnan(values + rewards)  # NaN, too, where the reward failed
        counts = ranker.sum_by_unit(is_counted.astype(np.float64))
        totals = ranker.sum_by_unit(np.where(is_counted, values, 0.0))
        for cell in zip(*np.nonzero(counts), strict=True):
            agent, unit = map(int, cell)
            count = int(counts[cell])
            yield JudgedValues(name, ranker.agents[agent], unit, count, float(totals[cell]))


def _agent_means(ranker: AgentRanker, decided_rewards: DecidedRewards) -> list[RankedAgent]:
    """Return agents that have a mean in the order of these, with what failed rewards could have been."""
    reward, low, high, _ = decided_rewards.values
    has_failed = np.isnan(reward)

    columns = UnitTotals(
        responses=np.ones(len(reward)),
        scored=1.0 - has_failed,
        total=np.where(has_failed, 0.0, reward),
        least=np.where(has_failed, low, reward),
        most=np.where(has_failed, high, reward),
    )
    arrays = np.array([ranker.sum_by_unit(column) for column in columns])
    lowest_reward = columns.least.min(initial=0.0)
    limits = reward_limits_of_decisions(decided_rewards.decisions, lowest_reward)
    ranked_agents = rank_agents_by_mean(ranker.agents, arrays, ranker.units, limits)
    return [row for row in ranked_agents if row.mean is not None]
