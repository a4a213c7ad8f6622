"""Small seeded streams for tests."""

from collections.abc import Callable, Iterator

import numpy as np

from jurygraph.agents.data_analyzer import Alert, Analyzer, TrainingStep

ROWS = 64


def normal_steps(
    seed: int, count: int, shift: float = 0.0, after: int = 0
) -> Iterator[TrainingStep]:
    """Yield steps with rewards only; after step `after` their mean is higher by `shift` sd of a step's mean."""
    rng = np.random.default_rng(seed)
    for number in range(1, count + 1):
        moved = shift / np.sqrt(ROWS) if number > after else 0.0
        yield TrainingStep(rng.normal(moved, 1.0, ROWS))


def trained_steps(
    seed: int,
    accuracy: Callable[[int], float],
    form: Callable[[int], float],
    pays_form: float = 0.5,
) -> Iterator[TrainingStep]:
    """160 steps of 32 prompts and 8 answers whose reward is accuracy and a share of format."""
    random, groups = np.random.default_rng(seed), np.repeat(np.arange(32), 8)
    for step in range(1, 161):
        ease = np.repeat(random.beta(3 * accuracy(step), 3 * (1 - accuracy(step)), 32), 8)
        right, formed = (random.random(256) < ease) * 1.0, (random.random(256) < form(step)) * 1.0
        lengths = np.rint(np.exp(6 + 0.3 * random.standard_normal(256)))
        yield TrainingStep(
            right + pays_form * formed, {"accuracy": right, "format": formed}, lengths, groups
        )


def collect_alerts(analyzer: Analyzer, steps: Iterator[TrainingStep]) -> list[Alert]:
    return [alert for step in steps for alert in analyzer.observe(step)]
