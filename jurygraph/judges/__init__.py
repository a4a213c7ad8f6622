"""Judges: how a model is made to score, compare or predict, and how several of them become one."""
