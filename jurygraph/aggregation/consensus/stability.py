"""Stability of the ranking of agents: annotators are left out, and everything is estimated again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation.arrays import Bools, Floats, Ints
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
    """Stability of one method under subsets of annotators. The statistics may rank methods differently: report all.

    Attributes:
        tau_b: E[τ_b] between the ranking and that by all annotators (STABLEVAL, section 4); NaN if undefined for all
            subsets.
        rank_sd: standard deviation (ddof 1) of an agent's rank over the subsets, averaged over agents (Tables 9, 14,
            26).
        rank_range: largest minus smallest rank, averaged over agents.
        score_shift: mean |S_R'(a) - S_R(a)| over subsets and agents (Proposition 2).
        subsets: number of subsets drawn.
    """

    tau_b: float
    rank_sd: float
    rank_range: float
    score_shift: float
    subsets: int


@dataclass(frozen=True)
class _Scoring:
    """Scores one subset: scores [M,A'] by method and agent, NaN for an agent without an item in the subset."""

    votes: Votes
    agent: Ints
    agents: int
    settings: Settings
    values: Floats
    ties: Ties
    known: Ints

    def scores(self, kept: Bools) -> Floats:
        votes = self.votes.select_annotators(kept)
        index_of = {item: index for index, item in enumerate(self.votes.items)}
        items = [index_of[item] for item in votes.items]
        agent, known = self.agent[items], self.known[items]
        fitted = estimate(votes, self.settings, known)
        results = [vote(votes, self.ties, known), fitted.hard_labels(), fitted]
        size = np.bincount(agent, minlength=self.agents)
        sums = [np.bincount(agent, weights=result.posterior @ self.values, minlength=self.agents) for result in results]
        return np.array([np.where(size > 0, total / np.maximum(size, 1), np.nan) for total in sums])


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
    """Return, for each method, the stability of agents' rankings under random subsets of the annotators.

    Args:
        item, annotator, label, agent: row by row, as for `fit` and `agent_scores`.
        subsets: number of subsets, at least 2; drawn as in the published tables, by
            `RandomState(seed).choice(annotators in the order of appearance, int(fraction * R), replace=False)`.
        fraction: share of the annotators in a subset, in (0, 1].
        preset, classes, values: as for `fit` and `agent_scores`.
        ties: tie rule of the majority vote.
        gold: as for `fit`.
        jobs: number of processes.
        report: called with the number of subsets completed since the last call.

    Raises:
        PlanError: as for `fit`, or for an empty subset or fewer than two agents.
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
    kept = _draw_subsets(votes, subsets, fraction, seed)
    if len(grouping.agents) < 2:
        raise PlanError(f"there is one agent, {grouping.agents[0]!r}: a ranking needs two")
    whole = scoring.scores(np.ones(len(votes.annotators), dtype=np.bool_))
    scores = np.array(_score_distinct_subsets(scoring, kept, jobs, report))
    return {method: _stability(scores[:, place], whole[place]) for place, method in enumerate(METHODS)}


def _score_distinct_subsets(scoring: _Scoring, kept: list[Bools], jobs: int, report: Report | None) -> list[Floats]:
    """Return the scores of every subset; repeated subsets (common with few annotators) are scored only once."""
    index_of: dict[bytes, int] = {}
    index_of_subset = [index_of.setdefault(subset.tobytes(), len(index_of)) for subset in kept]
    scores = every(scoring.scores, [kept[index_of_subset.index(index)] for index in range(len(index_of))], jobs, report)
    if report is not None and len(kept) > len(scores):
        report(len(kept) - len(scores))
    return [scores[index] for index in index_of_subset]


def _draw_subsets(votes: Votes, subsets: int, fraction: float, seed: int) -> list[Bools]:
    count = len(votes.annotators)
    if subsets < 2:
        raise PlanError(f"subsets is {subsets}: at least 2 are needed")
    if not 0.0 < fraction <= 1.0:
        raise PlanError(f"fraction is {fraction}: more than 0 and at most 1 is needed")
    size = int(fraction * count)
    if size < 1:
        raise PlanError(f"a share of {fraction} of {count} annotators is nobody; take a larger fraction")
    if not 0 <= seed < 2**32:
        raise PlanError(f"seed is {seed}: a whole number from 0 to {2**32 - 1} is needed")
    rng = np.random.RandomState(seed)
    kept = np.zeros((subsets, count), dtype=np.bool_)
    for row in kept:
        row[rng.choice(count, size, replace=False)] = True
    return list(kept)


def _stability(scores: Floats, whole: Floats) -> Stability:
    """Return the statistics from scores [S,A] of subsets and [A] of all annotators.

    An agent counts in the subsets in which it has a score.
    """
    ranks = np.array([_ranks(row) for row in scores])
    is_ranked = np.isfinite(ranks)
    rank_count = is_ranked.sum(axis=0)
    mean = np.where(is_ranked, ranks, 0.0).sum(axis=0) / np.maximum(rank_count, 1)
    squares = np.where(is_ranked, (ranks - mean) ** 2, 0.0).sum(axis=0)
    has_spread = rank_count > 1
    sd = np.sqrt(squares[has_spread] / (rank_count[has_spread] - 1))
    has_rank = rank_count > 0
    spread = (
        np.where(is_ranked, ranks, -np.inf).max(axis=0)[has_rank]
        - np.where(is_ranked, ranks, np.inf).min(axis=0)[has_rank]
    )
    taus = [tau for tau in (tau_b(whole, row) for row in scores) if not np.isnan(tau)]
    shift = np.abs(scores - whole)[is_ranked]
    return Stability(
        tau_b=float(np.mean(taus)) if taus else float("nan"),
        rank_sd=float(sd.mean()) if len(sd) else float("nan"),
        rank_range=float(spread.mean()) if len(spread) else float("nan"),
        score_shift=float(shift.mean()) if len(shift) else float("nan"),
        subsets=len(scores),
    )


def _ranks(scores: Floats) -> Floats:
    """Return average ranks, 1 for the largest; NaN for NaN."""
    is_valid = np.isfinite(scores)
    finite = scores[is_valid]
    ranks = np.full(len(scores), np.nan)
    ordered = np.sort(-finite)
    ranks[is_valid] = (np.searchsorted(ordered, -finite, "left") + np.searchsorted(ordered, -finite, "right") + 1) / 2.0
    return ranks


def tau_b(first: Floats, second: Floats) -> float:
    """Return Kendall's τ_b over the entries that both have; NaN if one of them has no two different values."""
    both = np.isfinite(first) & np.isfinite(second)
    signs, other_signs = (np.sign(np.subtract.outer(each[both], each[both])) for each in (first, second))
    size = np.sqrt(float((signs * signs).sum()) * float((other_signs * other_signs).sum()))
    return float((signs * other_signs).sum() / size) if size else float("nan")
