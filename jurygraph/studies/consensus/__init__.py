"""Consensus of annotators, measured from their votes (STABLEVAL)."""

from jurygraph.studies.consensus.reports import ConsensusReport
from jurygraph.studies.consensus.study import FittedConsensus, Settings, fit_consensus, report
from jurygraph.studies.consensus.votes import VoteColumns, collect_votes

__all__ = ["ConsensusReport", "FittedConsensus", "Settings", "VoteColumns", "collect_votes", "fit_consensus", "report"]
