"""Fit a consensus to votes, choose the method that scores, and report its figures."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import AgentScore, Consensus, Credited, MajorityVote, Refits, Stability
from jurygraph.aggregation.consensus.majority import Agreement
from jurygraph.aggregation.consensus.resampling import METHODS, PUBLISHED_RESAMPLES, PUBLISHED_SEED, Method
from jurygraph.aggregation.consensus.votes import Votes
from jurygraph.arrays import Floats
from jurygraph.errors import InputError
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Count, Flag, Id, LongId, Number, Unit
from jurygraph.schema.rating import Label
from jurygraph.studies.consensus.votes import VoteColumns, format_label

MAX_CREDIT = 1e9
"""Maximum credit: beyond it, squares of sums exceed the precision of floats."""

Report = Callable[[int], None]

Preset = Literal["converged", "paper"]


def _finite_or_none(value: float | tuple[float, float] | None) -> float | tuple[float, float] | None:
    """Return None for NaN, for an infinity, and for an interval with such an end."""
    numbers = value if isinstance(value, tuple) else (value,)
    return value if all(one is not None and math.isfinite(one) for one in numbers) else None


FiniteOrNone = Annotated[Number | None, BeforeValidator(_finite_or_none)]
Interval = Annotated[tuple[Number, Number] | None, BeforeValidator(_finite_or_none)]


class Agent(FrozenModel):
    """An agent's mean credit, its 95 % interval (None if it cannot be estimated), and its number of items."""

    score: Number
    low: FiniteOrNone
    high: FiniteOrNone
    items: Count


class Annotator(FrozenModel):
    """An annotator's error rates by the fitted model, with 95 % intervals; None for an annotator without labels."""

    accuracy: Unit
    leniency: Unit
    strictness: Unit
    labels: Count
    accuracy_interval: Interval
    leniency_interval: Interval
    strictness_interval: Interval


class Item(FrozenModel):
    """The posterior probability of each class, [K], and the ambiguity: 1 minus the greatest."""

    posterior: tuple[Unit, ...]
    ambiguity: Unit


class MethodStability(FrozenModel):
    """Stability of a method, as in `aggregation.consensus.Stability`; None if no subset gives a value."""

    tau_b: FiniteOrNone
    rank_sd: FiniteOrNone
    rank_range: FiniteOrNone
    score_shift: FiniteOrNone
    subsets: Count


class Counts(FrozenModel):
    """Sizes of the data. `rows` include the `abstained`, and `repeated` rows count like any other; `unlabelled` items
    have only abstentions.
    """

    rows: Count
    repeated: Count
    abstained: Count
    items: Count
    unlabelled: Count
    annotators: Count
    agents: Count
    gold: Count


class Ties(FrozenModel):
    """Items for which several classes lead in the majority vote, and the rule that decides them."""

    rule: Literal["shared", "first"]
    items: tuple[LongId, ...]


class AgentComparison(FrozenModel):
    """An agent's score by each method, the change by the posterior, and its rank by each method, 1 for the greatest."""

    majority: Number
    dawid_skene: Number
    stableval: Number
    change: Number
    items: Count
    ranks: dict[Method, Number]


class KeyFindings(FrozenModel):
    """The figures of STABLEVAL's Tables 12, 17, 23 and 29: majority vote against posterior expected credit, and
    ambiguity of items by the posterior.

    `correlation` (Pearson, over agents) is None with fewer than two agents, or if one method scores all agents equally.
    """

    correlation: Number | None
    greatest_change: Number | None
    rank_changes: Count
    mean_ambiguity: Unit
    highly_ambiguous: Count
    highly_ambiguous_share: Unit


