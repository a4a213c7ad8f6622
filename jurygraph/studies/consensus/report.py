"""A consensus as figures: agents, annotators, items, and how far each can be trusted."""

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import AgentScore, Refits, Stability
from jurygraph.aggregation.consensus.stability import METHODS, Method
from jurygraph.studies.consensus.findings import (
    Agent,
    Annotator,
    Compared,
    ConsensusReport,
    Counts,
    Interval,
    Item,
    KeyFindings,
    Stable,
    Ties,
    Unison,
)
from jurygraph.studies.consensus.reaching import Reached

_ROUNDING = 12
"""Decimals beyond which two scores are a tie."""


def report(
    reached: Reached, stability: Mapping[Method, Stability] | None = None, refits: Refits | None = None
) -> ConsensusReport:
    """Every figure of a consensus, with its `stability` and `refits` where they were measured."""
    model = reached.model
    agreement, compared = consensus.agreement(model.votes), _comparison(reached)
    return ConsensusReport(
        method=reached.method,
        preset=reached.settings.estimate,
        classes=reached.ballots.classes,
        values=reached.values,
        prior=tuple(model.prior.tolist()),
        counts=_counts(reached),
        agreement=Unison(unanimous=agreement.unanimous, pairwise=agreement.pairwise),
        agents=_agents(reached, refits),
        intervals="refits" if refits else "items" if reached.ballots.prompt is None else "prompts",
        annotators=_annotators(reached, refits),
        items=_items(reached),
        stability=stability and {method: _stable(one) for method, one in stability.items()},
        comparison=compared,
        findings=_findings(reached, compared.values()),
        decided_by_one=tuple(map(str, reached.majority.decided_by_one())),
        ties=_ties(reached),
        log_likelihood=model.log_likelihood,
        converged=model.converged,
        iterations=model.iterations,
        warnings=reached.warnings,
    )


def _counts(reached: Reached) -> Counts:
    votes = reached.model.votes
    return Counts(
        rows=len(votes.of_row),
        repeated=votes.repeated,
        abstained=votes.abstained,
        items=len(votes.items),
        unlabelled=int(np.count_nonzero(votes.counts.sum(axis=1) == 0)),
        annotators=len(votes.annotators),
        agents=len(set(reached.ballots.agent or ())),
        gold=len(reached.ballots.gold),
    )


def _agents(reached: Reached, refits: Refits | None) -> dict[str, Agent]:
    found = reached.scores(reached.method, 0 if refits else reached.settings.bootstrap)
    if refits and found:
        found = {name: refits.agents[name] for name in found}
    return {
        name: Agent(score=one.score, low=_finite(one.low), high=_finite(one.high), items=one.items)
        for name, one in found.items()
    }


def _annotators(reached: Reached, refits: Refits | None) -> dict[str, Annotator]:
    found = {}
    for name, one in reached.model.annotators().items():
        own = (one.accuracy_interval, one.leniency_interval, one.strictness_interval)
        accuracy, leniency, strictness = refits.annotators[name] if refits else own
        found[str(name)] = Annotator(
            accuracy=one.accuracy,
            leniency=one.leniency,
            strictness=one.strictness,
            labels=one.labels,
            accuracy_interval=_interval(accuracy),
            leniency_interval=_interval(leniency),
            strictness_interval=_interval(strictness),
        )
    return found


def _interval(ends: tuple[float, float]) -> Interval | None:
    return ends if all(map(math.isfinite, ends)) else None


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _items(reached: Reached) -> dict[str, Item]:
    credited = reached.credited
    posterior, ambiguity = credited.posterior.tolist(), credited.ambiguity().tolist()
    return {
        str(name): Item(posterior=tuple(shares), ambiguity=unsure)
        for name, shares, unsure in zip(credited.items, posterior, ambiguity, strict=True)
    }


def _stable(one: Stability) -> Stable:
    return Stable(
        tau_b=_finite(one.tau_b),
        rank_sd=_finite(one.rank_sd),
        rank_range=_finite(one.rank_range),
        score_shift=_finite(one.score_shift),
        subsets=one.subsets,
    )


def _comparison(reached: Reached) -> dict[str, Compared]:
    scores = {method: reached.scores(method) for method in METHODS}
    ranks = {method: _ranks(own) for method, own in scores.items()}
    return {
        name: Compared(
            majority=scores["majority"][name].score,
            dawid_skene=scores["dawid-skene"][name].score,
            stableval=one.score,
            change=one.score - scores["majority"][name].score,
            items=one.items,
            ranks={method: own[name] for method, own in ranks.items()},
        )
        for name, one in scores["stableval"].items()
    }


def _ranks(scores: Mapping[str, AgentScore]) -> dict[str, float]:
    """1 for the greatest; who ties shares the mean of their ranks."""
    from scipy.stats import rankdata

    own = np.array([round(-one.score, _ROUNDING) for one in scores.values()])
    return dict(zip(scores, rankdata(own).tolist(), strict=True))


def _findings(reached: Reached, compared: Collection[Compared]) -> KeyFindings:
    ambiguity = reached.model.ambiguity()
    high = int(np.count_nonzero(ambiguity > consensus.HIGH))
    return KeyFindings(
        correlation=_pearson([one.majority for one in compared], [one.stableval for one in compared]),
        greatest_change=max((abs(one.change) for one in compared), default=None),
        rank_changes=sum(one.ranks["majority"] != one.ranks["stableval"] for one in compared),
        mean_ambiguity=float(ambiguity.mean()),
        highly_ambiguous=high,
        highly_ambiguous_share=high / len(ambiguity),
    )


def _pearson(first: Sequence[float], second: Sequence[float]) -> float | None:
    if len(first) < 2 or np.ptp(first) == 0.0 or np.ptp(second) == 0.0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def _ties(reached: Reached) -> Ties:
    majority = reached.majority
    return Ties(
        rule="first" if reached.settings.published else "shared",
        items=tuple(str(majority.items[one]) for one in np.flatnonzero(majority.tied).tolist()),
    )
