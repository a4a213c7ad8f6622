"""Evaluators for jurygraph: is a letter plain, and warm?"""

from .sentences import Sentences, Short
from .warm import Warm
from .words import plain_words

__all__ = ["Sentences", "Short", "Warm", "plain_words"]
