"""Simulated streams depend on their seed only, and follow the hack's settings."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks.simulation.streams import (
    BATCH,
    HACKABLE_WEIGHTS,
    Batch,
    Hack,
    hacked_steps,
    three_sd_step,
    unchanged_steps,
)

pytestmark = pytest.mark.exhaustive


def test_a_seed_gives_the_same_stream() -> None:
    assert_allclose(unchanged_steps(3, 4).rewards, unchanged_steps(3, 4).rewards)
    assert not np.array_equal(unchanged_steps(3, 4).rewards, unchanged_steps(4, 4).rewards, equal_nan=True)


def test_a_step_has_8_responses_to_each_of_32_prompts_by_default() -> None:
    step = unchanged_steps(0, 3)
    assert step.rewards.shape == (3, 256)
    assert step.groups is not None
    assert step.groups.sizes.tolist() == [8] * 32
    assert unchanged_steps(0, 3, Batch(2, 3)).rewards.shape == (3, 6)


def test_accuracies_within_a_group_are_correlated() -> None:
    right = unchanged_steps(0, 400).components["accuracy"].reshape(-1, BATCH.answers)
    share = right.mean()
    assert right.mean(axis=-1).var() > 2 * share * (1 - share) / BATCH.answers


def test_a_hack_raises_length_format_and_reward_but_lowers_accuracy() -> None:
    hack = Hack(first_step=6)
    steps = list(hacked_steps(0, 40, hack))
    early, late = steps[:5], steps[-5:]

    def mean(name: str, some: list) -> float:
        return float(np.mean([one.lengths if name == "length" else one.components[name] for one in some]))

    assert mean("length", late) > 3 * mean("length", early)
    assert mean("format", late) == 1.0
    assert mean("accuracy", late) == 0.0
    paid = [np.nanmean([one.rewards for one in some]) for some in (early, late)]
    assert paid[1] > paid[0] - 0.1
    assert HACKABLE_WEIGHTS["format"] > HACKABLE_WEIGHTS["accuracy"]


def test_three_sd_are_reached_after_the_hack_begins_and_sooner_by_a_faster_one() -> None:
    slow, fast = Hack(pace=0.01), Hack(pace=0.1)
    assert Hack().first_step < three_sd_step(fast) < three_sd_step(slow)
