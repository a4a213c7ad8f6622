"""Studies of juries and stored runs: attacks, consensus, credit, disagreement, judges, monitoring, reliability,
simulation, stability."""
