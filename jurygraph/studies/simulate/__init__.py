"""Simulated evaluations with known truth (STABLEVAL, 5.1): the generator, and what methods recover of it."""

from jurygraph.studies.simulate.generator import (
    CLASSES,
    CLEAR,
    CONFUSION,
    HARD,
    KINDS,
    VALUES,
    Setting,
    SimulatedEvaluation,
    simulate_with,
    stableval,
)
from jurygraph.studies.simulate.study import PARTS, SimulationStudy

__all__ = ["CLASSES", "CLEAR", "CONFUSION", "HARD", "KINDS", "PARTS", "VALUES"]
__all__ += ["Setting", "SimulatedEvaluation", "SimulationStudy", "simulate_with", "stableval"]
