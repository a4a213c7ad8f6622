"""Consensus that keeps disagreement (STABLEVAL): class posteriors of items, errors of annotators, scores with
intervals."""

from jurygraph.aggregation.consensus.fitting import PRESETS, dawid_skene, fit, not_identifiable, too_small
from jurygraph.aggregation.consensus.majority import MajorityVote, agreement, majority_vote
from jurygraph.aggregation.consensus.resampling import Refits, Stability, ranking_stability, refit_intervals
from jurygraph.aggregation.consensus.result import HIGH, AgentScore, AnnotatorQuality, Consensus, Credited

__all__ = [
    "HIGH",
    "PRESETS",
    "AgentScore",
    "AnnotatorQuality",
    "Consensus",
    "Credited",
    "MajorityVote",
    "Refits",
    "Stability",
    "agreement",
    "dawid_skene",
    "fit",
    "majority_vote",
    "not_identifiable",
    "ranking_stability",
    "refit_intervals",
    "too_small",
]
