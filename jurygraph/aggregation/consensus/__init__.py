"""Consensus that keeps disagreement (STABLEVAL): class posteriors of items, errors of annotators, scores with
intervals."""

from jurygraph.aggregation.consensus.adjusted import (
    DOUBTFUL_ERROR_SHARE,
    AdjustedMeans,
    ExpectedError,
    adjusted_means,
    fit_leniency,
)
from jurygraph.aggregation.consensus.fitting import (
    RankingStability,
    RefitIntervals,
    agreement,
    dawid_skene,
    fit,
    list_vote_warnings,
    majority_vote,
    not_identifiable,
    ranking_stability,
    refit_intervals,
    too_small,
)
from jurygraph.aggregation.consensus.forecast import ExpectedAmbiguity, expected_ambiguity
from jurygraph.aggregation.consensus.model import (
    HIGH_AMBIGUITY,
    PRESETS,
    AgentScore,
    AnnotatorQuality,
    Consensus,
    ItemPosteriors,
    MajorityVote,
)

__all__ = [
    "DOUBTFUL_ERROR_SHARE",
    "HIGH_AMBIGUITY",
    "PRESETS",
    "AdjustedMeans",
    "AgentScore",
    "AnnotatorQuality",
    "Consensus",
    "ExpectedAmbiguity",
    "ExpectedError",
    "ItemPosteriors",
    "MajorityVote",
    "RankingStability",
    "RefitIntervals",
    "adjusted_means",
    "agreement",
    "dawid_skene",
    "expected_ambiguity",
    "fit",
    "fit_leniency",
    "list_vote_warnings",
    "majority_vote",
    "not_identifiable",
    "ranking_stability",
    "refit_intervals",
    "too_small",
]
