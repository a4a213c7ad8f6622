"""Simulated evaluations with known truth: STABLEVAL's (5.1, Tables 4, 6 and 7); DecompR's are in `decompr_theory`.

Items have a known ambiguity, agents a known quality, and annotators known confusions. Seeds are explicit.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from pydantic import TypeAdapter

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus.fitting import CONSENSUS_METHODS, tau_b
from jurygraph.arrays import Bools, Floats, Ints
from jurygraph.display import ProgressCallback, format_number, ignore_progress
from jurygraph.errors import PlanError
from jurygraph.inference.clusters import NORMAL_QUANTILE
from jurygraph.studies import symbols
from jurygraph.studies.decompr_theory import decompr_sections, simulate_decompr_theory
from jurygraph.studies.report import (
    FigureRows,
    Figures,
    Plot,
    PlotSeries,
    Report,
    ReportSection,
    ReportTable,
)

RaterBehaviour = Literal["normal", "strict", "lenient", "adversarial"]
RATER_BEHAVIOURS: tuple[RaterBehaviour, ...] = get_args(RaterBehaviour)
_PUBLISHED: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_name("stableval.toml").read_text("utf-8")
)
CONFUSION_BY_BEHAVIOUR: Mapping[RaterBehaviour, Sequence[Sequence[float]]] = _PUBLISHED[
    "confusions"
]
CLASS_COUNT = 3
CREDIT_BY_CLASS = (0.0, 0.5, 1.0)
PARTLY_CORRECT_PROPORTION = 0.35
"""Share of the responses that are not right which are partly right."""
CLEAR_ITEM_AMBIGUITY_BETA = (2.0, 12.0)
HARD_ITEM_AMBIGUITY_BETA = (6.0, 3.0)
"""Parameters of the beta distributions of the ambiguity of clear and of hard items."""


@dataclass(frozen=True)
class SimulationSetting:
    """Setting of a simulation (STABLEVAL, section 5.1). The default is the paper's base configuration.

    Attributes:
        qualities: for each agent, the probability that its response is right.
        items: number of items of each agent.
        pool: number of annotators of each behaviour, in the order of `RATER_BEHAVIOURS`.
        annotators: number of annotators drawn from the pool, again for each seed; None: all of them.
        labels: number of labels of each item, by different annotators.
        hard: the probability that an item is hard.
        ambiguous: False if no item is ambiguous, so that labels follow the confusions alone, as in STABLEVAL's model
            (3.2); `hard` then has no effect.
    """

    qualities: tuple[float, ...] = (0.85, 0.80, 0.70, 0.55, 0.35, 0.20)
    items: int = 500
    pool: tuple[int, int, int, int] = (18, 6, 4, 2)
    annotators: int | None = None
    labels: int = 5
    hard: float = 0.2
    ambiguous: bool = True

    def __post_init__(self) -> None:
        if not self.labels <= self.annotator_count <= sum(self.pool):
            counts = f"{self.labels} labels, {self.annotator_count} annotators and a pool of {sum(self.pool)}"
            raise PlanError(
                f"{counts}: expected a smaller number, or the same, before each other one"
            )

    @property
    def annotator_count(self) -> int:
        return sum(self.pool) if self.annotators is None else self.annotators

    @property
    def shares(self) -> Floats:
        """Return P(z) of each agent's items, [agents, 3]."""
        correct_probability = np.array(self.qualities)
        rest = 1.0 - correct_probability
        return np.column_stack(
            [
                (1.0 - PARTLY_CORRECT_PROPORTION) * rest,
                PARTLY_CORRECT_PROPORTION * rest,
                correct_probability,
            ]
        )


