"""Coverage of 95 % credible intervals: how often those of the sampled posterior contain the true value.

- `true credit`: the mean credit of an agent's items by their true classes.
- `population`: the same of the population that the items are drawn from.
- `annotators`: an annotator's accuracy, the mean diagonal of its confusion of the average item.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.simulation.coverage import mean_confusions
from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus.resampling import Report, run_each
from jurygraph.arrays import Floats
from jurygraph.inference.bootstrap import QUANTILES
from jurygraph.studies.simulate import CLASSES, VALUES, Setting, stableval
from jurygraph.studies.simulate.figures import MethodFigures

QUALITIES = {"wide": Setting().qualities, "tight": (0.75, 0.70, 0.65, 0.60, 0.55, 0.50)}
SETTINGS = {
    **{name: Setting(qualities=qualities) for name, qualities in QUALITIES.items()},
    **{f"{labels} labels": Setting(labels=labels) for labels in (3, 7, 9)},
    "0 % adversarial": Setting(pool=(20, 6, 4, 0)),
    "40 % adversarial": Setting(pool=(11, 4, 3, 12)),
    "40 % strict": Setting(pool=(14, 12, 4, 0)),
    "40 % lenient": Setting(pool=(12, 6, 12, 0)),
    "no hard items": Setting(hard=0.0),
}
FIGURES = ("true credit", "population", "annotators", "width", "population's width", "R-hat", "effective draws")


class Chains(NamedTuple):
    """Number of chains, and of the draws that each keeps."""

    chains: int = 4
    draws: int = 1000


def credible_coverage(
    setting: Setting, seeds: Sequence[int], chains: Chains, jobs: int = 1, report: Report | None = None
) -> MethodFigures:
    """Return the share of credible intervals that contain the true value, and their width, by seed."""
    runs = [(setting, seed, chains) for seed in seeds]
    return MethodFigures(("gibbs",), FIGURES, np.array(run_each(_measure_run, runs, jobs, report))[:, None])


def _measure_run(run: tuple[Setting, int, Chains]) -> Floats:
    """Return the figures of one evaluation, [figures]."""
    setting, seed, (chains, draws) = run
    simulated = stableval(setting, seed)
    rows = simulated.item, simulated.annotator, simulated.label, simulated.agent
    sampled = consensus.sample(*rows, classes=range(CLASSES), chains=chains, draws=draws, seed=seed)
    scores, quality = sampled.credible_scores(), sampled.annotators()
    these = np.array([(scores[agent].low, scores[agent].high) for agent in range(len(setting.qualities))])
    population = np.array([(one.population_low, one.population_high) for _, one in sorted(scores.items())])
    accuracy = np.quantile(sampled.rates[:, :, 0], QUANTILES, axis=(0, 1)).T
    diagonal = np.einsum("acc->a", mean_confusions(simulated)) / CLASSES
    mixing = sampled.mixing()
    return np.array(
        [
            _coverage_rate(these, simulated.true_scores),
            _coverage_rate(population, setting.shares @ VALUES),
            _coverage_rate(accuracy, diagonal[list(quality)]),
            np.ptp(these, axis=1).mean(),
            np.ptp(population, axis=1).mean(),
            np.nan if mixing.r_hat is None else mixing.r_hat,
            np.nan if mixing.bulk_ess is None else mixing.bulk_ess,
        ]
    )


def _coverage_rate(bounds: Floats, true: Floats) -> float:
    return float(((bounds[:, 0] <= true) & (true <= bounds[:, 1])).mean())
