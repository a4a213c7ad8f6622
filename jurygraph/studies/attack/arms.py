"""The defences of a judge, taken down and put up one by one."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from jurygraph.schema import RESPONSE_GATES, SafetyConfig

DOWN = SafetyConfig(fence=False, reminder=False, whole_reply=False, evidence=False, gates=())
_ALONE: dict[str, dict[str, Any]] = {
    "none": {},
    "fence": {"fence": True},
    "reminder": {"reminder": True},
    "whole-reply": {"whole_reply": True},
    "evidence": {"evidence": True},
    "gates": {"gates": RESPONSE_GATES},
    **{gate: {"gates": (gate,)} for gate in RESPONSE_GATES},
}


class Arm(NamedTuple):
    """One arm of the study: the defences that stand in it, and what they are called together."""

    name: str
    safety: SafetyConfig


def arms(configured: SafetyConfig) -> tuple[tuple[Arm, ...], Arm]:
    """No defence, each alone (all gates, and each gate), and all of them; and the arm in which those stand that a
    config says. Where it is none of these it comes last, as `configured`."""
    listed = [Arm(name, DOWN.model_copy(update=up)) for name, up in _ALONE.items()]
    listed.append(Arm("all", SafetyConfig()))
    own = next((arm for arm in listed if arm.safety == configured), Arm("configured", configured))
    return tuple(listed if own in listed else [*listed, own]), own


def asking_most(listed: Iterable[Arm]) -> list[Arm]:
    """Of these arms, those whose requests hold the requests of all the others: a gate only ever saves some."""
    kept: list[Arm] = []
    for arm in sorted(listed, key=lambda arm: len(arm.safety.gates)):
        if not any(_holds(one.safety, arm.safety) for one in kept):
            kept.append(arm)
    return kept


def _holds(one: SafetyConfig, other: SafetyConfig) -> bool:
    put_alike = (one.fence, one.reminder) == (other.fence, other.reminder)
    return put_alike and set(one.gates) <= set(other.gates)