class ConsensusReport(FrozenModel):
    """A consensus. `agents` and `items` are scored by `method`; `annotators`, `prior` [K], `log_likelihood` and
    `converged` belong to the fitted model, whatever the method.

    `intervals` names the source of the agents' intervals: resampled items, resampled prompts, or refits.
    `decided_by_one` are the items whose majority depends on a single vote (Proposition 1). `stability` is None if it
    was not measured.
    """

    method: Method
    preset: Preset
    classes: tuple[Label, ...]
    values: tuple[Number, ...]
    prior: tuple[Unit, ...]
    counts: Counts
    agreement: Agreement
    agents: dict[Id, Agent]
    intervals: Literal["items", "prompts", "refits"]
    annotators: dict[Id, Annotator]
    items: dict[LongId, Item] = Field(min_length=1)
    stability: dict[Method, MethodStability] | None
    comparison: dict[Id, AgentComparison]
    findings: KeyFindings
    decided_by_one: tuple[LongId, ...]
    ties: Ties
    log_likelihood: Number
    converged: Flag
    iterations: Count
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Settings:
    """Settings for fitting and measuring a consensus.

    Attributes:
        preset, method: if neither is set, `converged` and `stableval`, or the majority for a panel that is too small.
        values: credit of each class, [K]; None: evenly from 0 to 1.
        bootstrap: number of resamples for the agents' intervals, 0 for none.
        refit: number of resamples that are fitted again, for intervals that include the uncertainty of the confusions;
            0 for none.
        subsets, fraction: stability is measured with this number of subsets, each with this share of the annotators; 0
            for none.
        seed: seed of all draws; None: 0, but 42 for the stability of preset `paper`.
        jobs: number of processes.
    """

    preset: Preset | None = None
    method: Method | None = None
    values: Sequence[float] | None = None
    bootstrap: int = 1000
    refit: int = 0
    subsets: int = 50
    fraction: float = 0.7
    seed: int | None = None
    jobs: int = 1

    @property
    def fit_preset(self) -> Preset:
        """Return the preset of the fit: the one set, else `converged`."""
        return self.preset or "converged"

    @property
    def tie_rule(self) -> Literal["first", "shared"]:
        """Return the rule that decides ties of the majority vote."""
        return "first" if self.preset == "paper" else "shared"


@dataclass(frozen=True)
class FittedConsensus:
    """A consensus: the fitted `model`, the `majority` vote, and the `method` that scores agents and items.

    `values` are the credits of the classes, [K]; `warnings` the reasons for caution, and the reason if the majority
    replaces the model.
    """

    ballots: VoteColumns
    settings: Settings
    model: Consensus
    majority: MajorityVote
    method: Method
    values: tuple[float, ...]
    warnings: tuple[str, ...]

    def items_by_method(self, method: Method) -> Credited:
        """Return the items as scored by a method."""
        if method == "majority":
            return self.majority
        return self.model.hard_labels() if method == "dawid-skene" else self.model

    def scores(self, method: Method, bootstrap: int = 0) -> dict[str, AgentScore]:
        """Return the score of each agent by a method; empty if no vote names an agent."""
        ballots = self.ballots
        if ballots.agent is None:
            return {}
        seed = self.settings.seed or 0
        scores = self.items_by_method(method).agent_scores(ballots.agent, self.values, bootstrap, seed, ballots.prompt)
        return {str(one): score for one, score in scores.items()}

    @property
    def no_stability_reason(self) -> str | None:
        """Return the reason why stability cannot be, or should not be, measured; None if it can."""
        agents, annotators = set(self.ballots.agent or ()), len(self.model.votes.annotators)
        if self.settings.subsets == 0:
            return "no subsets were asked for"
        if not agents:
            return "no row names an agent"
        if len(agents) == 1:
            return "there is one agent, and a ranking needs two"
        if int(self.settings.fraction * annotators) < 1:
            return f"a share of {self.settings.fraction:g} of {annotators} annotators is nobody"
        return None

    def stability(self, report: Report = lambda subsets: None) -> Mapping[Method, Stability] | None:
        """Return the stability of each method under subsets of the annotators; None if it cannot be measured.

        `report` is called with the number of finished subsets.
        """
        ballots, settings = self.ballots, self.settings
        if self.no_stability_reason is not None or ballots.agent is None:
            return None
        return consensus.ranking_stability(
            ballots.item,
            ballots.annotator,
            ballots.label,  # type: ignore[arg-type]  # NumPy's types do not cover a list of labels and None
            ballots.agent,
            subsets=settings.subsets,
            fraction=settings.fraction,
            seed=settings.seed if settings.seed is not None else PUBLISHED_SEED if settings.preset == "paper" else 0,
            preset=settings.fit_preset,
            classes=ballots.classes,
            values=self.values,
            ties=settings.tie_rule,
            gold=ballots.gold,
            jobs=settings.jobs,
            report=report,
        )

    def refits(self, report: Report = lambda resamples: None) -> Refits | None:
        """Return intervals from refits; None if there are none in the settings, or the model does not score.

        `report` is called with the number of finished resamples.
        """
        ballots, settings = self.ballots, self.settings
        if settings.refit == 0 or self.method != "stableval":
            return None
        return consensus.refit_intervals(
            self.model,
            ballots.agent or ["everybody"] * len(ballots.item),
            values=self.values,
            resamples=settings.refit,
            seed=settings.seed or 0,
            prompt=ballots.prompt,
            as_published=settings.preset == "paper",
            jobs=settings.jobs,
            report=report,
        )


