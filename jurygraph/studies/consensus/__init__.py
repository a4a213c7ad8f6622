"""Consensus of annotators, measured from their votes (STABLEVAL)."""

from jurygraph.studies.consensus.ballots import Ballots, gather
from jurygraph.studies.consensus.findings import ConsensusReport
from jurygraph.studies.consensus.reaching import Reached, Settings, reach
from jurygraph.studies.consensus.report import report

__all__ = ["Ballots", "ConsensusReport", "Reached", "Settings", "gather", "reach", "report"]
