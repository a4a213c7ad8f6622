"""The arms of the study: no defence, each alone, all, and the config's own."""

from jurygraph.schema import RESPONSE_GATES, SafetyConfig
from jurygraph.studies.attack import arms, largest_arms

NAMES = ["none", "fence", "reminder", "whole-reply", "evidence", "preferred", "gates", "all", "all-preferred"]


def test_every_defence_has_its_own_arm():
    listed, _ = arms(SafetyConfig())
    assert list(listed) == NAMES
    enabled = {arm: {name for name, value in safety if value and value != "off"} for arm, safety in listed.items()}
    assert enabled["none"] == set()
    assert enabled["all"] == enabled["all-preferred"] == set(SafetyConfig.model_fields)
    assert all(len(enabled[name]) == 1 for name in NAMES[1:-2])


def test_another_choice_of_defences_adds_an_arm():
    own = SafetyConfig(gates=("empty-response",), reminder=False)
    listed, configured = arms(own)
    assert list(listed) == [*NAMES, "configured"]
    assert configured == "configured"
    assert listed[configured] == own


def test_the_largest_arms_cover_the_requests_of_all_arms():
    """Fence and reminder change the prompts; the other defences change the reading of replies, or save some."""
    listed, _ = arms(SafetyConfig())
    assert largest_arms(listed.values()) == [listed[name] for name in ("none", "fence", "reminder", "all")]


def test_an_arm_with_fewer_gates_sends_more_requests():
    one, two = (SafetyConfig(gates=gates) for gates in (RESPONSE_GATES[:1], RESPONSE_GATES[:2]))
    assert largest_arms([two, one]) == [one]
