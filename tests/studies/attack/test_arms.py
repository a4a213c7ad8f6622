"""The arms of the study: no defence, each alone, all, and the config's own."""

from jurygraph.schema import SafetyConfig
from jurygraph.studies.attack import defences_by_arm

NAMES = [
    "none",
    "fence",
    "reminder",
    "whole-reply",
    "evidence",
    "preferred",
    "gates",
    "all",
    "all-preferred",
]


def test_every_defence_has_its_own_arm():
    listed, _ = defences_by_arm(SafetyConfig())
    assert list(listed) == NAMES
    enabled = {
        arm: {name for name, value in safety if value and value != "off"}
        for arm, safety in listed.items()
    }
    assert enabled["none"] == set()
    assert enabled["all"] == enabled["all-preferred"] == set(SafetyConfig.model_fields)
    assert all(len(enabled[name]) == 1 for name in NAMES[1:-2])


def test_another_choice_of_defences_adds_an_arm():
    own = SafetyConfig(gates=("empty-response",), reminder=False)
    listed, configured = defences_by_arm(own)
    assert list(listed) == [*NAMES, "configured"]
    assert configured == "configured"
    assert listed[configured] == own
