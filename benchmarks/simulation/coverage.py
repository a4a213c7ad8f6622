"""Coverage of 95 % intervals: how often they contain the true value.

An agent's score estimates the mean expected credit over the population of its items. There are three true values:

- `as fitted`: by the estimated confusions as they are. The intervals without refits target this value.
- `true confusions`: by the model with the true class shares and confusions. The model does not know an item's
  ambiguity, so these are the mean confusions, (1-E[d])·π + E[d]/3.
- `true credit`: of the true classes. Expected credit uses one prior for all agents and shrinks them towards each other,
  so it differs from this value.

The first two are computed on many more items of the same agents and annotators, as the difference from the true credit,
whose mean is known. The true value of an annotator's accuracy is the mean diagonal of its mean confusion.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.simulation.method_figures import MethodFigures
from benchmarks.simulation.processes import Report, run_each
from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import Consensus
from jurygraph.aggregation.consensus.model import FitProblem, Model, encode
from jurygraph.arrays import Floats
from jurygraph.studies.simulate import (
    CLASS_COUNT,
    CLEAR_ITEM_AMBIGUITY_BETA,
    CREDIT_BY_CLASS,
    HARD_ITEM_AMBIGUITY_BETA,
    RATER_BEHAVIOURS,
    SimulatedEvaluation,
    SimulationSetting,
    simulate_with,
    stableval,
)

AMBIGUITY = {
    "clear": CLEAR_ITEM_AMBIGUITY_BETA[0] / sum(CLEAR_ITEM_AMBIGUITY_BETA),
    "hard": HARD_ITEM_AMBIGUITY_BETA[0] / sum(HARD_ITEM_AMBIGUITY_BETA),
}
"""Mean ambiguity of clear and of hard items."""
INTERVALS = ("items", "bootstrap", "refits", "published")
FIGURES = (
    "as fitted",
    "true confusions",
    "true credit",
    "width",
    "annotators",
    "annotators' width",
)


class CoverageSettings(NamedTuple):
    """Number of resamples of items, of refits, and of further items per agent for computing true values."""

    resamples: int = 1000
    refits: int = 200
    population: int = 20_000


def coverage(
    setting: SimulationSetting,
    seeds: Sequence[int],
    effort: CoverageSettings,
    jobs: int = 1,
    report: Report | None = None,
) -> MethodFigures:
    """Return the share of intervals that contain the true value, and their width, by preset `converged`.

    Agents' intervals are those of `agent_scores` (`items`: t; `bootstrap`: percentiles) and of `refit_intervals`
    (`refits`, and `published`: 10 de-duplicated resamples). Annotators have none of the first two: NaN.
    """
    runs = [(setting, seed, effort) for seed in seeds]
    return MethodFigures(INTERVALS, FIGURES, np.array(run_each(_measure_run, runs, jobs, report)))


class _Intervals(NamedTuple):
    """Intervals [M,2], of agents and of annotators."""

    agents: Floats
    annotators: Floats


def _measure_run(run: tuple[SimulationSetting, int, CoverageSettings]) -> Floats:
    """Return the figures of one evaluation, [intervals, figures]."""
    setting, seed, effort = run
    simulated = stableval(setting, seed)
    fitted = consensus.fit(
        simulated.item, simulated.annotator, simulated.label, n_classes=CLASS_COUNT
    )
    true = _true_values(simulated, fitted, simulate_more_items(simulated, effort.population, seed))
    diagonal = np.einsum("acc->a", mean_confusions(simulated)) / CLASS_COUNT
    accuracy = diagonal[list(fitted.votes.annotators)]
    return np.array(
        [
            _coverage_figures(bounds, true, accuracy)
            for bounds in _intervals(simulated, fitted, effort)
        ]
    )


def _coverage_figures(
    bounds: _Intervals, true: tuple[Floats, ...], accuracy: Floats
) -> list[float]:
    agents = [*(_coverage_rate(bounds.agents, one) for one in true), _mean_width(bounds.agents)]
    return [*agents, _coverage_rate(bounds.annotators, accuracy), _mean_width(bounds.annotators)]


def _intervals(
    simulated: SimulatedEvaluation, fitted: Consensus, effort: CoverageSettings
) -> list[_Intervals]:
    scores = [
        fitted.agent_scores(simulated.agent, bootstrap=effort.resamples, interval=kind)
        for kind in ("t", "bootstrap")
    ]
    refits = [
        consensus.refit_intervals(
            fitted, simulated.agent, resamples=effort.refits, as_published=published
        )
        for published in (False, True)
    ]
    unknown = np.full((len(fitted.votes.annotators), 2), np.nan)
    of_agents = [*scores, *(one.agents for one in refits)]
    of_annotators = [
        unknown,
        unknown,
        *([accuracy for accuracy, *_ in one.annotators.values()] for one in refits),
    ]
    return [
        _Intervals(np.array([(one.low, one.high) for one in agents.values()]), np.array(annotators))
        for agents, annotators in zip(of_agents, of_annotators, strict=True)
    ]


def _true_values(
    simulated: SimulatedEvaluation, fitted: Consensus, further: SimulatedEvaluation
) -> tuple[Floats, ...]:
    """Return the agents' mean expected credit in the three readings, [agents] each."""
    credit = simulated.setting.shares @ CREDIT_BY_CLASS
    rows = further.item, further.annotator, further.label
    fitted_scores = further.scores(_predict(fitted, *rows))
    shift = credit - further.true_scores
    return fitted_scores + shift, further.scores(known_posterior(further)) + shift, credit


