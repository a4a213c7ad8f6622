"""Judges: evaluators in which a model scores, compares or predicts, and the combiners of their verdicts."""
