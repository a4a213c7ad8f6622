"""The step reward (MACRM's step-level outcome reward, in our reading): how far the reasoning holds."""

from jurygraph.schema import Verdict

NO_STEPS = Verdict(score=0.0, met=False, reason="no step of reasoning is written")
"""On a response without any step: nothing holds in it."""


def step_reward(first_wrong: int, steps: int) -> float:
    """The share of the steps before the first wrong one, 0 to less than 1.

    Args:
        first_wrong: its number, from 1 to `steps`.
        steps: how many there are, 1 or more.
    """
    return (first_wrong - 1) / steps
