"""Evaluations whose truth is known: what a consensus recovers of it, and how honest its uncertainty is."""

from jurygraph.studies.simulate.generator import Simulated, stableval
from jurygraph.studies.simulate.setting import PUBLISHED, Setting

__all__ = ["PUBLISHED", "Setting", "Simulated", "stableval"]
