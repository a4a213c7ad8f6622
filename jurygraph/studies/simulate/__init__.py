"""Simulated evaluations with known truth: recovery by a consensus, and calibration of its uncertainty."""

from jurygraph.studies.simulate.generator import SimulatedEvaluation, stableval
from jurygraph.studies.simulate.setting import PUBLISHED, Setting

__all__ = ["PUBLISHED", "Setting", "SimulatedEvaluation", "stableval"]
