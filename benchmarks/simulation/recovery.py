"""Recovery of the agents' true scores and of their order (STABLEVAL, Tables 4, 6 and 7)."""

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.simulation.figures import MethodFigures
from jurygraph.aggregation import consensus
from jurygraph.aggregation.arrays import Bools, Floats
from jurygraph.aggregation.consensus.resampling import METHODS, Report, run_each, tau_b
from jurygraph.studies.simulate import CLASSES, Setting, SimulatedEvaluation, stableval

FIGURES = ("mse", "accuracy", "tau_b")


def _settings_by_pool(name: str, *pools: tuple[int, int, int, int]) -> dict[str, Setting]:
    return {f"{name}_{10 * index:02}": Setting(pool=pool) for index, pool in enumerate(pools)}


PUBLISHED: Mapping[str, Setting] = {
    "gaps_tight": Setting(qualities=(0.75, 0.70, 0.65, 0.60, 0.55, 0.50)),
    "gaps_wide": Setting(),
    **_settings_by_pool("adv", (20, 6, 4, 0), (17, 5, 5, 3), (15, 5, 4, 6), (13, 4, 4, 9), (11, 4, 3, 12)),
    **_settings_by_pool("strict", (26, 0, 4, 0), (23, 3, 4, 0), (20, 6, 4, 0), (17, 9, 4, 0), (14, 12, 4, 0)),
    **_settings_by_pool("lenient", (24, 6, 0, 0), (21, 6, 3, 0), (18, 6, 6, 0), (15, 6, 9, 0), (12, 6, 12, 0)),
    **{f"hard_{percent:02}": Setting(hard=percent / 100) for percent in (0, 10, 20)},
    **{f"labels_{labels}": Setting(labels=labels) for labels in (3, 5, 7, 9)},
}
"""The configurations of STABLEVAL's Tables 4, 6 and 7, by the names used there. `gaps_wide`, `hard_20` and `labels_5`
are equal, and so are `adv_00` and `strict_20`."""


def recovery(
    settings: Mapping[str, Setting], seeds: Sequence[int], jobs: int = 1, report: Report | None = None
) -> dict[str, MethodFigures]:
    """Return the recovery by majority vote (ties to the highest class), hard Dawid-Skene and STABLEVAL, by setting.

    The figures are the mean squared error of the agents' scores (`mse`), the share of pairs of agents in their true
    order (`accuracy`), and `tau_b` with the true order. The latter two methods share one estimate by preset
    `paper-synthetic`, as in the paper.

    Args:
        settings: by name; equal settings are simulated once.
        seeds: one evaluation for each.
        jobs: number of processes.
        report: called with 1 after each evaluation.
    """
    runs = [(setting, seed) for setting in dict.fromkeys(settings.values()) for seed in seeds]
    figures_by_run = dict(zip(runs, run_each(_measure_run, runs, jobs, report), strict=True))
    return {
        name: MethodFigures(METHODS, FIGURES, np.array([figures_by_run[setting, seed] for seed in seeds]))
        for name, setting in settings.items()
    }


def _measure_run(run: tuple[Setting, int]) -> Floats:
    """Return the figures of one evaluation, [M,3]."""
    simulated = stableval(*run)
    true = simulated.true_scores
    scores = scores_by_method(simulated, np.ones(len(simulated.item), dtype=np.bool_))
    return np.array(
        [
            [np.mean((estimated - true) ** 2), pair_order_accuracy(estimated, true), tau_b(true, estimated)]
            for estimated in scores
        ]
    )


def scores_by_method(simulated: SimulatedEvaluation, kept: Bools) -> list[Floats]:
    """Return the agents' scores by the rows that are `kept`, at least one per item: [agents], by method."""
    rows = simulated.item[kept], simulated.annotator[kept], simulated.label[kept]
    fitted = consensus.fit(*rows, preset="paper-synthetic", n_classes=CLASSES)
    majority = consensus.majority_vote(*rows, ties="highest", classes=range(CLASSES))
    return [simulated.scores(method.posterior) for method in (majority, fitted.hard_labels(), fitted)]


def pair_order_accuracy(scores: Floats, true: Floats) -> float:
    """Return the share of pairs that are in the true order; a tie on one side only counts half."""
    one, other = (np.sign(np.subtract.outer(each, each))[np.triu_indices(len(each), 1)] for each in (scores, true))
    return float(np.where(one == other, 1.0, np.where(one * other == 0.0, 0.5, 0.0)).mean())
