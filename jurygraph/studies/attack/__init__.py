"""A jury's judge under attack: what passes with its defences up, and with each of them taken down."""

from jurygraph.studies.attack.report import ArmReport, AttackReport, Figures
from jurygraph.studies.attack.study import AttackStudy

__all__ = ["ArmReport", "AttackReport", "AttackStudy", "Figures"]
