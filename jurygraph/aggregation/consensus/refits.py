"""Intervals that also count how unsure the confusions are: items are drawn anew, and everything is estimated anew."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation._inputs import FloatArray, IndexArray
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
    """95 % intervals of resamples: of each agent's score, and of each annotator's accuracy, leniency and strictness."""

    agents: Mapping[Key, AgentScore]
    annotators: Mapping[Key, tuple[Interval, Interval, Interval]]


@dataclass(frozen=True)
class _Refit:
    """What is done with each resample. `whole` is the estimate of all items, `start` what each begins from."""

    whole: Consensus
    start: Consensus | None
    rows: Patterns
    agent: IndexArray
    values: FloatArray

    def figures(self, times: IndexArray) -> FloatArray:
        """Scores of agents [G], then accuracy, leniency and strictness of annotators, [G+3A], from how often each item
        is drawn [N]; NaN for whoever is not in the resample."""
        votes, k = self.whole.votes, len(self.whole.classes)
        labelled = self.rows.of >= 0
        weight = np.zeros(len(self.rows.weight))
        np.add.at(weight, self.rows.of[labelled], times[labelled])
        rows = self.rows.weighed(weight)
        fitted = fit_patterns(votes, rows, self.whole.settings, self.whole.gold, self.start)
        credit = self.values @ fitted.posterior
        size = np.bincount(self.agent, weights=times)
        sums = np.bincount(self.agent, weights=times * credit[rows.of])  # 0 times where an item is of no pattern
        confusion = fitted.model.confusion.reshape(k, -1, k)
        labels = np.bincount(rows.code // k, minlength=confusion.shape[1])
        own = np.array([one.mean(axis=1) for one in read_cells(confusion.transpose(1, 0, 2))])
        own[:, labels == 0] = np.nan
        return np.concatenate([np.where(size > 0, sums / np.maximum(size, 1.0), np.nan), own.ravel()])


def refit_intervals(
    fitted: Consensus,
    agent: ArrayLike,
    *,
    values: ArrayLike | None = None,
    resamples: int = 200,
    seed: int = 0,
    prompt: ArrayLike | None = None,
    published: bool = False,
    jobs: int = 1,
    report: Report | None = None,
) -> Refits:
    """95 % intervals that count what `agent_scores` leaves out: that the confusions were estimated from the same items.

    Args:
        fitted: of all items; each resample is fitted by its settings, from where it ended.
        agent, values, prompt: as for `agent_scores`.
        resamples: how many, at least 2.
        seed: of the resamples.
        published: as the authors drew theirs: 10 resamples of `RandomState(42)` in which an item counts once however
            often it is drawn, each fitted from the start. They are of smaller samples, and so not centred on the score.
        jobs: processes.
        report: called with 1 after each resample.

    Raises:
        PlanError: as `agent_scores`, or fewer than two resamples.
    """
    if resamples < 2:
        raise PlanError(f"resamples is {resamples}: at least 2 are needed")
    grouping = grouped_by_agent(fitted.votes, agent, prompt)
    worth = credit_values(fitted.votes, values)
    rows = patterns(fitted.votes, fitted.gold + 1)
    work = _Refit(fitted, None if published else fitted, rows, grouping.agent, worth)
    times = _published(fitted) if published else _drawn(fitted, grouping.prompt, resamples, seed)
    found = np.array(every(work.figures, times, jobs, report))
    there = np.isfinite(found).any(axis=0)  # who is in no resample has no interval
    ends = np.full((2, found.shape[1]), np.nan)
    ends[:, there] = np.nanpercentile(found[:, there], [2.5, 97.5], axis=0)
    low, high = ends.tolist()
    scores = fitted.agent_scores(agent, values, bootstrap=0)
    agents = {
        one: scores[one]._replace(low=low[place], high=high[place])
        for place, one in enumerate(grouping.agents)
        if one in scores
    }
    many = len(grouping.agents)
    return Refits(agents, _of_annotators(fitted, low[many:], high[many:]))


def _of_annotators(
    fitted: Consensus, low: list[float], high: list[float]
) -> Mapping[Key, tuple[Interval, Interval, Interval]]:
    many = len(fitted.votes.annotators)
    ends = list(zip(low, high, strict=True))
    return {
        one: (ends[place], ends[many + place], ends[2 * many + place])
        for place, one in enumerate(fitted.votes.annotators)
    }


def _published(fitted: Consensus) -> list[IndexArray]:
    draw, many = np.random.RandomState(PUBLISHED_SEED), len(fitted.items)
    drawn = [draw.choice(many, many, replace=True) for _ in range(PUBLISHED_RESAMPLES)]
    return [np.minimum(np.bincount(one, minlength=many), 1) * fitted.votes.labelled for one in drawn]


def _drawn(fitted: Consensus, prompt: IndexArray, resamples: int, seed: int) -> list[IndexArray]:
    draw = np.random.default_rng(seed)
    many = int(prompt.max()) + 1
    drawn = (np.bincount(draw.integers(many, size=many), minlength=many) for _ in range(resamples))
    return [times[prompt] * fitted.votes.labelled for times in drawn]