@dataclass(frozen=True)
class SimulatedEvaluation:
    """A simulated evaluation with its true values.

    Attributes:
        item, agent, annotator, label: codes, row by row, [N·labels]; the rows of an item are contiguous, and so are the
            items of an agent.
        rater_behaviours: that of each annotator, [A].
        confusions: how each labels a clear item, [A,3,3].
        truth: the class z of each item, [N].
        ambiguity: d of each item, [N], in [0, 1]: its labels are drawn from (1-d)·π + d/3.
    """

    setting: SimulationSetting
    item: Ints
    agent: Ints
    annotator: Ints
    label: Ints
    rater_behaviours: tuple[RaterBehaviour, ...]
    confusions: Floats
    truth: Ints
    ambiguity: Floats

    @property
    def true_scores(self) -> Floats:
        """Return the mean credit of each agent's items by their true classes, [agents]."""
        return self.scores(np.eye(CLASS_COUNT)[self.truth])

    def scores(self, posterior: Floats) -> Floats:
        """Return the mean credit of each agent's items by a posterior of the items [N,3], [agents]."""
        item_credits = posterior @ CREDIT_BY_CLASS
        credit_by_agent = item_credits.reshape(len(self.setting.qualities), -1)
        return np.asarray(credit_by_agent.mean(axis=1))


def stableval(setting: SimulationSetting, seed: int) -> SimulatedEvaluation:
    """Simulate an evaluation; the same setting and seed (of `numpy.random.default_rng`) give the same labels."""
    generator = np.random.default_rng(seed)
    pool = np.repeat(np.arange(len(RATER_BEHAVIOURS)), setting.pool)
    rater_behaviours = generator.permutation(pool)[: setting.annotator_count]
    return simulate_with(setting, rater_behaviours, generator)


def simulate_with(
    setting: SimulationSetting, rater_behaviours: Ints, generator: np.random.Generator
) -> SimulatedEvaluation:
    """Simulate an evaluation by annotators of these behaviours, as indices of `RATER_BEHAVIOURS`, [A]."""
    agents = len(setting.qualities)
    labels = setting.labels
    total = agents * setting.items
    agent = np.repeat(np.arange(agents), setting.items)
    truth = _draw_classes(setting.shares.cumsum(axis=1)[agent], generator)
    is_hard = generator.random(total) < setting.hard
    hard_ambiguity = generator.beta(*HARD_ITEM_AMBIGUITY_BETA, total)
    clear_item_ambiguity = generator.beta(*CLEAR_ITEM_AMBIGUITY_BETA, total)
    ambiguity = np.where(is_hard, hard_ambiguity, clear_item_ambiguity) * setting.ambiguous
    item = np.repeat(np.arange(total), labels)
    # the first of a random order of all annotators, so that those of an item differ
    order = generator.random((total, len(rater_behaviours))).argsort(axis=1)
    annotator = order[:, :labels].ravel()
    names = [RATER_BEHAVIOURS[index] for index in rater_behaviours.tolist()]
    confusions = np.array([CONFUSION_BY_BEHAVIOUR[name] for name in names])
    item_noise_share = ambiguity[item, None]
    clear_share = (1.0 - item_noise_share) * confusions[annotator, truth[item]]
    probabilities = clear_share + item_noise_share / CLASS_COUNT
    label = _draw_classes(probabilities.cumsum(axis=1), generator)
    return SimulatedEvaluation(
        setting=setting,
        item=item,
        agent=agent[item],
        annotator=annotator,
        label=label,
        rater_behaviours=tuple(names),
        confusions=confusions,
        truth=truth,
        ambiguity=ambiguity,
    )


def _draw_classes(cumulative_shares: Floats, generator: np.random.Generator) -> Ints:
    """Draw a class for each row of cumulated probabilities, [rows, 3]."""
    # without the last column: its sum may be just below 1, and a draw above it would be of a fourth class
    is_above_threshold = (
        generator.random(len(cumulative_shares))[:, None] >= cumulative_shares[:, :-1]
    )
    return np.asarray(is_above_threshold.sum(axis=1))


SweepName = Literal["labels", "gaps", "adversarial", "strict", "lenient", "hard"]
ValuesByMethod = tuple[float, float, float]
"""A value for each method: majority, hard Dawid-Skene, and posterior expected credit."""


class PaperConfiguration(NamedTuple):
    """A row of the paper's tables: its sweep, its setting, and the numbers printed for the three methods.

    `mse` is in 10⁻³ (Table 4), `accuracy` in % (Table 6), `tau_b` is that with the true order (Table 7).
    """

    sweep: SweepName
    setting: SimulationSetting
    mse: ValuesByMethod
    accuracy: ValuesByMethod
    tau_b: ValuesByMethod


RECOVERY_MEASURE_NAMES = ("mse", "accuracy", "tau_b")


