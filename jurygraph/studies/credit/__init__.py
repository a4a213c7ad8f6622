"""False credit that propagates over a rubric's graph, measured from a stored run (GEAR, sections 4.3 to 4.6)."""

from jurygraph.studies.credit.cases import ACTIVATION, EDGE_KINDS, PREREQUISITE, Cases, leakage, preservation
from jurygraph.studies.credit.sheets import read_sheets
from jurygraph.studies.credit.study import CreditStudy, Settings, rewire

__all__ = ["ACTIVATION", "EDGE_KINDS", "PREREQUISITE", "Cases", "CreditStudy", "Settings"]
__all__ += ["leakage", "preservation", "read_sheets", "rewire"]