def fit_consensus(ballots: VoteColumns, settings: Settings) -> FittedConsensus:
    """Fit a consensus to votes. Raises `InputError` if the settings do not fit the votes."""
    validate_settings(ballots, settings)
    columns = (ballots.item, ballots.annotator, ballots.label)
    model = consensus.fit(*columns, settings.fit_preset, classes=ballots.classes, gold=ballots.gold)  # type: ignore[arg-type]
    majority = consensus.majority_vote(*columns, settings.tie_rule, classes=ballots.classes, gold=ballots.gold)  # type: ignore[arg-type]
    small_panel = consensus.too_small(model.votes)
    use_majority = small_panel is not None and settings.preset is None and settings.method is None
    method: Method = "majority" if use_majority else settings.method or "stableval"
    warnings = [warning for warning in model.warnings if warning != small_panel]
    if small_panel is not None:
        remedy = "majority vote, its ties shared, stands in for agents and items; --preset or --method keeps the model"
        warnings.append(f"{small_panel}; {remedy}" if use_majority else small_panel)
    if use_majority and settings.refit:
        warnings.append("majority vote has nothing to refit: there are no intervals of refits")
    k = len(ballots.classes)
    values = tuple(settings.values) if settings.values is not None else tuple(index / (k - 1) for index in range(k))
    return FittedConsensus(ballots, settings, model, majority, method, values, tuple(warnings))


def validate_settings(ballots: VoteColumns, settings: Settings) -> None:
    """Raise `InputError` if the settings do not fit the votes."""
    classes, values, refit = ballots.classes, settings.values, settings.refit
    if values is not None and len(values) != len(classes):
        scale = ", ".join(map(format_label, classes[:20]))
        problem = f"gives {len(values)} credits to {len(classes)} classes ({scale})"
        raise InputError(f"--values: {problem}; give each one")
    if values is not None and max(map(abs, values)) > MAX_CREDIT:
        raise InputError(f"--values: a credit is beyond {MAX_CREDIT:g}; give credits such as 0,0.5,1")
    for option, count in (("--bootstrap", settings.bootstrap), ("--refit", refit), ("--subsets", settings.subsets)):
        if count == 1:
            raise InputError(f"{option}: one draw tells no spread; give 2 or more, or 0 for none")
    if refit and settings.method not in (None, "stableval"):
        raise InputError(f"--refit: {settings.method} has nothing to refit; leave it out, or take stableval")
    if refit and settings.preset == "paper" and refit != PUBLISHED_RESAMPLES:
        problem = f"the published intervals are of {PUBLISHED_RESAMPLES} refits"
        raise InputError(f"--refit: {problem}; give {PUBLISHED_RESAMPLES}")


