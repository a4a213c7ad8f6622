"""Figures of a consensus: agents, annotators, items, and the uncertainty of each."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from jurygraph.aggregation import consensus
from jurygraph.aggregation.arrays import Floats
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
    ballots, model, majority = reached.ballots, reached.model, reached.majority
    credited = reached.items_by_method(reached.method)
    agreement, comparison = consensus.agreement(model.votes), _comparison(reached)
    scores = reached.scores(reached.method, 0 if refits else reached.settings.bootstrap)
    items = zip(credited.items, credited.posterior.tolist(), credited.ambiguity().tolist(), strict=True)
    return ConsensusReport(
        method=reached.method,
        preset=reached.settings.fit_preset,
        classes=ballots.classes,
        values=reached.values,
        prior=tuple(model.prior.tolist()),
        counts=_counts(reached),
        agreement=AgreementShares(unanimous=agreement.unanimous, pairwise=agreement.pairwise),
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


def _annotators(reached: FittedConsensus, refits: Refits | None) -> dict[str, Annotator]:
    """Return the quality of each annotator, with the intervals of the refits if there are any."""
    annotators = {}
    names = ("accuracy_interval", "leniency_interval", "strictness_interval")
    for annotator, quality in reached.model.annotators().items():
        intervals = dict(zip(names, refits.annotators[annotator], strict=True)) if refits else {}
        annotators[str(annotator)] = Annotator(**quality._asdict() | intervals)
    return annotators


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


def _findings(ambiguity: Floats, comparison: Collection[AgentComparison]) -> KeyFindings:
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
