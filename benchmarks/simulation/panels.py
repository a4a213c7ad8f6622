"""Small panels whose annotators all label every item: does the model recover more than the majority?"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.simulation.method_figures import MethodFigures
from benchmarks.simulation.processes import run_each
from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import ItemPosteriors
from jurygraph.aggregation.consensus.fitting import tau_b
from jurygraph.arrays import Floats
from jurygraph.errors import PlanError
from jurygraph.studies.simulate import (
    CLASS_COUNT,
    SimulatedEvaluation,
    SimulationSetting,
    stableval,
)

QUALITIES = (0.85, 0.70, 0.55, 0.35, 0.20)
FIGURES = ("accuracy", "mse", "tau_b")


class Panel(NamedTuple):
    """Number of annotators, and number of items that each of them labels."""

    annotators: int
    items: int


class Prior(NamedTuple):
    """Dirichlet α of each row of a confusion, and of the class shares."""

    confusion: float
    mu: float


PANELS = tuple(Panel(annotators, items) for annotators in (3, 5, 9) for items in (50, 200, 1000))


def setting(panel: Panel) -> SimulationSetting:
    """Return a setting of five agents with a fifth of the items each.

    The annotators are drawn, for each seed, from the paper's pool of 18 normal, 6 strict, 4 lenient and 2 adversarial
    ones. Raises PlanError if the items cannot be divided by five.
    """
    items, remainder = divmod(panel.items, len(QUALITIES))
    if remainder:
        raise PlanError(
            f"{panel.items} items are not alike many for each of {len(QUALITIES)} agents"
        )
    return SimulationSetting(
        qualities=QUALITIES, items=items, annotators=panel.annotators, labels=panel.annotators
    )


def small_panels(
    panels: Sequence[Panel],
    seeds: Sequence[int],
    priors: Mapping[str, Prior],
    jobs: int = 1,
) -> dict[Panel, MethodFigures]:
    """Return the recovery by `majority` (ties shared), hard `dawid-skene` and `stableval` by preset `converged`, by
    panel.

    The figures are the share of items with the right class (`accuracy`; a tie that n classes share is 1/n right), the
    mean squared error of the agents' scores (`mse`), and `tau_b` of their order with the true one, 0 if all agents are
    equal.

    Args:
        panels: sizes.
        seeds: for each seed, one evaluation of each size.
        priors: further estimates by `converged` with other priors, by name.
        jobs: number of processes.
    """
    runs = [(panel, seed, tuple(priors.values())) for panel in panels for seed in seeds]
    figures_by_run = run_each(_measure_run, runs, jobs)
    methods = ("majority", "dawid-skene", "stableval", *priors)
    return {
        panel: MethodFigures(
            methods,
            FIGURES,
            np.array(figures_by_run[index * len(seeds) : (index + 1) * len(seeds)]),
        )
        for index, panel in enumerate(panels)
    }


def _measure_run(run: tuple[Panel, int, tuple[Prior, ...]]) -> Floats:
    """Return the figures of one evaluation, [M,3]."""
    panel, seed, priors = run
    simulated = stableval(setting(panel), seed)
    rows = simulated.item, simulated.annotator, simulated.label
    fitted = consensus.fit(*rows, n_classes=CLASS_COUNT)
    with_priors = [
        consensus.fit(
            *rows, n_classes=CLASS_COUNT, prior_confusion=prior.confusion, prior_mu=prior.mu
        )
        for prior in priors
    ]
    majority = consensus.majority_vote(*rows, classes=range(CLASS_COUNT))
    return np.array(
        [
            _recovery_figures(simulated, estimate)
            for estimate in (majority, fitted.hard_labels(), fitted, *with_priors)
        ]
    )


def _recovery_figures(
    simulated: SimulatedEvaluation, estimate: ItemPosteriors
) -> tuple[float, ...]:
    scores, true = simulated.scores(estimate.posterior), simulated.true_scores
    is_leading = estimate.posterior == estimate.posterior.max(axis=1, keepdims=True)
    right = (is_leading / is_leading.sum(axis=1, keepdims=True))[
        np.arange(len(simulated.truth)), simulated.truth
    ]
    return (
        float(right.mean()),
        float(np.mean((scores - true) ** 2)),
        float(np.nan_to_num(tau_b(true, scores))),
    )
