"""Consensus that keeps disagreement (STABLEVAL): class posteriors of items, errors of annotators, scores with
intervals."""

from jurygraph.aggregation.consensus.agents import AgentScore
from jurygraph.aggregation.consensus.fitting import PRESETS, Preset, dawid_skene, fit
from jurygraph.aggregation.consensus.identification import too_small
from jurygraph.aggregation.consensus.majority import Agreement, MajorityVote, agreement, majority_vote
from jurygraph.aggregation.consensus.refits import Refits, refit_intervals
from jurygraph.aggregation.consensus.result import HIGH, AnnotatorQuality, Consensus, Credited
from jurygraph.aggregation.consensus.stability import Stability, ranking_stability

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
