"""Whether a letter is plain, and warm: evaluators for jurygraph."""

from .sentences import Sentences, Short
from .warm import Warm
from .words import plain

__all__ = ["Sentences", "Short", "Warm", "plain"]
