"""Simulated evaluations: labels drawn from known true classes by annotators with known confusions (STABLEVAL, 5.1).

Items have a known ambiguity, and agents a known quality. Seeds are explicit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Literal, Self, get_args

import numpy as np
from pydantic import Field, model_validator

from jurygraph.arrays import Floats, Ints
from jurygraph.schema.frozen_model import Count, Flag, FrozenModel, Unit

Kind = Literal["normal", "strict", "lenient", "adversarial"]
KINDS: tuple[Kind, ...] = get_args(Kind)
CONFUSION: Mapping[Kind, tuple[tuple[float, ...], ...]] = MappingProxyType(
    {
        "normal": ((0.85, 0.14, 0.01), (0.10, 0.80, 0.10), (0.01, 0.14, 0.85)),
        "strict": ((0.92, 0.08, 0.00), (0.35, 0.60, 0.05), (0.10, 0.55, 0.35)),
        "lenient": ((0.35, 0.55, 0.10), (0.05, 0.60, 0.35), (0.00, 0.08, 0.92)),
        "adversarial": ((1 / 3, 1 / 3, 1 / 3), (1 / 3, 1 / 3, 1 / 3), (1 / 3, 1 / 3, 1 / 3)),
    }
)
"""Label probabilities of each kind for a clear item, a row for each true class; adversarial annotators guess."""
CLASSES = 3
VALUES = (0.0, 0.5, 1.0)
PARTIAL = 0.35
"""Share of the responses that are not right which are partly right."""
CLEAR = (2.0, 12.0)
HARD = (6.0, 3.0)
"""Parameters of the beta distributions of the ambiguity of clear and of hard items."""
_AtLeastOne = Annotated[int, Field(strict=True, ge=1)]


class Setting(FrozenModel):
    """Setting of a simulation (STABLEVAL, section 5.1). The default is the paper's base configuration.

    Attributes:
        qualities: for each agent, the probability that its response is right.
        items: number of items of each agent.
        pool: number of annotators of each kind, in the order of `KINDS`.
        annotators: number of annotators drawn from the pool, again for each seed; None: all of them.
        labels: number of labels of each item, by different annotators.
        hard: the probability that an item is hard.
        ambiguous: False if no item is ambiguous, so that labels follow the confusions alone, as in STABLEVAL's model
            (3.2); `hard` then has no effect.
    """

    qualities: Annotated[tuple[Unit, ...], Field(min_length=1)] = (0.85, 0.80, 0.70, 0.55, 0.35, 0.20)
    items: _AtLeastOne = 500
    pool: tuple[Count, Count, Count, Count] = (18, 6, 4, 2)
    annotators: _AtLeastOne | None = None
    labels: _AtLeastOne = 5
    hard: Unit = 0.2
    ambiguous: Flag = True

    @model_validator(mode="after")
    def _require_enough_annotators(self) -> Self:
        if self.annotator_count > sum(self.pool):
            raise ValueError(f"`annotators` is {self.annotators}, more than the pool of {sum(self.pool)}")
        if self.labels > self.annotator_count:
            raise ValueError(f"`labels` is {self.labels} annotators an item, more than {self.annotator_count}")
        return self

    @property
    def annotator_count(self) -> int:
        """Return the number of annotators that take part."""
        return sum(self.pool) if self.annotators is None else self.annotators

    @property
    def shares(self) -> Floats:
        """Return P(z) of each agent's items, [agents, 3]."""
        right = np.array(self.qualities)
        return np.column_stack([(1.0 - PARTIAL) * (1.0 - right), PARTIAL * (1.0 - right), right])


@dataclass(frozen=True)
class SimulatedEvaluation:
    """A simulated evaluation with its true values.

    Attributes:
        item, agent, annotator, label: codes, row by row, [N·labels]; the rows of an item are contiguous, and so are the
            items of an agent.
        kinds: kind of each annotator, [A].
        confusions: how each labels a clear item, [A,3,3].
        truth: the class z of each item, [N].
        ambiguity: d of each item, [N], in [0, 1]: its labels are drawn from (1-d)·π + d/3.
    """

    setting: Setting
    item: Ints
    agent: Ints
    annotator: Ints
    label: Ints
    kinds: tuple[Kind, ...]
    confusions: Floats
    truth: Ints
    ambiguity: Floats

    @property
    def true_scores(self) -> Floats:
        """Return the mean credit of each agent's items by their true classes, [agents]."""
        return self.scores(np.eye(CLASSES)[self.truth])

    def scores(self, posterior: Floats) -> Floats:
        """Return the mean credit of each agent's items by a posterior of the items [N,3], [agents]."""
        return np.asarray((posterior @ VALUES).reshape(len(self.setting.qualities), -1).mean(axis=1))


def stableval(setting: Setting, seed: int) -> SimulatedEvaluation:
    """Simulate an evaluation; the same setting and seed (of `numpy.random.default_rng`) give the same labels."""
    generator = np.random.default_rng(seed)
    pool = np.repeat(np.arange(len(KINDS)), setting.pool)
    return simulate_with(setting, generator.permutation(pool)[: setting.annotator_count], generator)


def simulate_with(setting: Setting, kinds: Ints, generator: np.random.Generator) -> SimulatedEvaluation:
    """Simulate an evaluation by annotators of these kinds, as indices of `KINDS`, [A]."""
    agents = len(setting.qualities)
    labels = setting.labels
    total = agents * setting.items
    agent = np.repeat(np.arange(agents), setting.items)
    truth = _draw_classes(setting.shares.cumsum(axis=1)[agent], generator)
    hard = generator.random(total) < setting.hard
    ambiguity = np.where(hard, generator.beta(*HARD, total), generator.beta(*CLEAR, total)) * setting.ambiguous
    item = np.repeat(np.arange(total), labels)
    annotator = generator.random((total, len(kinds))).argsort(axis=1)[:, :labels].ravel()
    confusions = np.array([CONFUSION[kind] for kind in KINDS])[kinds]
    blurred = ambiguity[item, None]
    probabilities = (1.0 - blurred) * confusions[annotator, truth[item]] + blurred / CLASSES
    return SimulatedEvaluation(
        setting=setting,
        item=item,
        agent=agent[item],
        annotator=annotator,
        label=_draw_classes(probabilities.cumsum(axis=1), generator),
        kinds=tuple(KINDS[kind] for kind in kinds.tolist()),
        confusions=confusions,
        truth=truth,
        ambiguity=ambiguity,
    )


def _draw_classes(cumulative: Floats, generator: np.random.Generator) -> Ints:
    """Draw a class for each row of cumulated probabilities, [rows, 3]."""
    return np.asarray((generator.random(len(cumulative))[:, None] >= cumulative[:, :-1]).sum(axis=1))
