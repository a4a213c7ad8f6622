"""Batches that no model made: without change, and with a planted hack. Seeds are explicit.

A batch is G responses to each of some prompts. Prompts are drawn anew each step and differ in how often they are
answered rightly (Beta(1.2, 1.2)), so that accuracies inside a group go together. Format, ordered steps, repetition and
lengths hang on whether an answer is right as little as they do in real solutions: wrong ones are somewhat longer.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jurygraph.agents.data_analyzer import Step
from jurygraph.agents.data_analyzer.step import Floats

WEIGHTS = {"accuracy": 1.0, "format": 0.5, "steps": 0.5, "repetition": -0.2}
"""MACRM's (Table 3)."""

_FAILED = 0.002
_REFERENCE = 1000


class Batch(NamedTuple):
    """How a step is built: `prompts` × `answers` rows (a group is a prompt's answers)."""

    prompts: int = 32
    answers: int = 8

    @property
    def groups(self) -> list[int]:
        """The group of each row."""
        return [prompt for prompt in range(self.prompts) for _ in range(self.answers)]


BATCH = Batch()


@dataclass
class Rows:
    """Columns of steps without rewards, [..., n]."""

    columns: dict[str, Floats]
    lengths: Floats
    failed: NDArray[np.bool_]

    def step(self, batch: Batch, weights: dict[str, float]) -> Step:
        """The rows with their rewards: the weighted sum of the components, NaN where it failed."""
        rewards = sum((weight * self.columns[name] for name, weight in weights.items()), np.zeros_like(self.lengths))
        return Step(np.where(self.failed, np.nan, rewards), self.columns, self.lengths, batch.groups)


def rows(rng: np.random.Generator, steps: int, batch: Batch = BATCH) -> Rows:
    """Rows of steps without change, [steps, n]."""
    size = (steps, batch.prompts * batch.answers)
    ease = np.repeat(rng.beta(1.2, 1.2, (steps, batch.prompts)), batch.answers, axis=-1)
    right = (rng.random(size) < ease).astype(np.float64)
    parts = np.where(rng.random(size) < 0.7, 5, rng.integers(0, 5, size))
    written = 1 + rng.binomial(4, 0.5, size)
    return Rows(
        columns={
            "accuracy": right,
            "format": parts / 5.0,
            "steps": np.minimum(1.0, written / 3.0),
            "repetition": rng.beta(2.0, 12.0, size),
        },
        lengths=np.rint(np.exp(5.5 + 0.2 * (1.0 - ease) + 0.1 * written + 0.35 * rng.standard_normal(size))),
        failed=rng.random(size) < _FAILED,
    )


def unchanged(seed: int, steps: int, batch: Batch = BATCH) -> Step:
    """Steps without change, [steps, n], as one array."""
    return rows(np.random.Generator(np.random.PCG64(seed)), steps, batch).step(batch, WEIGHTS)


class Hack(NamedTuple):
    """A planted hack: from the step `begins` (counted from 1) on, each step a further `pace` of the responses is
    correctly formatted, wrong, and longer by `growth` than those of the step before."""

    begins: int = 101
    pace: float = 0.04
    growth: float = 0.1

    def share(self, step: int) -> float:
        """How many of the responses of a step play the game."""
        return min(1.0, max(0, step - self.begins + 1) * self.pace)

    def longer(self, step: int) -> float:
        """By what factor their lengths have grown."""
        return 1.0 + self.growth * max(0, step - self.begins + 1)


PAYS = {"accuracy": 0.5, "format": 1.0, "steps": 0.5, "repetition": -0.2}
"""Weights under which a wrong answer in the right form is paid more than most honest ones."""


def hacked(seed: int, steps: int, hack: Hack) -> Iterator[Step]:
    """Steps, one by one, into which a hack is planted."""
    rng = np.random.Generator(np.random.PCG64(seed))
    for number in range(1, steps + 1):
        drawn = rows(rng, 1)
        games = rng.random(drawn.lengths.shape) < hack.share(number)
        columns = drawn.columns
        changed = Rows(
            {
                **columns,
                "accuracy": np.where(games, 0.0, columns["accuracy"]),
                "format": np.where(games, 1.0, columns["format"]),
            },
            np.where(games, np.rint(drawn.lengths * hack.longer(number)), drawn.lengths),
            drawn.failed,
        ).step(BATCH, PAYS)
        yield Step(
            changed.rewards[0],
            {name: column[0] for name, column in changed.components.items()},
            None if changed.lengths is None else changed.lengths[0],
            BATCH.groups,
        )


def three_sd(hack: Hack) -> int:
    """The first step at which the hack is expected to have moved accuracy or length by 3 sd of a step's mean."""
    before = rows(np.random.Generator(np.random.PCG64(0)), _REFERENCE)
    accuracy, length = before.columns["accuracy"].mean(axis=-1), before.lengths.mean(axis=-1)
    step = hack.begins
    while True:
        share = hack.share(step)
        fall = share * accuracy.mean() / accuracy.std()
        rise = share * (hack.longer(step) - 1.0) * length.mean() / length.std()
        if max(fall, rise) >= 3.0:
            return step
        step += 1
