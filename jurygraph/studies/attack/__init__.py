"""A jury's judge under attack, with its defences and with each of them disabled."""

from jurygraph.studies.attack.report import ArmReport, AttackReport, Figures
from jurygraph.studies.attack.study import AttackStudy

__all__ = ["ArmReport", "AttackReport", "AttackStudy", "Figures"]
