"""Labels drawn from known true classes by known annotators (STABLEVAL, section 5.1). Seeds are explicit."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jurygraph.errors import PlanError
from jurygraph.studies.simulate.setting import CLASSES, CONFUSION, KINDS, VALUES, Floats, Kind, Setting

Codes = NDArray[np.intp]
_CLEAR, _HARD = (2.0, 12.0), (6.0, 3.0)
"""Parameters of the beta distributions of an item's ambiguity."""
AMBIGUITY = {"clear": _CLEAR[0] / sum(_CLEAR), "hard": _HARD[0] / sum(_HARD)}
"""Mean ambiguity of clear and of hard items."""


@dataclass(frozen=True)
class SimulatedEvaluation:
    """A simulated evaluation with its true values.

    Attributes:
        setting: the simulated setting.
        item, agent, annotator, label: codes, row by row, [N·labels]; the rows of an item are contiguous, and so are the
            items of an agent.
        kinds: kind of each annotator, [A].
        confusions: how each labels a clear item, [A,3,3].
        truth: the class z of each item, [N].
        ambiguity: d of each item, [N], in [0, 1]: its labels are drawn from (1-d)·π + d/3.
    """

    setting: Setting
    item: Codes
    agent: Codes
    annotator: Codes
    label: Codes
    kinds: tuple[Kind, ...]
    confusions: Floats
    truth: Codes
    ambiguity: Floats

    @property
    def true_scores(self) -> Floats:
        """Return the mean credit of each agent's items by their true classes, [agents]."""
        return self.scores(np.eye(CLASSES)[self.truth])

    def scores(self, posterior: Floats) -> Floats:
        """Return the mean credit of each agent's items by a posterior of the items [N,3], [agents]."""
        return np.asarray((posterior @ VALUES).reshape(len(self.setting.qualities), -1).mean(axis=1))


def stableval(setting: Setting, seed: int) -> SimulatedEvaluation:
    """Simulate an evaluation; the same setting and seed give the same labels.

    Args:
        setting: agents, annotators and items; `PUBLISHED` has the paper's.
        seed: seed of `numpy.random.default_rng`.

    Raises:
        PlanError: the seed is not a whole number of at least 0.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise PlanError(f"seed is {seed!r}: a whole number of at least 0 is needed")
    generator = np.random.default_rng(seed)
    pool = np.repeat(np.arange(len(KINDS)), setting.pool)
    return _simulate(setting, generator.permutation(pool)[: setting.annotator_count], generator)


def simulate_more_items(simulated: SimulatedEvaluation, items: int, seed: int) -> SimulatedEvaluation:
    """Simulate other items of the same agents, `items` for each, labelled by the same annotators."""
    kinds = np.array([KINDS.index(kind) for kind in simulated.kinds])
    return _simulate(Setting(**dict(simulated.setting) | {"items": items}), kinds, np.random.default_rng(seed))


def _simulate(setting: Setting, kinds: Codes, generator: np.random.Generator) -> SimulatedEvaluation:
    agents, labels = len(setting.qualities), setting.labels
    total = agents * setting.items
    agent = np.repeat(np.arange(agents), setting.items)
    truth = _draw_classes(setting.shares.cumsum(axis=1)[agent], generator)
    hard = generator.random(total) < setting.hard
    ambiguity = np.where(hard, generator.beta(*_HARD, total), generator.beta(*_CLEAR, total))
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


def _draw_classes(cumulative: Floats, generator: np.random.Generator) -> Codes:
    """Draw a class for each row of cumulated probabilities, [rows, 3]."""
    return np.asarray((generator.random(len(cumulative))[:, None] >= cumulative[:, :-1]).sum(axis=1))
