"""Evaluators that ask a model: criteria of a rubric, stakeholders' preferences, a residual checklist, one's own."""

from jurygraph.agents.judging.evaluator import Judging
from jurygraph.agents.judging.forms import InParts, MetOrNot, OnScale
from jurygraph.agents.judging.items import Item

__all__ = ["InParts", "Item", "Judging", "MetOrNot", "OnScale"]
