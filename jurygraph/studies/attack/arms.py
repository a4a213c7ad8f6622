"""Arms of the attack study: defences of a judge, disabled and enabled one by one."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from jurygraph.schema import RESPONSE_GATES, SafetyConfig

NO_DEFENCES = SafetyConfig(fence=False, reminder=False, whole_reply=False, evidence=False, gates=())
_ENABLED_BY_ARM: dict[str, dict[str, Any]] = {
    "none": {},
    "fence": {"fence": True},
    "reminder": {"reminder": True},
    "whole-reply": {"whole_reply": True},
    "evidence": {"evidence": True},
    "gates": {"gates": RESPONSE_GATES},
    **{gate: {"gates": (gate,)} for gate in RESPONSE_GATES},
}


class Arm(NamedTuple):
    """One arm of the study: its name, and the active defences."""

    name: str
    safety: SafetyConfig


def arms(configured: SafetyConfig) -> tuple[tuple[Arm, ...], Arm]:
    """Return all arms, and the one with the config's own defences.

    The arms are no defence, each defence alone (all gates, and each gate), and all defences. If the config's own are
    none of these, that arm comes last, as `configured`.
    """
    known_arms = [Arm(name, NO_DEFENCES.model_copy(update=enabled)) for name, enabled in _ENABLED_BY_ARM.items()]
    known_arms.append(Arm("all", SafetyConfig()))
    own_arm = next((arm for arm in known_arms if arm.safety == configured), Arm("configured", configured))
    return tuple(known_arms if own_arm in known_arms else [*known_arms, own_arm]), own_arm


def largest_arms(candidates: Iterable[Arm]) -> list[Arm]:
    """Return the arms whose requests include those of all other arms: a gate only ever saves requests."""
    largest: dict[tuple[bool, bool], list[Arm]] = defaultdict(list)  # by prompt
    for arm in sorted(candidates, key=lambda arm: len(arm.safety.gates)):
        same_prompt = largest[arm.safety.fence, arm.safety.reminder]
        if not any(set(other.safety.gates) <= set(arm.safety.gates) for other in same_prompt):
            same_prompt.append(arm)
    return [arm for same_prompt in largest.values() for arm in same_prompt]