def _predict(fitted: Consensus, item: ArrayLike, annotator: ArrayLike, label: ArrayLike) -> Floats:
    """Return the posterior of new items under the fitted confusions, [N,K]."""
    votes = encode(item, annotator, label, fitted.classes)
    place = [fitted.votes.annotators.index(name) for name in votes.annotators]
    model = Model(
        fitted.prior, fitted.confusion[place].transpose(1, 0, 2).reshape(len(fitted.prior), -1)
    )
    items = len(votes.items)
    problem = FitProblem(
        votes.matrix, votes.counts, np.ones(items), fitted.settings, np.full(items, -1)
    )
    return problem.e_step(model).posterior.T


def simulate_more_items(
    simulated: SimulatedEvaluation, items: int, seed: int
) -> SimulatedEvaluation:
    """Simulate other items of the same agents, `items` for each, labelled by the same annotators."""
    kinds = np.array([RATER_BEHAVIOURS.index(kind) for kind in simulated.rater_behaviours])
    return simulate_with(
        replace(simulated.setting, items=items), kinds, np.random.default_rng(seed)
    )


def mean_confusions(simulated: SimulatedEvaluation) -> Floats:
    """Return how each annotator labels items of the population, [A,3,3]: π blurred by the mean ambiguity."""
    hard = simulated.setting.hard
    blurred = hard * AMBIGUITY["hard"] + (1.0 - hard) * AMBIGUITY["clear"]
    return (1.0 - blurred) * simulated.confusions + blurred / CLASS_COUNT


def known_posterior(simulated: SimulatedEvaluation) -> Floats:
    """Return the model's posterior of each item with the true shares and confusions, [N,3]."""
    likelihood = np.log(mean_confusions(simulated))[simulated.annotator, :, simulated.label]
    joint = likelihood.reshape(len(simulated.truth), -1, CLASS_COUNT).sum(axis=1) + np.log(
        simulated.setting.shares.mean(axis=0)
    )
    joint = np.exp(joint - joint.max(axis=1, keepdims=True))
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def _coverage_rate(bounds: Floats, true: Floats) -> float:
    known = np.isfinite(bounds).all(axis=1)
    inside = (bounds[known, 0] <= true[known]) & (true[known] <= bounds[known, 1])
    return float(inside.mean()) if known.any() else float("nan")


def _mean_width(bounds: Floats) -> float:
    known = np.isfinite(bounds).all(axis=1)
    return float((bounds[known, 1] - bounds[known, 0]).mean()) if known.any() else float("nan")
