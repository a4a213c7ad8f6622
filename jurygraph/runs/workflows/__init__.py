"""Create and change runs: scoring, branching, re-scoring and erasure."""
