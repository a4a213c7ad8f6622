"""Evaluators for jurygraph that check if a letter is plain and warm."""

from .sentences import Sentences, Short
from .warm import Warm
from .words import plain

__all__ = ["Sentences", "Short", "Warm", "plain"]