PAPER_CONFIGURATION_BY_NAME = TypeAdapter(dict[str, PaperConfiguration]).validate_python(
    _PUBLISHED["configurations"]
)
"""The rows of Tables 4, 6 and 7, by the names that the authors' files use. Equal settings have equal numbers."""


def recovery(
    settings: Mapping[str, SimulationSetting], seeds: Sequence[int], advance: ProgressCallback
) -> dict[str, Floats]:
    """Return the recovery by majority vote (ties to the highest class), hard Dawid-Skene and STABLEVAL, by setting.

    The axes are seeds, methods and `RECOVERY_MEASURE_NAMES`, [S,M,F]: the mean squared error of the agents' scores
    (`mse`), the share of pairs of agents in their true order (`accuracy`), and `tau_b` with the true order. The latter
    two methods share one estimate by preset `paper-synthetic`, as in the paper. Equal settings are simulated once;
    `advance` is called with 1 after each evaluation.
    """
    figures_by_setting = {}
    for setting in dict.fromkeys(settings.values()):
        figures_by_seed = []
        for seed in seeds:
            figures_by_seed.append(_measure_recovery(setting, seed))
            advance(1)
        figures_by_setting[setting] = np.array(figures_by_seed)
    return {name: figures_by_setting[setting] for name, setting in settings.items()}


def _measure_recovery(setting: SimulationSetting, seed: int) -> Floats:
    simulation = stableval(setting, seed)
    true_scores = simulation.true_scores
    rows = np.ones(len(simulation.item), dtype=np.bool_)
    figures = []
    for estimated_scores in score_by_each_method(simulation, rows, preset="paper-synthetic"):
        error = np.mean((estimated_scores - true_scores) ** 2)
        accuracy = pair_order_accuracy(estimated_scores, true_scores)
        figures.append([error, accuracy, tau_b(true_scores, estimated_scores)])
    return np.array(figures)


def score_by_each_method(
    simulation: SimulatedEvaluation, rows: Bools, **model: Any
) -> list[Floats]:
    """Return the mean credit of each agent's items by these rows: [agents], by method, with a model of `fit`.

    Majority vote breaks ties towards the highest class. Each agent needs an item.
    """
    columns = simulation.item[rows], simulation.annotator[rows], simulation.label[rows]
    fitted_consensus = consensus.fit(*columns, n_classes=CLASS_COUNT, **model)
    majority = consensus.majority_vote(*columns, ties="highest", classes=range(CLASS_COUNT))
    agents = len(simulation.setting.qualities)
    scores = []
    for estimate in (majority, fitted_consensus.hard_labels(), fitted_consensus):
        agent = np.array(estimate.items) // simulation.setting.items
        credit = np.bincount(agent, weights=estimate.posterior @ CREDIT_BY_CLASS, minlength=agents)
        items = np.bincount(agent, minlength=agents)
        scores.append(credit / items)
    return scores


def pair_order_accuracy(scores: Floats, true_scores: Floats) -> float:
    """Return the share of pairs that are in the true order; a tie on one side only counts half."""
    upper = np.triu_indices(len(scores), 1)
    signs = np.sign(np.subtract.outer(scores, scores))[upper]
    expected = np.sign(np.subtract.outer(true_scores, true_scores))[upper]
    shares = np.where(signs == expected, 1.0, (1.0 + signs * expected) / 2.0)
    return float(shares.mean())


SimulationName = SweepName | Literal["decompr"]
SIMULATION_NAMES: tuple[SimulationName, ...] = (*get_args(SweepName), "decompr")
_RECOVERY_TABLE_SPECS = (
    ("mse", "Table 4: MSE, 10⁻³", 1000.0, 2),
    ("accuracy", "Table 6: in order, %", 100.0, 1),
    ("tau_b", "Table 7: τ_b", 1.0, 3),
)
"""The tables of the paper, in the order of `RECOVERY_MEASURE_NAMES`: figure, title, its scale there, and decimals."""


class MeanOverSeeds(NamedTuple):
    """The mean of a figure over the seeds, its standard error (None with one seed), and the paper's number."""

    mean: float
    error: float | None
    paper: float

    def text(self, digits: int) -> str:
        """Return the mean, with its standard error in parentheses."""
        mean = format_number(self.mean, digits)
        return mean if self.error is None else f"{mean} ({format_number(self.error, digits)})"


