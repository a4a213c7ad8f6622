"""How often 95 % intervals hold what they are of.

An agent's score is of the mean expected credit over the population that its items are drawn from. Three readings of it:

- `as fitted`: by the estimated confusions as they are. It is what the item bootstrap is of.
- `true confusions`: by the model with the true class shares and confusions. An item's ambiguity is not known to the
  model, so these are the mean ones, (1-E[d])·π + E[d]/3.
- `true credit`: of the true classes. Expected credit by one prior for all agents draws them together, so it is another.

The first two are computed on many further items of the same agents and annotators, as their difference from the true
credit, whose mean is known. An annotator's accuracy is of the mean diagonal of its mean confusion.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import Consensus
from jurygraph.aggregation.consensus.repeating import Report, every
from jurygraph.studies.simulate.generator import AMBIGUITY, Simulated, more_items, stableval
from jurygraph.studies.simulate.measured import Measured
from jurygraph.studies.simulate.setting import CLASSES, VALUES, Floats, Setting

INTERVALS = ("items", "refits", "published")
FIGURES = ("as fitted", "true confusions", "true credit", "width", "annotators", "annotators' width")


class Effort(NamedTuple):
    """Resamples of the items, refits, and further items of each agent from which true values are computed."""

    resamples: int = 1000
    refits: int = 200
    population: int = 20_000


def coverage(
    setting: Setting, seeds: Sequence[int], effort: Effort, jobs: int = 1, report: Report | None = None
) -> Measured:
    """The share of intervals that hold the true value, and how wide they are, by preset `converged`.

    Agents' intervals are `agent_scores`' (`items`) and `refit_intervals`' (`refits`, and `published`: 10 de-duplicated
    resamples). Annotators' are, in the first row, those of `annotators()`.
    """
    runs = [(setting, seed, effort) for seed in seeds]
    return Measured(INTERVALS, FIGURES, np.array(every(_covered, runs, jobs, report)))


class _Ends(NamedTuple):
    """Intervals [M,2], of agents and of annotators."""

    agents: Floats
    annotators: Floats


def _covered(run: tuple[Setting, int, Effort]) -> Floats:
    """The figures of one evaluation, [intervals, figures]."""
    setting, seed, effort = run
    drawn = stableval(setting, seed)
    fitted = consensus.fit(drawn.item, drawn.annotator, drawn.label, n_classes=CLASSES)
    true = _true_values(drawn, fitted, more_items(drawn, effort.population, seed))
    diagonal = np.einsum("acc->a", mean_confusions(drawn)) / CLASSES
    accuracy = diagonal[list(fitted.votes.annotators)]
    return np.array([_figures(ends, true, accuracy) for ends in _intervals(drawn, fitted, effort)])


def _figures(ends: _Ends, true: tuple[Floats, ...], accuracy: Floats) -> list[float]:
    agents = [*(_held(ends.agents, one) for one in true), _wide(ends.agents)]
    return [*agents, _held(ends.annotators, accuracy), _wide(ends.annotators)]


def _intervals(drawn: Simulated, fitted: Consensus, effort: Effort) -> list[_Ends]:
    scores = fitted.agent_scores(drawn.agent, bootstrap=effort.resamples)
    refits = [
        consensus.refit_intervals(fitted, drawn.agent, resamples=effort.refits, published=published)
        for published in (False, True)
    ]
    plain = [one.accuracy_interval for one in fitted.annotators().values()]
    of_agents = [scores, *(one.agents for one in refits)]
    of_annotators = [plain, *([accuracy for accuracy, *_ in one.annotators.values()] for one in refits)]
    return [
        _Ends(np.array([(one.low, one.high) for one in agents.values()]), np.array(annotators))
        for agents, annotators in zip(of_agents, of_annotators, strict=True)
    ]


def _true_values(drawn: Simulated, fitted: Consensus, further: Simulated) -> tuple[Floats, ...]:
    """The agents' mean expected credit in the three readings, [agents] each."""
    credit = drawn.setting.shares @ VALUES
    rows = further.item, further.annotator, further.label
    applied = further.scores(fitted.apply(*rows).posterior)
    shift = credit - further.true_scores
    return applied + shift, further.scores(known_posterior(further)) + shift, credit


def mean_confusions(drawn: Simulated) -> Floats:
    """How each annotator labels the items of the population, [A,3,3]: π blurred by their mean ambiguity."""
    hard = drawn.setting.hard
    blurred = hard * AMBIGUITY["hard"] + (1.0 - hard) * AMBIGUITY["clear"]
    return (1.0 - blurred) * drawn.confusions + blurred / CLASSES


def known_posterior(drawn: Simulated) -> Floats:
    """The model's posterior of each item where shares and confusions are the true ones, [N,3]."""
    likelihood = np.log(mean_confusions(drawn))[drawn.annotator, :, drawn.label]
    joint = likelihood.reshape(len(drawn.truth), -1, CLASSES).sum(axis=1) + np.log(drawn.setting.shares.mean(axis=0))
    joint = np.exp(joint - joint.max(axis=1, keepdims=True))
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def _held(ends: Floats, true: Floats) -> float:
    return float(((ends[:, 0] <= true) & (true <= ends[:, 1])).mean())


def _wide(ends: Floats) -> float:
    return float((ends[:, 1] - ends[:, 0]).mean())
