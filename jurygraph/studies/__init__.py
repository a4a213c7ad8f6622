"""Studies of juries and stored runs: attacks, consensus, credit, disagreement, monitoring, reliability, simulation."""
