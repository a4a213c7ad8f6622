"""How far something that goes through a whole run has come."""

from collections.abc import Callable

Report = Callable[[int], None]
"""Told how many more are done, each time that some are."""
