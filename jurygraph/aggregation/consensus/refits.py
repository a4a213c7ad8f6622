"""Intervals that include the uncertainty of the confusions: items are resampled, and everything is refitted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation.arrays import Floats, Ints
from jurygraph.aggregation.consensus.agents import AgentScore, grouped_by_agent
from jurygraph.aggregation.consensus.fitting import fit_patterns
from jurygraph.aggregation.consensus.patterns import Patterns, patterns
from jurygraph.aggregation.consensus.repeating import Report, every
from jurygraph.aggregation.consensus.result import Consensus, credit_values, read_cells
from jurygraph.aggregation.consensus.votes import Key
from jurygraph.errors import PlanError

Interval = tuple[float, float]
PUBLISHED_RESAMPLES = 10
PUBLISHED_SEED = 42


class Refits(NamedTuple):
    """95 % intervals over resamples: of agents' scores, and of annotators' accuracy, leniency and strictness."""

    agents: Mapping[Key, AgentScore]
    annotators: Mapping[Key, tuple[Interval, Interval, Interval]]


@dataclass(frozen=True)
class _Refit:
    """Refits one resample. `whole` is the estimate of all items, `start` the estimate from which each refit begins."""

    whole: Consensus
    start: Consensus | None
    rows: Patterns
    agent: Ints
    values: Floats

    def estimates(self, times: Ints) -> Floats:
        """Return scores of agents [G], then accuracy, leniency and strictness of annotators, [G+3A].

        `times` [N] is how often each item was drawn. Agents and annotators that are not in the resample are NaN.
        """
        votes, k = self.whole.votes, len(self.whole.classes)
        labelled = self.rows.pattern_of_item >= 0
        weight = np.zeros(len(self.rows.weight))
        np.add.at(weight, self.rows.pattern_of_item[labelled], times[labelled])
        rows = self.rows.with_weights(weight)
        fitted = fit_patterns(votes, rows, self.whole.settings, self.whole.gold, self.start)
        credit = self.values @ fitted.posterior
        size = np.bincount(self.agent, weights=times)
        sums = np.bincount(
            self.agent, weights=times * credit[rows.pattern_of_item]
        )  # items of no pattern are drawn 0 times
        confusion = fitted.model.confusion.reshape(k, -1, k)
        labels = np.bincount(rows.code // k, minlength=confusion.shape[1])
        quality = np.array([cells.mean(axis=1) for cells in read_cells(confusion.transpose(1, 0, 2))])
        quality[:, labels == 0] = np.nan
        return np.concatenate([np.where(size > 0, sums / np.maximum(size, 1.0), np.nan), quality.ravel()])


def refit_intervals(
    fitted: Consensus,
    agent: ArrayLike,
    *,
    values: ArrayLike | None = None,
    resamples: int = 200,
    seed: int = 0,
    prompt: ArrayLike | None = None,
    as_published: bool = False,
    jobs: int = 1,
    report: Report | None = None,
) -> Refits:
    """Return 95 % intervals that include the uncertainty of confusions estimated from the same items.

    `agent_scores` leaves that uncertainty out.

    Args:
        fitted: the estimate of all items; each resample is fitted with its settings and starts from its result.
        agent, values, prompt: as for `agent_scores`.
        resamples: number of resamples, at least 2.
        seed: seed of the resamples.
        as_published: resample as the authors did: 10 resamples of `RandomState(42)` in which an item counts once
        however
            often it is drawn, each fitted from the usual start. The samples are smaller, and so the intervals are not
            centred on the score.
        jobs: number of processes.
        report: called with 1 after each resample.

    Raises:
        PlanError: as for `agent_scores`, or fewer than two resamples.
    """
    if resamples < 2:
        raise PlanError(f"resamples is {resamples}: at least 2 are needed")
    grouping = grouped_by_agent(fitted.votes, agent, prompt)
    credit_by_class = credit_values(fitted.votes, values)
    rows = patterns(fitted.votes, fitted.gold + 1)
    work = _Refit(fitted, None if as_published else fitted, rows, grouping.agent, credit_by_class)
    times = _published_resamples(fitted) if as_published else _draw_resamples(fitted, grouping.prompt, resamples, seed)
    samples = np.array(every(work.estimates, times, jobs, report))
    is_sampled = np.isfinite(samples).any(axis=0)  # an agent or annotator in no resample has no interval
    ends = np.full((2, samples.shape[1]), np.nan)
    ends[:, is_sampled] = np.nanpercentile(samples[:, is_sampled], [2.5, 97.5], axis=0)
    low, high = ends.tolist()
    scores = fitted.agent_scores(agent, values, bootstrap=0)
    agents = {
        name: scores[name]._replace(low=low[index], high=high[index])
        for index, name in enumerate(grouping.agents)
        if name in scores
    }
    agent_count = len(grouping.agents)
    return Refits(agents, _annotator_intervals(fitted, low[agent_count:], high[agent_count:]))


def _annotator_intervals(
    fitted: Consensus, low: list[float], high: list[float]
) -> Mapping[Key, tuple[Interval, Interval, Interval]]:
    count = len(fitted.votes.annotators)
    ends = list(zip(low, high, strict=True))
    return {
        name: (ends[index], ends[count + index], ends[2 * count + index])
        for index, name in enumerate(fitted.votes.annotators)
    }


def _published_resamples(fitted: Consensus) -> list[Ints]:
    rng, count = np.random.RandomState(PUBLISHED_SEED), len(fitted.items)
    drawn = [rng.choice(count, count, replace=True) for _ in range(PUBLISHED_RESAMPLES)]
    return [np.minimum(np.bincount(items, minlength=count), 1) * fitted.votes.has_label for items in drawn]


def _draw_resamples(fitted: Consensus, prompt: Ints, resamples: int, seed: int) -> list[Ints]:
    rng = np.random.default_rng(seed)
    count = int(prompt.max()) + 1
    drawn = (np.bincount(rng.integers(count, size=count), minlength=count) for _ in range(resamples))
    return [times[prompt] * fitted.votes.has_label for times in drawn]