def select_configurations(parts: Sequence[SimulationName]) -> dict[str, PaperConfiguration]:
    return {
        name: configuration
        for name, configuration in PAPER_CONFIGURATION_BY_NAME.items()
        if configuration.sweep in parts
    }


def count_evaluations(parts: Sequence[SimulationName], seeds: Sequence[int]) -> int:
    """Return the number of evaluations that `report` simulates, without those of DecompR's theory."""
    configurations = select_configurations(parts).values()
    return len(seeds) * len({configuration.setting for configuration in configurations})


def report(
    parts: Sequence[SimulationName],
    seeds: Sequence[int],
    advance: ProgressCallback = ignore_progress,
) -> Report:
    """Simulate and measure; `advance` is called with 1 after each evaluation. A part that was not chosen is empty.

    - `recovery` (Tables 4, 6 and 7), by configuration: MSE of the agents' scores in 10⁻³, pairs of agents in order
      in %, τ_b.
    - `decompr`: what `simulate_decompr_theory` returns.
    """
    configurations = select_configurations(parts)
    settings = {name: configuration.setting for name, configuration in configurations.items()}
    rows = []
    for name, values in recovery(settings, seeds, advance).items():
        row: Figures = {"name": name, "sweep": configurations[name].sweep}
        # by figure, method and seed
        for values_by_method, (figure, _, scale, _) in zip(
            values.T, _RECOVERY_TABLE_SPECS, strict=True
        ):
            published_values = getattr(configurations[name], figure)
            means = map(_mean_of_seeds, scale * values_by_method, published_values)
            row[figure] = dict(zip(CONSENSUS_METHODS, means, strict=True))
        rows.append(row)
    decompr = simulate_decompr_theory(seeds) if "decompr" in parts else {}
    figures = {"seed": seeds[0], "seeds": len(seeds), "recovery": rows, "decompr": decompr}
    seeds_text = f"seed {seeds[0]}"
    if len(seeds) > 1:
        seeds_text = f"means over seeds {seeds[0]} to {seeds[-1]}"
        seeds_text += " (standard error)" if rows else ""
    sections: list[ReportSection] = [f"{seeds_text}, and the paper's number"]
    for name, title, _, digits in _RECOVERY_TABLE_SPECS:
        header = [title]
        for method in CONSENSUS_METHODS:
            header += [method, "paper"]
        cells = []
        for row in rows:
            line = [row["name"]]
            for mean in row[name].values():
                line += [mean.text(digits), mean.paper]
            cells.append(line)
        sections.append(ReportTable(header, cells, digits=digits))
    sections += decompr_sections(decompr)
    return Report(
        figures,
        sections,
        plots=_plots(rows),
        symbol_meanings=symbols.SIMULATION_SYMBOL_MEANINGS,
    )


def _mean_of_seeds(values_by_seed: Floats, paper: float) -> MeanOverSeeds:
    mean = float(values_by_seed.mean())
    if len(values_by_seed) < 2:
        return MeanOverSeeds(mean, None, paper)
    error = float(values_by_seed.std(ddof=1) / np.sqrt(len(values_by_seed)))
    return MeanOverSeeds(mean, error, paper)


def _plots(recovery_rows: FigureRows) -> Iterator[Plot]:
    if not recovery_rows:
        return
    names = [row["name"] for row in recovery_rows]
    series = []
    errors = {}
    for method in CONSENSUS_METHODS:
        means = [row["mse"][method] for row in recovery_rows]
        low = [mean.mean - NORMAL_QUANTILE * (mean.error or 0.0) for mean in means]
        high = [mean.mean + NORMAL_QUANTILE * (mean.error or 0.0) for mean in means]
        series.append(PlotSeries(method, [mean.mean for mean in means], names, low, high))
        series.append(PlotSeries(f"{method}, paper", [mean.paper for mean in means], names))
        errors[method] = sum(mean.mean for mean in means)
    best = min(errors, key=errors.__getitem__)
    title = f"{best} has the least error of agents' scores, summed over {len(names)} settings"
    yield Plot(title, "points", series, y_label="MSE, 10⁻³")
