"""Evaluators that ask a model: criteria of a rubric, preferences of stakeholders, and a residual checklist."""
