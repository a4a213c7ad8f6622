"""LLM judges: criteria, protocols, comparisons, a judge for each reviewer; and how their verdicts are combined."""
