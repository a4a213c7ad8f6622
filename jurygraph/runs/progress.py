"""The callback type that reports the progress of a pass over a whole run."""

from collections.abc import Callable

ProgressCallback = Callable[[int], None]
"""A callback that receives the number of newly finished items."""
