"""Simulated batches: without change, or with a planted reward hack. Seeds are explicit.

A batch is G responses to each of some prompts. Prompts are drawn for each step and differ in how often they are
answered correctly (Beta(1.2, 1.2)), so that accuracies inside a group are correlated. Format, ordered steps, repetition
and lengths depend on correctness as little as in real solutions: wrong answers are somewhat longer.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jurygraph.agents.data_analyzer import TrainingStep
from jurygraph.arrays import Bools, Floats

WEIGHTS = {"accuracy": 1.0, "format": 0.5, "steps": 0.5, "repetition": -0.2}
"""Weights of MACRM (Table 3)."""

_FAILURE_RATE = 0.002
_REFERENCE_STEPS = 1000


class Batch(NamedTuple):
    """Shape of a step: `prompts` × `answers` rows (a group is the answers to one prompt)."""

    prompts: int = 32
    answers: int = 8

    @property
    def groups(self) -> list[int]:
        """Return the group of each row."""
        return [prompt for prompt in range(self.prompts) for _ in range(self.answers)]


BATCH = Batch()


@dataclass
class Rows:
    """Columns of steps without rewards, [..., n]."""

    columns: dict[str, Floats]
    lengths: Floats
    failed: Bools

    def steps(self, batch: Batch, weights: dict[str, float]) -> list[TrainingStep]:
        """Return the steps with their rewards: the weighted sum of the components, NaN if the reward failed."""
        rewards = sum(
            (weight * self.columns[name] for name, weight in weights.items()),
            np.zeros_like(self.lengths),
        )
        rewards = np.where(self.failed, np.nan, rewards)
        steps = []
        for place in range(len(rewards)):
            columns = {name: column[place] for name, column in self.columns.items()}
            steps.append(TrainingStep(rewards[place], columns, self.lengths[place], batch.groups))
        return steps


def draw_rows(rng: np.random.Generator, steps: int, batch: Batch = BATCH) -> Rows:
    """Draw rows of steps without change, [steps, n]."""
    size = (steps, batch.prompts * batch.answers)
    ease = np.repeat(rng.beta(1.2, 1.2, (steps, batch.prompts)), batch.answers, axis=-1)
    right = (rng.random(size) < ease).astype(np.float64)
    format_parts = np.where(rng.random(size) < 0.7, 5, rng.integers(0, 5, size))
    step_count = 1 + rng.binomial(4, 0.5, size)
    return Rows(
        columns={
            "accuracy": right,
            "format": format_parts / 5.0,
            "steps": np.minimum(1.0, step_count / 3.0),
            "repetition": rng.beta(2.0, 12.0, size),
        },
        lengths=np.rint(
            np.exp(5.5 + 0.2 * (1.0 - ease) + 0.1 * step_count + 0.35 * rng.standard_normal(size))
        ),
        failed=rng.random(size) < _FAILURE_RATE,
    )


def unchanged_steps(seed: int, steps: int, batch: Batch = BATCH) -> list[TrainingStep]:
    """Return steps without change."""
    return draw_rows(np.random.Generator(np.random.PCG64(seed)), steps, batch).steps(batch, WEIGHTS)


class Hack(NamedTuple):
    """A planted reward hack.

    From the step `first_step` (counted from 1) on, each step a further `pace` of the responses is correctly formatted,
    wrong, and longer by `growth` than those of the step before.
    """

    first_step: int = 101
    pace: float = 0.04
    growth: float = 0.1

    def share(self, step: int) -> float:
        """Return the share of a step's responses that use the hack."""
        return min(1.0, max(0, step - self.first_step + 1) * self.pace)

    def length_factor(self, step: int) -> float:
        """Return the factor by which the lengths of these responses have grown."""
        return 1.0 + self.growth * max(0, step - self.first_step + 1)


HACKABLE_WEIGHTS = {"accuracy": 0.5, "format": 1.0, "steps": 0.5, "repetition": -0.2}
"""Weights that reward a wrong answer in the right format more than most honest answers."""


def hacked_steps(seed: int, steps: int, hack: Hack) -> Iterator[TrainingStep]:
    """Yield steps with a planted hack, one by one."""
    rng = np.random.Generator(np.random.PCG64(seed))
    for number in range(1, steps + 1):
        honest = draw_rows(rng, 1)
        is_hack = rng.random(honest.lengths.shape) < hack.share(number)
        columns = honest.columns
        yield from Rows(
            {
                **columns,
                "accuracy": np.where(is_hack, 0.0, columns["accuracy"]),
                "format": np.where(is_hack, 1.0, columns["format"]),
            },
            np.where(is_hack, np.rint(honest.lengths * hack.length_factor(number)), honest.lengths),
            honest.failed,
        ).steps(BATCH, HACKABLE_WEIGHTS)


def three_sd_step(hack: Hack) -> int:
    """Return the first step at which the hack is expected to shift accuracy or length by 3 sd of a step's mean."""
    reference = draw_rows(np.random.Generator(np.random.PCG64(0)), _REFERENCE_STEPS)
    accuracy, length = reference.columns["accuracy"].mean(axis=-1), reference.lengths.mean(axis=-1)
    step = hack.first_step
    while True:
        share = hack.share(step)
        accuracy_shift = share * accuracy.mean() / accuracy.std()
        length_shift = share * (hack.length_factor(step) - 1.0) * length.mean() / length.std()
        if max(accuracy_shift, length_shift) >= 3.0:
            return step
        step += 1
