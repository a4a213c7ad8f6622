"""Create and change runs: scoring, branching, re-scoring, migration and erasure."""
