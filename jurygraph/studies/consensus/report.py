"""Figures of a consensus: agents, annotators, items, and the uncertainty of each."""

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import AgentScore, Refits, Stability
from jurygraph.aggregation.consensus.resampling import METHODS, Method
from jurygraph.studies.consensus.fitting import FittedConsensus
from jurygraph.studies.consensus.models import (
    Agent,
    AgentComparison,
    AgreementShares,
    Annotator,
    ConsensusReport,
    Counts,
    Interval,
    Item,
    KeyFindings,
    MethodStability,
    Ties,
)

_ROUNDING = 12
"""Scores are rounded to this number of decimals before ties are found."""


def report(
    reached: FittedConsensus, stability: Mapping[Method, Stability] | None = None, refits: Refits | None = None
) -> ConsensusReport:
    """Return every figure of a consensus, including `stability` and `refits` if they were measured."""
    model = reached.model
    agreement, comparison = consensus.agreement(model.votes), _comparison(reached)
    return ConsensusReport(
        method=reached.method,
        preset=reached.settings.fit_preset,
        classes=reached.ballots.classes,
        values=reached.values,
        prior=tuple(model.prior.tolist()),
        counts=_counts(reached),
        agreement=AgreementShares(unanimous=agreement.unanimous, pairwise=agreement.pairwise),
        agents=_agents(reached, refits),
        intervals="refits" if refits else "items" if reached.ballots.prompt is None else "prompts",
        annotators=_annotators(reached, refits),
        items=_items(reached),
        stability=stability and {method: _stability_summary(one) for method, one in stability.items()},
        comparison=comparison,
        findings=_findings(reached, comparison.values()),
        decided_by_one=tuple(map(str, reached.majority.items_with_margin_one())),
        ties=_ties(reached),
        log_likelihood=model.log_likelihood,
        converged=model.converged,
        iterations=model.iterations,
        warnings=reached.warnings,
    )


def _counts(reached: FittedConsensus) -> Counts:
    votes = reached.model.votes
    return Counts(
        rows=len(votes.item_of_row),
        repeated=votes.repeated_rows,
        abstained=votes.abstentions,
        items=len(votes.items),
        unlabelled=int(np.count_nonzero(votes.counts.sum(axis=1) == 0)),
        annotators=len(votes.annotators),
        agents=len(set(reached.ballots.agent or ())),
        gold=len(reached.ballots.gold),
    )


def _agents(reached: FittedConsensus, refits: Refits | None) -> dict[str, Agent]:
    scores = reached.scores(reached.method, 0 if refits else reached.settings.bootstrap)
    if refits and scores:
        scores = {name: refits.agents[name] for name in scores}
    return {
        name: Agent(score=one.score, low=_finite_or_none(one.low), high=_finite_or_none(one.high), items=one.items)
        for name, one in scores.items()
    }


def _annotators(reached: FittedConsensus, refits: Refits | None) -> dict[str, Annotator]:
    annotators = {}
    for name, one in reached.model.annotators().items():
        estimated = (one.accuracy_interval, one.leniency_interval, one.strictness_interval)
        accuracy, leniency, strictness = refits.annotators[name] if refits else estimated
        annotators[str(name)] = Annotator(
            accuracy=one.accuracy,
            leniency=one.leniency,
            strictness=one.strictness,
            labels=one.labels,
            accuracy_interval=_finite_interval(accuracy),
            leniency_interval=_finite_interval(leniency),
            strictness_interval=_finite_interval(strictness),
        )
    return annotators


def _finite_interval(interval: tuple[float, float]) -> Interval | None:
    return interval if all(map(math.isfinite, interval)) else None


def _finite_or_none(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _items(reached: FittedConsensus) -> dict[str, Item]:
    credited = reached.credited_items
    posterior, ambiguity = credited.posterior.tolist(), credited.ambiguity().tolist()
    return {
        str(name): Item(posterior=tuple(shares), ambiguity=item_ambiguity)
        for name, shares, item_ambiguity in zip(credited.items, posterior, ambiguity, strict=True)
    }


def _stability_summary(one: Stability) -> MethodStability:
    return MethodStability(
        tau_b=_finite_or_none(one.tau_b),
        rank_sd=_finite_or_none(one.rank_sd),
        rank_range=_finite_or_none(one.rank_range),
        score_shift=_finite_or_none(one.score_shift),
        subsets=one.subsets,
    )


def _comparison(reached: FittedConsensus) -> dict[str, AgentComparison]:
    scores = {method: reached.scores(method) for method in METHODS}
    ranks = {method: _rank_agents(by_agent) for method, by_agent in scores.items()}
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


def _rank_agents(scores: Mapping[str, AgentScore]) -> dict[str, float]:
    """Return the rank of each agent, 1 for the greatest score; ties share the mean of their ranks."""
    from scipy.stats import rankdata

    negated = np.array([round(-one.score, _ROUNDING) for one in scores.values()])
    return dict(zip(scores, rankdata(negated).tolist(), strict=True))


def _findings(reached: FittedConsensus, comparison: Collection[AgentComparison]) -> KeyFindings:
    ambiguity = reached.model.ambiguity()
    ambiguous_count = int(np.count_nonzero(ambiguity > consensus.HIGH))
    return KeyFindings(
        correlation=_pearson([one.majority for one in comparison], [one.stableval for one in comparison]),
        greatest_change=max((abs(one.change) for one in comparison), default=None),
        rank_changes=sum(one.ranks["majority"] != one.ranks["stableval"] for one in comparison),
        mean_ambiguity=float(ambiguity.mean()),
        highly_ambiguous=ambiguous_count,
        highly_ambiguous_share=ambiguous_count / len(ambiguity),
    )


def _pearson(first: Sequence[float], second: Sequence[float]) -> float | None:
    if len(first) < 2 or np.ptp(first) == 0.0 or np.ptp(second) == 0.0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def _ties(reached: FittedConsensus) -> Ties:
    majority = reached.majority
    return Ties(
        rule="first" if reached.settings.is_published else "shared",
        items=tuple(str(majority.items[one]) for one in np.flatnonzero(majority.tied).tolist()),
    )
