"""Consensus of annotators, measured from their votes (STABLEVAL)."""

from jurygraph.studies.consensus.ballots import VoteColumns, collect_votes
from jurygraph.studies.consensus.findings import ConsensusReport
from jurygraph.studies.consensus.reaching import FittedConsensus, Settings, fit_consensus
from jurygraph.studies.consensus.report import report

__all__ = ["ConsensusReport", "FittedConsensus", "Settings", "VoteColumns", "collect_votes", "fit_consensus", "report"]
