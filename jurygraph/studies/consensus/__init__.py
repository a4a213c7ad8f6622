"""Consensus of annotators, measured from their votes (STABLEVAL)."""

from jurygraph.studies.consensus.study import FittedConsensus, Settings, fit_consensus, report
from jurygraph.studies.consensus.votes import VoteColumns, collect_votes

__all__ = ["FittedConsensus", "Settings", "VoteColumns", "collect_votes", "fit_consensus", "report"]
