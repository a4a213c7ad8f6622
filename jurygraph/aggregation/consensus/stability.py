"""How far the ranking of agents hangs on who labelled: annotators are left out, and everything is estimated anew."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation._inputs import BoolArray, FloatArray, IndexArray
from jurygraph.aggregation.consensus.agents import grouped_by_agent
from jurygraph.aggregation.consensus.em import Settings
from jurygraph.aggregation.consensus.fitting import Preset, estimate, settings
from jurygraph.aggregation.consensus.majority import Ties, vote
from jurygraph.aggregation.consensus.repeating import Report, every
from jurygraph.aggregation.consensus.result import credit_values
from jurygraph.aggregation.consensus.votes import Key, Votes, encode, known_classes
from jurygraph.errors import PlanError

Method = Literal["majority", "dawid-skene", "stableval"]
METHODS: tuple[Method, ...] = ("majority", "dawid-skene", "stableval")


class Stability(NamedTuple):
    """One method under subsets of annotators. The figures need not rank methods alike: report them all.

    Attributes:
        tau_b: E[τ_b] of the ranking against that by all annotators (STABLEVAL, section 4); NaN where no subset tells.
        rank_sd: standard deviation (ddof 1) of an agent's rank over the subsets, mean over agents (Tables 9, 14, 26).
        rank_range: greatest less least rank, mean over agents.
        score_shift: mean |S_R'(a) - S_R(a)| over subsets and agents (Proposition 2).
        subsets: how many were drawn.
    """

    tau_b: float
    rank_sd: float
    rank_range: float
    score_shift: float
    subsets: int


@dataclass(frozen=True)
class _Scoring:
    """What is done with each subset: scores [M,A'] by method and agent, NaN for an agent that has no item left."""

    votes: Votes
    agent: IndexArray
    agents: int
    settings: Settings
    values: FloatArray
    ties: Ties
    known: IndexArray

    def scores(self, kept: BoolArray) -> FloatArray:
        votes = self.votes.by(kept)
        places = {one: place for place, one in enumerate(self.votes.items)}
        own = [places[one] for one in votes.items]
        agent, known = self.agent[own], self.known[own]
        fitted = estimate(votes, self.settings, known)
        found = [vote(votes, self.ties, known), fitted.hard(), fitted]
        size = np.bincount(agent, minlength=self.agents)
        sums = [np.bincount(agent, weights=one.posterior @ self.values, minlength=self.agents) for one in found]
        return np.array([np.where(size > 0, one / np.maximum(size, 1), np.nan) for one in sums])


def ranking_stability(
    item: ArrayLike,
    annotator: ArrayLike,
    label: ArrayLike,
    agent: ArrayLike,
    *,
    subsets: int = 50,
    fraction: float = 0.7,
    seed: int = 42,
    preset: Preset = "converged",
    classes: Sequence[Key] | None = None,
    values: ArrayLike | None = None,
    ties: Ties = "first",
    gold: Mapping[Any, Any] | None = None,
    jobs: int = 1,
    report: Report | None = None,
) -> Mapping[Method, Stability]:
    """Rankings of agents by random subsets of the annotators, in four figures, for each method.

    Args:
        item, annotator, label, agent: row by row, as for `fit` and `agent_scores`.
        subsets: how many are drawn, at least 2: as the published tables drew them, by
            `RandomState(seed).choice(annotators in the order of appearance, int(fraction * R), replace=False)`.
        fraction: of the annotators in a subset, in (0, 1].
        preset, classes, values: as for `fit` and `agent_scores`.
        ties: of the majority vote.
        gold: as for `fit`.
        jobs: processes.
        report: called with the number of subsets that were done since.

    Raises:
        PlanError: as `fit`, or a subset that would be empty, or fewer than two agents.
    """
    votes = encode(item, annotator, label, classes)
    grouping = grouped_by_agent(votes, agent)
    scoring = _Scoring(
        votes,
        grouping.agent,
        len(grouping.agents),
        settings(preset),
        credit_values(votes, values),
        ties,
        known_classes(votes, gold or {}),
    )
    kept = _subsets(votes, subsets, fraction, seed)
    if len(grouping.agents) < 2:
        raise PlanError(f"there is one agent, {grouping.agents[0]!r}: a ranking needs two")
    whole = scoring.scores(np.ones(len(votes.annotators), dtype=np.bool_))
    scores = np.array(_each_once(scoring, kept, jobs, report))
    return {method: _stability(scores[:, place], whole[place]) for place, method in enumerate(METHODS)}


def _each_once(scoring: _Scoring, kept: list[BoolArray], jobs: int, report: Report | None) -> list[FloatArray]:
    """The scores of every subset; one that is drawn again, as those of a few annotators are, is not scored again."""
    places: dict[bytes, int] = {}
    of = [places.setdefault(one.tobytes(), len(places)) for one in kept]
    found = every(scoring.scores, [kept[of.index(place)] for place in range(len(places))], jobs, report)
    if report is not None and len(kept) > len(found):
        report(len(kept) - len(found))
    return [found[place] for place in of]


def _subsets(votes: Votes, subsets: int, fraction: float, seed: int) -> list[BoolArray]:
    everyone = len(votes.annotators)
    if subsets < 2:
        raise PlanError(f"subsets is {subsets}: at least 2 are needed")
    if not 0.0 < fraction <= 1.0:
        raise PlanError(f"fraction is {fraction}: more than 0 and at most 1 is needed")
    size = int(fraction * everyone)
    if size < 1:
        raise PlanError(f"a share of {fraction} of {everyone} annotators is nobody; take a larger fraction")
    if not 0 <= seed < 2**32:
        raise PlanError(f"seed is {seed}: a whole number from 0 to {2**32 - 1} is needed")
    draw = np.random.RandomState(seed)
    kept = np.zeros((subsets, everyone), dtype=np.bool_)
    for row in kept:
        row[draw.choice(everyone, size, replace=False)] = True
    return list(kept)


def _stability(scores: FloatArray, whole: FloatArray) -> Stability:
    """From scores [S,A] of subsets and those of all annotators [A]. An agent counts in the subsets that have it."""
    ranks = np.array([_ranks(one) for one in scores])
    there = np.isfinite(ranks)
    times = there.sum(axis=0)
    mean = np.where(there, ranks, 0.0).sum(axis=0) / np.maximum(times, 1)
    squares = np.where(there, (ranks - mean) ** 2, 0.0).sum(axis=0)
    ranked = times > 1
    sd = np.sqrt(squares[ranked] / (times[ranked] - 1))
    seen = times > 0
    spread = np.where(there, ranks, -np.inf).max(axis=0)[seen] - np.where(there, ranks, np.inf).min(axis=0)[seen]
    taus = [tau for tau in (tau_b(whole, one) for one in scores) if not np.isnan(tau)]
    shift = np.abs(scores - whole)[there]
    return Stability(
        tau_b=float(np.mean(taus)) if taus else float("nan"),
        rank_sd=float(sd.mean()) if len(sd) else float("nan"),
        rank_range=float(spread.mean()) if len(spread) else float("nan"),
        score_shift=float(shift.mean()) if len(shift) else float("nan"),
        subsets=len(scores),
    )


def _ranks(scores: FloatArray) -> FloatArray:
    """Average ranks, 1 for the greatest; NaN for NaN."""
    there = np.isfinite(scores)
    own = scores[there]
    ranks = np.full(len(scores), np.nan)
    above = np.sort(-own)
    ranks[there] = (np.searchsorted(above, -own, "left") + np.searchsorted(above, -own, "right") + 1) / 2.0
    return ranks


def tau_b(first: FloatArray, second: FloatArray) -> float:
    """Kendall's τ_b over the entries that both have; NaN where one of them puts all alike."""
    both = np.isfinite(first) & np.isfinite(second)
    one, other = (np.sign(np.subtract.outer(each[both], each[both])) for each in (first, second))
    size = np.sqrt(float((one * one).sum()) * float((other * other).sum()))
    return float((one * other).sum() / size) if size else float("nan")
