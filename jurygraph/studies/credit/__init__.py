"""False credit that propagates over a rubric's graph, measured from a stored run (GEAR, sections 4.3 to 4.6)."""

from jurygraph.studies.credit.cases import EDGE_KINDS, Cases, leakage, preservation
from jurygraph.studies.credit.sheets import read_sheets
from jurygraph.studies.credit.study import CreditStudy, rewire

__all__ = ["EDGE_KINDS", "Cases", "CreditStudy", "leakage", "preservation", "read_sheets", "rewire"]