def report(
    reached: FittedConsensus, stability: Mapping[Method, Stability] | None = None, refits: Refits | None = None
) -> ConsensusReport:
    """Return every figure of a consensus, including `stability` and `refits` if they were measured."""
    ballots, model, majority = reached.ballots, reached.model, reached.majority
    credited = reached.items_by_method(reached.method)
    comparison = _comparison(reached)
    scores = reached.scores(reached.method, 0 if refits else reached.settings.bootstrap)
    items = zip(credited.items, credited.posterior.tolist(), credited.ambiguity().tolist(), strict=True)
    return ConsensusReport(
        method=reached.method,
        preset=reached.settings.fit_preset,
        classes=ballots.classes,
        values=reached.values,
        prior=tuple(model.prior.tolist()),
        counts=count_rows(ballots, model.votes),
        agreement=consensus.agreement(model.votes),
        agents={name: Agent(**(refits.agents[name] if refits else one)._asdict()) for name, one in scores.items()},
        intervals="refits" if refits else "items" if ballots.prompt is None else "prompts",
        annotators=_annotators(reached, refits),
        items={str(name): Item(posterior=tuple(shares), ambiguity=one) for name, shares, one in items},
        stability=stability and {method: MethodStability(**one._asdict()) for method, one in stability.items()},
        comparison=comparison,
        findings=_findings(model.ambiguity(), comparison.values()),
        decided_by_one=tuple(map(str, majority.items_with_margin_one())),
        ties=Ties(
            rule=reached.settings.tie_rule,
            items=tuple(str(majority.items[index]) for index in np.flatnonzero(majority.tied).tolist()),
        ),
        log_likelihood=model.log_likelihood,
        converged=model.converged,
        iterations=model.iterations,
        warnings=reached.warnings,
    )


def count_rows(ballots: VoteColumns, votes: Votes) -> Counts:
    """Return the sizes of the data, from its columns and from what they were encoded to."""
    return Counts(
        rows=len(votes.item_of_row),
        repeated=votes.repeated_rows,
        abstained=votes.abstentions,
        items=len(votes.items),
        unlabelled=int(np.count_nonzero(votes.counts.sum(axis=1) == 0)),
        annotators=len(votes.annotators),
        agents=len(set(ballots.agent or ())),
        gold=len(ballots.gold),
    )


def _annotators(reached: FittedConsensus, refits: Refits | None) -> dict[str, Annotator]:
    """Return the quality of each annotator, with the intervals of the refits if there are any."""
    annotators = {}
    names = ("accuracy_interval", "leniency_interval", "strictness_interval")
    for annotator, quality in reached.model.annotators().items():
        intervals = dict(zip(names, refits.annotators[annotator], strict=True)) if refits else {}
        annotators[str(annotator)] = Annotator(**quality._asdict() | intervals)
    return annotators


def _comparison(reached: FittedConsensus) -> dict[str, AgentComparison]:
    from scipy.stats import rankdata

    scores = {method: reached.scores(method) for method in METHODS}
    ranks = {}  # 1 for the greatest score; ties share the mean of their ranks
    for method, by_agent in scores.items():
        negated = np.array([round(-one.score, 12) for one in by_agent.values()])  # ties can differ in their last bits
        ranks[method] = dict(zip(by_agent, rankdata(negated).tolist(), strict=True))
    return {
        name: AgentComparison(
            majority=scores["majority"][name].score,
            dawid_skene=scores["dawid-skene"][name].score,
            stableval=one.score,
            change=one.score - scores["majority"][name].score,
            items=one.items,
            ranks={method: by_agent[name] for method, by_agent in ranks.items()},
        )
        for name, one in scores["stableval"].items()
    }


def _findings(ambiguity: Floats, comparison: Collection[AgentComparison]) -> KeyFindings:
    ambiguous_count = int(np.count_nonzero(ambiguity > consensus.HIGH))
    scores = np.array([(one.majority, one.stableval) for one in comparison])
    has_spread = len(scores) > 1 and (np.ptp(scores, axis=0) > 0.0).all()
    return KeyFindings(
        correlation=float(np.corrcoef(*scores.T)[0, 1]) if has_spread else None,
        greatest_change=max((abs(one.change) for one in comparison), default=None),
        rank_changes=sum(one.ranks["majority"] != one.ranks["stableval"] for one in comparison),
        mean_ambiguity=float(ambiguity.mean()),
        highly_ambiguous=ambiguous_count,
        highly_ambiguous_share=ambiguous_count / len(ambiguity),
    )
