"""Recovery of the agents' true scores and of their order (STABLEVAL, Tables 4, 6 and 7), and the stability of their
order when each item keeps fewer of its labels (Table 5)."""

from collections.abc import Mapping, Sequence

import numpy as np

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import Credited
from jurygraph.aggregation.consensus.resampling import Report, run_each, tau_b
from jurygraph.arrays import Bools, Floats
from jurygraph.errors import PlanError
from jurygraph.studies.simulate.generator import CLASSES, VALUES, Setting, SimulatedEvaluation, stableval

FIGURES = ("mse", "accuracy", "tau_b")
DRAWS = 10
"""Draws of the labels that items keep, for each evaluation."""


def recovery(
    settings: Mapping[str, Setting], seeds: Sequence[int], jobs: int = 1, report: Report | None = None
) -> dict[str, Floats]:
    """Return the recovery by majority vote (ties to the highest class), hard Dawid-Skene and STABLEVAL, by setting.

    The axes are seeds, methods and `FIGURES`, [S,M,F]: the mean squared error of the agents' scores (`mse`), the share
    of pairs of agents in their true order (`accuracy`), and `tau_b` with the true order. The latter two methods share
    one estimate by preset `paper-synthetic`, as in the paper.

    Args:
        settings: by name; equal settings are simulated once.
        seeds: one evaluation for each.
        jobs: number of processes.
        report: called with 1 after each evaluation.
    """
    runs = [(setting, seed) for setting in dict.fromkeys(settings.values()) for seed in seeds]
    figures_by_run = dict(zip(runs, run_each(_measure_run, runs, jobs, report), strict=True))
    return {name: np.array([figures_by_run[setting, seed] for seed in seeds]) for name, setting in settings.items()}


def _measure_run(run: tuple[Setting, int]) -> Floats:
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
    """Return the agents' scores by the rows that are `kept`: [agents], by method."""
    rows = simulated.item[kept], simulated.annotator[kept], simulated.label[kept]
    fitted = consensus.fit(*rows, preset="paper-synthetic", n_classes=CLASSES)
    majority = consensus.majority_vote(*rows, ties="highest", classes=range(CLASSES))
    return [agent_means(simulated, estimate) for estimate in (majority, fitted.hard_labels(), fitted)]


def agent_means(simulated: SimulatedEvaluation, estimate: Credited) -> Floats:
    """Return the mean credit of each agent's items in an estimate, [agents]; each agent needs one."""
    agents = len(simulated.setting.qualities)
    agent = np.array(estimate.items) // simulated.setting.items
    credit = np.bincount(agent, weights=estimate.posterior @ VALUES, minlength=agents)
    return np.asarray(credit / np.bincount(agent, minlength=agents))


def pair_order_accuracy(scores: Floats, true: Floats) -> float:
    """Return the share of pairs that are in the true order; a tie on one side only counts half."""
    one, other = (np.sign(np.subtract.outer(each, each))[np.triu_indices(len(each), 1)] for each in (scores, true))
    return float(np.where(one == other, 1.0, np.where(one * other == 0.0, 0.5, 0.0)).mean())


def measure_thinning(
    setting: Setting, kept: int, seeds: Sequence[int], jobs: int = 1, report: Report | None = None
) -> Floats:
    """Return the mean τ_b of the ranking by all labels and that by `kept` labels of each item, over ten draws, [S,M].

    Args:
        setting: setting of the evaluations.
        kept: number of labels that each item keeps, at least 1 and fewer than it has.
        seeds: one evaluation for each.
        jobs: number of processes.
        report: called with 1 after each evaluation.

    Raises:
        PlanError: `kept` is out of range.
    """
    if not 1 <= kept < setting.labels:
        raise PlanError(f"kept is {kept}: at least 1 is needed, and fewer than the {setting.labels} labels of an item")
    runs = [(setting, kept, seed) for seed in seeds]
    return np.array(run_each(_measure_thinned, runs, jobs, report))


def _measure_thinned(run: tuple[Setting, int, int]) -> Floats:
    setting, kept, seed = run
    simulated = stableval(setting, seed)
    generator = np.random.default_rng([seed, kept])
    full_scores = scores_by_method(simulated, np.ones(len(simulated.item), dtype=np.bool_))
    taus = []
    for _ in range(DRAWS):
        rows = generator.random((len(simulated.truth), setting.labels)).argsort(axis=1).ravel() < kept
        taus.append([tau_b(*pair) for pair in zip(full_scores, scores_by_method(simulated, rows), strict=True)])
    return np.asarray(np.mean(taus, axis=0))
