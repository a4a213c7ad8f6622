"""Evaluators that ask a model: rubric criteria, stakeholders' preferences, a residual checklist, and custom ones."""

from jurygraph.agents.judging.evaluator import JudgeEvaluator
from jurygraph.agents.judging.forms import Binary, PartialCredit, Scale
from jurygraph.agents.judging.items import Item

__all__ = ["Binary", "Item", "JudgeEvaluator", "PartialCredit", "Scale"]
