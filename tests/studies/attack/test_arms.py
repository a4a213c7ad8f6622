"""The arms of the study: no defence, each alone, all, and the config's own."""

from jurygraph.schema import RESPONSE_GATES, SafetyConfig
from jurygraph.studies.attack.study import NO_DEFENCES, Arm, arms, largest_arms

NAMES = ["none", "fence", "reminder", "whole-reply", "evidence", "gates", *RESPONSE_GATES, "all"]


def test_every_defence_has_an_arm_of_its_own():
    listed, _ = arms(SafetyConfig())
    assert [arm.name for arm in listed] == NAMES
    standing = {arm.name: {name for name, value in arm.safety if value} for arm in listed}
    assert standing["none"] == set()
    assert standing["all"] == set(SafetyConfig.model_fields)
    assert all(len(standing[name]) == 1 for name in NAMES[1:-1])


def test_all_gates_stand_in_one_arm_and_each_in_one_by_itself():
    listed, _ = arms(SafetyConfig())
    gates = {arm.name: arm.safety.gates for arm in listed}
    assert gates["gates"] == gates["all"] == RESPONSE_GATES
    assert [gates[name] for name in RESPONSE_GATES] == [(name,) for name in RESPONSE_GATES]


def test_a_config_with_all_defences_has_the_arm_with_all_of_them():
    assert arms(SafetyConfig())[1].name == "all"


def test_a_config_with_none_has_the_arm_without():
    assert arms(NO_DEFENCES)[1].name == "none"


def test_a_config_of_another_choice_has_an_arm_beside_the_others():
    own = SafetyConfig(gates=("empty-response",), reminder=False)
    listed, configured = arms(own)
    assert [arm.name for arm in listed] == [*NAMES, "configured"]
    assert configured == listed[-1]
    assert configured.safety == own


def test_what_is_asked_in_a_few_arms_is_all_that_is_asked_in_any():
    """Fence and reminder change the prompts; everything else changes what becomes of replies, or saves some."""
    listed, _ = arms(SafetyConfig())
    assert [arm.name for arm in largest_arms(listed)] == ["none", "fence", "reminder", "all"]


def test_fewer_gates_ask_more():
    one, two = (Arm(str(len(gates)), SafetyConfig(gates=gates)) for gates in (RESPONSE_GATES[:1], RESPONSE_GATES[:2]))
    other = Arm("other", SafetyConfig(gates=RESPONSE_GATES[3:4]))
    assert largest_arms([two, one, other]) == [one, other]
