"""Disagreement of the components of a reward, measured from stored runs (MACRM, section 4.5)."""

from jurygraph.studies.disagreement.models import DisagreementReport
from jurygraph.studies.disagreement.samples import Samples, StepRule, read_samples
from jurygraph.studies.disagreement.study import pairwise, report

__all__ = ["DisagreementReport", "Samples", "StepRule", "pairwise", "read_samples", "report"]
