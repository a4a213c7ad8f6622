"""Stability of rankings when each item keeps fewer of its labels (STABLEVAL, Table 5)."""

from collections.abc import Sequence

import numpy as np

from jurygraph.aggregation.consensus.resampling import METHODS, Report, run_each, tau_b
from jurygraph.arrays import Floats
from jurygraph.errors import PlanError
from jurygraph.studies.simulate.figures import MethodFigures
from jurygraph.studies.simulate.generator import Setting, stableval
from jurygraph.studies.simulate.recovery import scores_by_method

DRAWS = 10


def measure_thinning(
    setting: Setting, kept: int, seeds: Sequence[int], jobs: int = 1, report: Report | None = None
) -> MethodFigures:
    """Return the mean `tau_b` of the ranking by all labels and that by `kept` labels of each item, over ten draws.

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
    return MethodFigures(METHODS, ("tau_b",), np.array(run_each(_measure_run, runs, jobs, report))[:, :, None])


def _measure_run(run: tuple[Setting, int, int]) -> Floats:
    """Return the mean τ_b of each method, [M]."""
    setting, kept, seed = run
    simulated = stableval(setting, seed)
    generator = np.random.default_rng([seed, kept])
    full_scores = scores_by_method(simulated, np.ones(len(simulated.item), dtype=np.bool_))
    taus = []
    for _ in range(DRAWS):
        rows = generator.random((len(simulated.truth), setting.labels)).argsort(axis=1).ravel() < kept
        taus.append([tau_b(*pair) for pair in zip(full_scores, scores_by_method(simulated, rows), strict=True)])
    return np.asarray(np.mean(taus, axis=0))
