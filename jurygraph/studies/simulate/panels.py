"""Small panels, all of whose annotators label every item: where the model recovers more than the majority, and where
less."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import Credited
from jurygraph.aggregation.consensus.repeating import every
from jurygraph.aggregation.consensus.stability import tau_b
from jurygraph.errors import PlanError
from jurygraph.studies.simulate.generator import Simulated, stableval
from jurygraph.studies.simulate.measured import Measured
from jurygraph.studies.simulate.setting import CLASSES, Floats, Setting

QUALITIES = (0.85, 0.70, 0.55, 0.35, 0.20)
FIGURES = ("accuracy", "mse", "tau_b")


class Panel(NamedTuple):
    """How many annotators, and how many items each of them labels."""

    annotators: int
    items: int


class Prior(NamedTuple):
    """Dirichlet α of each row of a confusion, and of the class shares."""

    confusion: float
    mu: float


PANELS = tuple(Panel(annotators, items) for annotators in (3, 5, 9) for items in (50, 200, 1000))


def setting(panel: Panel) -> Setting:
    """Five agents with a fifth of the items each; the annotators are drawn, for each seed, from the paper's pool of 18
    normal, 6 strict, 4 lenient and 2 adversarial ones. PlanError where items do not divide by five."""
    items, left = divmod(panel.items, len(QUALITIES))
    if left:
        raise PlanError(f"{panel.items} items are not alike many for each of {len(QUALITIES)} agents")
    return Setting(qualities=QUALITIES, items=items, annotators=panel.annotators, labels=panel.annotators)


def small_panels(
    panels: Sequence[Panel],
    seeds: Sequence[int],
    priors: Mapping[str, Prior],
    jobs: int = 1,
) -> dict[Panel, Measured]:
    """What `majority` (ties shared), hard `dawid-skene` and `stableval` by preset `converged` recover, by panel.

    The figures are the share of items whose class is named rightly (`accuracy`; a tie that n classes share is 1/n
    right), the mean squared error of the agents' scores (`mse`), and `tau_b` of their order with the true one, 0 where
    all agents are alike.

    Args:
        panels: sizes.
        seeds: one evaluation of each size for each.
        priors: further estimates by `converged` with other priors, by name.
        jobs: processes.
    """
    runs = [(panel, seed, tuple(priors.values())) for panel in panels for seed in seeds]
    found = every(_recovered, runs, jobs)
    methods = ("majority", "dawid-skene", "stableval", *priors)
    return {
        panel: Measured(methods, FIGURES, np.array(found[place * len(seeds) : (place + 1) * len(seeds)]))
        for place, panel in enumerate(panels)
    }


def _recovered(run: tuple[Panel, int, tuple[Prior, ...]]) -> Floats:
    """The figures of one evaluation, [M,3]."""
    panel, seed, priors = run
    drawn = stableval(setting(panel), seed)
    rows = drawn.item, drawn.annotator, drawn.label
    fitted = consensus.fit(*rows, n_classes=CLASSES)
    others = [
        consensus.fit(*rows, n_classes=CLASSES, prior_confusion=prior.confusion, prior_mu=prior.mu) for prior in priors
    ]
    voted = consensus.majority_vote(*rows, classes=range(CLASSES))
    return np.array([_figures(drawn, one) for one in (voted, fitted.hard(), fitted, *others)])


def _figures(drawn: Simulated, found: Credited) -> tuple[float, ...]:
    scores, true = drawn.scores(found.posterior), drawn.true_scores
    leads = found.posterior == found.posterior.max(axis=1, keepdims=True)
    right = (leads / leads.sum(axis=1, keepdims=True))[np.arange(len(drawn.truth)), drawn.truth]
    return float(right.mean()), float(np.mean((scores - true) ** 2)), float(np.nan_to_num(tau_b(true, scores)))
