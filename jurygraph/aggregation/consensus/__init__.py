"""Consensus that keeps disagreement (STABLEVAL): class posteriors of items, errors of annotators, scores with
intervals."""

from jurygraph.aggregation.consensus.fitting import PRESETS, Preset, dawid_skene, fit, too_small
from jurygraph.aggregation.consensus.majority import Agreement, MajorityVote, agreement, majority_vote
from jurygraph.aggregation.consensus.resampling import Refits, Stability, ranking_stability, refit_intervals
from jurygraph.aggregation.consensus.result import HIGH, AgentScore, AnnotatorQuality, Consensus, Credited

__all__ = [
    "HIGH",
    "PRESETS",
    "AgentScore",
    "Agreement",
    "AnnotatorQuality",
    "Consensus",
    "Credited",
    "MajorityVote",
    "Preset",
    "Refits",
    "Stability",
    "agreement",
    "dawid_skene",
    "fit",
    "majority_vote",
    "ranking_stability",
    "refit_intervals",
    "too_small",
]
