"""What is recovered of the agents' true scores and of their order (STABLEVAL, Tables 4, 6 and 7)."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus.repeating import Report, every
from jurygraph.aggregation.consensus.stability import METHODS, tau_b
from jurygraph.studies.simulate.generator import Simulated, stableval
from jurygraph.studies.simulate.measured import Measured
from jurygraph.studies.simulate.setting import CLASSES, Floats, Setting

FIGURES = ("mse", "accuracy", "tau_b")


def recovery(
    settings: Mapping[str, Setting], seeds: Sequence[int], jobs: int = 1, report: Report | None = None
) -> dict[str, Measured]:
    """What majority vote (ties to the highest class), hard Dawid-Skene and STABLEVAL recover, by setting.

    The figures are the mean squared error of the agents' scores (`mse`), the share of pairs of agents in their true
    order (`accuracy`), and `tau_b` with it. One estimate by preset `paper-synthetic` serves the latter two methods, as
    in the paper.

    Args:
        settings: by name; those that are equal are simulated once.
        seeds: one evaluation for each.
        jobs: processes.
        report: called with 1 after each evaluation.
    """
    runs = [(setting, seed) for setting in dict.fromkeys(settings.values()) for seed in seeds]
    found = dict(zip(runs, every(_recovered, runs, jobs, report), strict=True))
    return {
        name: Measured(METHODS, FIGURES, np.array([found[setting, seed] for seed in seeds]))
        for name, setting in settings.items()
    }


def _recovered(run: tuple[Setting, int]) -> Floats:
    """The figures of one evaluation, [M,3]."""
    drawn = stableval(*run)
    true = drawn.true_scores
    scores = scores_by_method(drawn, np.ones(len(drawn.item), dtype=np.bool_))
    return np.array([[np.mean((one - true) ** 2), in_order(one, true), tau_b(true, one)] for one in scores])


def scores_by_method(drawn: Simulated, kept: NDArray[np.bool_]) -> list[Floats]:
    """The agents' scores by the rows that are `kept`, of which each item needs one: [agents], by method."""
    rows = drawn.item[kept], drawn.annotator[kept], drawn.label[kept]
    fitted = consensus.fit(*rows, preset="paper-synthetic", n_classes=CLASSES)
    voted = consensus.majority_vote(*rows, ties="highest", classes=range(CLASSES))
    return [drawn.scores(one.posterior) for one in (voted, fitted.hard(), fitted)]


def in_order(scores: Floats, true: Floats) -> float:
    """The share of pairs that stand in the true order; a tie on one side alone counts half."""
    one, other = (np.sign(np.subtract.outer(each, each))[np.triu_indices(len(each), 1)] for each in (scores, true))
    return float(np.where(one == other, 1.0, np.where(one * other == 0.0, 0.5, 0.0)).mean())
