"""Evaluators that ask a model: rubric criteria, stakeholders' preferences, a residual checklist, and custom ones."""

from jurygraph.agents.judging.evaluator import Judging
from jurygraph.agents.judging.forms import InParts, MetOrNot, OnScale
from jurygraph.agents.judging.items import Item

__all__ = ["InParts", "Item", "Judging", "MetOrNot", "OnScale"]
