"""Fit a consensus to votes, choose the method that scores, and report its figures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import AgentScore, Consensus, Credited, MajorityVote, Refits, Stability
from jurygraph.aggregation.consensus.resampling import METHODS, PUBLISHED_SEED, Method
from jurygraph.arrays import Floats
from jurygraph.errors import InputError
from jurygraph.schema.rating import Label
from jurygraph.studies.consensus.reports import Figures, annotator_figures, report_consensus, vote_figures
from jurygraph.studies.consensus.votes import VoteColumns, format_label
from jurygraph.studies.report import Report

REFITS = 200
BOOTSTRAP = 1000
"""Resamples for the agents' intervals by preset `paper`."""
AFFORDABLE_WORK = 5_000_000
"""Labels × steps of the fit up to which the refits take seconds: MT-Bench has 1.6 million, ConvAbuse .7."""

ONE_UNIT = "there is one item or group, and resamples of it are all alike"

Advance = Callable[[int], None]
Preset = Literal["converged", "paper"]


@dataclass(frozen=True)
class Settings:
    """Settings for fitting and measuring a consensus.

    Attributes:
        preset, method: if neither is set, `converged` and `stableval`, or the majority for a panel that is too small.
        values: credit of each class, [K]; None: evenly from 0 to 1.
        subsets, fraction: stability is measured with this number of subsets, each with this share of the annotators,
            on all items and on as many resamples of them; 0 for none.
        seed: seed of all draws; None: 0, but 42 for the stability of preset `paper`.
        jobs: number of processes.
        compare: whether the tables compare all methods.
    """

    preset: Preset | None = None
    method: Method | None = None
    values: Sequence[float] | None = None
    subsets: int = 50
    fraction: float = 0.7
    seed: int | None = None
    jobs: int = 1
    compare: bool = False

    def credits(self, classes: Sequence[Label]) -> tuple[float, ...]:
        """Return the credit of each class, [K]."""
        k = len(classes)
        return tuple(self.values) if self.values is not None else tuple(index / (k - 1) for index in range(k))

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
        kind: Literal["bootstrap", "t"] = "bootstrap" if self.settings.preset == "paper" else "t"
        scores = self.items_by_method(method).agent_scores(
            ballots.agent, self.values, bootstrap, self.settings.seed or 0, ballots.prompt, kind
        )
        return {str(one): score for one, score in scores.items()}

    @property
    def no_stability_reason(self) -> str | None:
        """Return the reason why stability cannot be, or should not be, measured; None if it can."""
        agents = set(self.ballots.agent or ())
        annotators = len(self.model.votes.annotators)
        if self.settings.subsets == 0:
            return "no subsets were asked for"
        if not agents:
            return "no row names an agent"
        if len(agents) == 1:
            return "there is one agent, and a ranking needs two"
        if int(self.settings.fraction * annotators) < 1:
            return f"a share of {self.settings.fraction:g} of {annotators} annotators is nobody"
        return None

    def stability(
        self, report: Advance = lambda subsets: None, *, with_items: bool = False
    ) -> Mapping[Method, Stability] | None:
        """Return the stability of each method under subsets of the annotators; None if it cannot be measured.

        `with_items` also draws the prompts, or without groups the items that the files name, each with the answers of
        all agents; a single one tells nothing of others, and gives None. `report` is called with the number of finished
        subsets.
        """
        ballots = self.ballots
        settings = self.settings
        if self.no_stability_reason is not None or ballots.agent is None or (with_items and self.units == 1):
            return None
        return consensus.ranking_stability(
            ballots.item,
            ballots.annotator,
            ballots.label,  # type: ignore[arg-type]  # NumPy's types do not cover a list of labels and None
            ballots.agent,
            subsets=settings.subsets,
            fraction=settings.fraction,
            seed=settings.seed if settings.seed is not None else PUBLISHED_SEED if settings.preset == "paper" else 0,
            with_items=with_items,
            prompt=ballots.prompt or ballots.file_item,
            preset=settings.fit_preset,
            classes=ballots.classes,
            values=self.values,
            ties=settings.tie_rule,
            gold=ballots.gold,
            jobs=settings.jobs,
            report=report,
        )

    @cached_property
    def units(self) -> int:
        """Return the number of prompts, or without groups of items as the files name them: what is drawn."""
        return len(set(self.ballots.prompt or self.ballots.file_item))

    @property
    def no_refits_reason(self) -> str | None:
        """Return the reason why nothing is fitted again; None if it is."""
        votes = self.model.votes
        settings = self.settings
        if settings.preset == "paper":
            return "preset paper takes the resamples of Algorithm 1"
        if len(votes.item) * self.model.iterations > AFFORDABLE_WORK:
            return f"{REFITS} refits would take long; consensus.refit_intervals makes them"
        if self.units == 1:
            return ONE_UNIT
        return consensus.not_identifiable(votes)

    @property
    def refit_count(self) -> int:
        """Return the number of refits."""
        return 0 if self.no_refits_reason is not None else REFITS

    def limits(self) -> Iterator[str]:
        """Yield what is not measured, and why."""
        if self.ballots.agent is None:
            yield "no row has an agent: no scores of agents and no stability"
        elif self.no_stability_reason is not None:
            yield f"stability was not measured: {self.no_stability_reason}"
        elif self.units == 1:
            yield f"stability with items drawn too was not measured: {ONE_UNIT}"
        if self.no_refits_reason is not None:
            yield f"annotators have no intervals: {self.no_refits_reason}"

    def refits(self, report: Advance = lambda resamples: None) -> Refits | None:
        """Return intervals from refits of the model, whatever method scores; None if there is a reason for none.

        `report` is called with the number of finished resamples.
        """
        ballots = self.ballots
        settings = self.settings
        if self.refit_count == 0:
            return None
        return consensus.refit_intervals(
            self.model,
            ballots.agent or ["everybody"] * len(ballots.item),
            values=self.values,
            resamples=self.refit_count,
            seed=settings.seed or 0,
            prompt=ballots.prompt,
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
    values = settings.credits(ballots.classes)
    return FittedConsensus(ballots, settings, model, majority, method, values, tuple(warnings))


def validate_settings(ballots: VoteColumns, settings: Settings) -> None:
    """Raise `InputError` if the settings do not fit the votes."""
    classes = ballots.classes
    values = settings.values
    if values is not None and len(values) != len(classes):
        scale = ", ".join(map(format_label, classes[:20]))
        problem = f"gives {len(values)} credits to {len(classes)} classes ({scale})"
        raise InputError(f"--values: {problem}; give each one")
    if settings.subsets == 1:
        raise InputError("--subsets: one draw tells no spread; give 2 or more, or 0 for none")


def report(
    reached: FittedConsensus,
    stability: Mapping[Method, Stability] | None = None,
    refits: Refits | None = None,
    stability_with_items: Mapping[Method, Stability] | None = None,
) -> Report:
    """Return every figure of a consensus, including stability and `refits` if they were measured.

    `agents` and `items` are scored by `method`; `annotators`, `prior` [K], `log_likelihood` and `converged` belong to
    the fitted model, whatever the method. `intervals` names the source of the agents' intervals: t over items or
    prompts, without or with the variance of refits (if the model scores them); by preset `paper`, percentiles of
    resamples. `decided_by_one` are the items whose majority depends on a single vote
    (Proposition 1), and `ties` those for which several classes lead. `stability` is under subsets of the annotators, as
    in the paper, and `stability_with_items` with the items of each subset drawn too; both are None if they
    were not measured. `limits` say what was not measured, and why.
    """
    model = reached.model
    majority = reached.majority
    method = reached.method
    settings = reached.settings
    comparison = _compare_methods(reached)
    is_refitted = refits is not None and method == "stableval" and reached.ballots.agent is not None
    scores = refits.agents if refits and is_refitted else reached.scores(method, BOOTSTRAP)
    figures = {
        **vote_figures(reached.ballots, reached.values, reached.items_by_method(method)),
        "method": method,
        "preset": settings.fit_preset,
        "prior": model.prior.tolist(),
        "agents": {str(name): one for name, one in scores.items()},
        "intervals": _interval_source(reached, is_refitted),
        "annotators": {
            str(name): annotator_figures(quality, refits.annotators[name] if refits else ())
            for name, quality in model.annotators().items()
        },
        "stability": _stability_figures(stability),
        "stability_with_items": _stability_figures(stability_with_items),
        "comparison": comparison,
        "findings": _find_changes(model.ambiguity(), list(comparison.values())),
        "decided_by_one": [str(name) for name in majority.items_with_margin_one()],
        "ties": {
            "rule": settings.tie_rule,
            "items": [str(majority.items[index]) for index in np.flatnonzero(majority.tied).tolist()],
        },
        "log_likelihood": model.log_likelihood,
        "converged": model.converged,
        "iterations": model.iterations,
        "warnings": reached.warnings,
        "limits": list(reached.limits()),
    }
    return report_consensus(figures, settings.compare)


def _stability_figures(stability: Mapping[Method, Stability] | None) -> dict[Method, Figures] | None:
    if stability is None:
        return None
    figures: dict[Method, Figures] = {}
    for method, one in stability.items():
        figures[method] = {name: None if np.isnan(value) else value for name, value in one._asdict().items()}
    return figures


def _interval_source(reached: FittedConsensus, is_refitted: bool) -> str:
    if is_refitted:
        return "refits"
    unit = "items" if reached.ballots.prompt is None else "prompts"
    return f"resampled-{unit}" if reached.settings.preset == "paper" else unit


def _compare_methods(reached: FittedConsensus) -> dict[str, Figures]:
    """Return each agent's score by each method, the change by the posterior, and its rank by each method, 1 for the
    greatest."""
    from scipy.stats import rankdata

    scores = {method: reached.scores(method) for method in METHODS}
    ranks = {}  # 1 for the greatest score; ties share the mean of their ranks
    for method, by_agent in scores.items():
        negated = np.array([round(-one.score, 12) for one in by_agent.values()])  # ties can differ in their last bits
        ranks[method] = dict(zip(by_agent, rankdata(negated).tolist(), strict=True))
    return {
        name: {
            "majority": scores["majority"][name].score,
            "dawid_skene": scores["dawid-skene"][name].score,
            "stableval": one.score,
            "change": one.score - scores["majority"][name].score,
            "items": one.items,
            "ranks": {method: by_agent[name] for method, by_agent in ranks.items()},
        }
        for name, one in scores["stableval"].items()
    }


def _find_changes(ambiguity: Floats, comparison: Sequence[Figures]) -> Figures:
    """Return the figures of STABLEVAL's Tables 12, 17, 23 and 29: majority vote against posterior expected credit, and
    ambiguity of items by the posterior.

    `correlation` (Pearson, over agents) is None with fewer than two agents, or if one method scores all agents equally.
    """
    ambiguous_count = int(np.count_nonzero(ambiguity > consensus.HIGH))
    scores = np.array([(one["majority"], one["stableval"]) for one in comparison])
    has_spread = len(scores) > 1 and (np.ptp(scores, axis=0) > 0.0).all()
    return {
        "correlation": float(np.corrcoef(*scores.T)[0, 1]) if has_spread else None,
        "greatest_change": max((abs(one["change"]) for one in comparison), default=None),
        "rank_changes": sum(one["ranks"]["majority"] != one["ranks"]["stableval"] for one in comparison),
        "mean_ambiguity": float(ambiguity.mean()),
        "highly_ambiguous": ambiguous_count,
        "highly_ambiguous_share": ambiguous_count / len(ambiguity),
    }
