"""Labels that were drawn from known truths by known annotators (STABLEVAL, section 5.1). Seeds are explicit."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jurygraph.errors import PlanError
from jurygraph.studies.simulate.setting import CLASSES, CONFUSION, KINDS, VALUES, Floats, Kind, Setting

Codes = NDArray[np.intp]
_CLEAR, _HARD = (2.0, 12.0), (6.0, 3.0)
"""Beta distributions of an item's ambiguity."""
AMBIGUITY = {"clear": _CLEAR[0] / sum(_CLEAR), "hard": _HARD[0] / sum(_HARD)}
"""Their means."""


@dataclass(frozen=True)
class Simulated:
    """A simulated evaluation, and the truth of it.

    Attributes:
        setting: what was simulated.
        item, agent, annotator, label: codes, row by row, [N·labels]; the rows of an item stand together, and the items
            of an agent.
        kinds: of each annotator, [A].
        confusions: how each labels a clear item, [A,3,3].
        truth: the class z of each item, [N].
        ambiguity: d of each item, [N], in [0, 1]: its labels are of (1-d)·π + d/3.
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
        """The mean credit of each agent's items as they truly are, [agents]."""
        return self.scores(np.eye(CLASSES)[self.truth])

    def scores(self, posterior: Floats) -> Floats:
        """The mean credit of each agent's items by a posterior of theirs [N,3], [agents]."""
        return np.asarray((posterior @ VALUES).reshape(len(self.setting.qualities), -1).mean(axis=1))


def stableval(setting: Setting, seed: int) -> Simulated:
    """Simulate an evaluation; the same setting and seed give the same labels.

    Args:
        setting: agents, annotators and items; `PUBLISHED` has the paper's.
        seed: of `numpy.random.default_rng`. PlanError where it is no whole number of at least 0.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise PlanError(f"seed is {seed!r}: a whole number of at least 0 is needed")
    draw = np.random.default_rng(seed)
    pool = np.repeat(np.arange(len(KINDS)), setting.pool)
    return _labelled(setting, draw.permutation(pool)[: setting.taking_part], draw)


def more_items(known: Simulated, items: int, seed: int) -> Simulated:
    """Other items of the same agents, `items` of each, labelled by the same annotators."""
    kinds = np.array([KINDS.index(kind) for kind in known.kinds])
    return _labelled(Setting(**dict(known.setting) | {"items": items}), kinds, np.random.default_rng(seed))


def _labelled(setting: Setting, kinds: Codes, draw: np.random.Generator) -> Simulated:
    agents, labels = len(setting.qualities), setting.labels
    many = agents * setting.items
    agent = np.repeat(np.arange(agents), setting.items)
    truth = _drawn(setting.shares.cumsum(axis=1)[agent], draw)
    hard = draw.random(many) < setting.hard
    ambiguity = np.where(hard, draw.beta(*_HARD, many), draw.beta(*_CLEAR, many))
    item = np.repeat(np.arange(many), labels)
    annotator = draw.random((many, len(kinds))).argsort(axis=1)[:, :labels].ravel()
    confusions = np.array([CONFUSION[kind] for kind in KINDS])[kinds]
    blurred = ambiguity[item, None]
    chances = (1.0 - blurred) * confusions[annotator, truth[item]] + blurred / CLASSES
    return Simulated(
        setting=setting,
        item=item,
        agent=agent[item],
        annotator=annotator,
        label=_drawn(chances.cumsum(axis=1), draw),
        kinds=tuple(KINDS[kind] for kind in kinds.tolist()),
        confusions=confusions,
        truth=truth,
        ambiguity=ambiguity,
    )


def _drawn(cumulated: Floats, draw: np.random.Generator) -> Codes:
    """A class for each row of cumulated probabilities, [rows, 3]."""
    return np.asarray((draw.random(len(cumulated))[:, None] >= cumulated[:, :-1]).sum(axis=1))
