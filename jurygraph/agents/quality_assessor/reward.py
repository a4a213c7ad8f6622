"""The step reward (MACRM's step-level outcome reward, in our reading): the sound share of the reasoning."""

from jurygraph.schema import Verdict

NO_STEPS = Verdict(score=0.0, met=False, reason="no step of reasoning is written")
"""The verdict on a response without any step, in which nothing is sound."""


def step_reward(first_wrong: int, steps: int) -> float:
    """Return the share of the steps before the first wrong one, 0 to less than 1.

    Args:
        first_wrong: the number of that step, from 1 to `steps`.
        steps: the number of steps, 1 or more.
    """
    return (first_wrong - 1) / steps
