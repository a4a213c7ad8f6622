"""Estimates on parts of the votes: stability of rankings without some annotators, intervals from resampled items."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import compress
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation.consensus.em import FitSettings
from jurygraph.aggregation.consensus.fitting import Preset, fit_patterns, settings_with
from jurygraph.aggregation.consensus.majority import Ties, vote
from jurygraph.aggregation.consensus.result import (
    AgentScore,
    AnnotatorQuality,
    Bounds,
    Consensus,
    Grouping,
    IntervalKind,
    credit_values,
    grouped_by_agent,
    read_cells,
    score_agents,
    t_bounds,
)
from jurygraph.aggregation.consensus.votes import Key, Patterns, Votes, encode, known_classes, patterns
from jurygraph.arrays import Bools, Floats, Ints
from jurygraph.errors import PlanError
from jurygraph.inference.bootstrap import QUANTILES, draw_clusters

Argument = TypeVar("Argument")
Result = TypeVar("Result")
Report = Callable[[int], None]
Interval = tuple[float, float]
_Draw = tuple[Bools, Ints]
"""The annotators to keep, [A], and how often each item counts, [N]."""
Method = Literal["majority", "dawid-skene", "stableval"]
METHODS: tuple[Method, ...] = ("majority", "dawid-skene", "stableval")
PUBLISHED_RESAMPLES = 10
PUBLISHED_SEED = 42
MOST_STEPS = 500
"""Most steps for a resample of items and annotators. MT-Bench takes 234; one or two annotators may take 10,000, and
there the model has no unique optimum to reach."""
_COMPARED_DECIMALS = 12


class Stability(NamedTuple):
    """Stability of one method under resampling. The statistics may rank methods differently: report all.

    Attributes:
        tau_b: E[τ_b] between the ranking and that by all annotators (STABLEVAL, section 4); NaN if undefined for all
            resamples.
        rank_sd: standard deviation (ddof 1) of an agent's rank over the resamples, averaged over agents (Tables 9, 14,
            26).
        rank_range: largest minus smallest rank, averaged over agents.
        score_shift: mean |S_R'(a) - S_R(a)| over resamples and agents (Proposition 2).
        subsets: number of resamples.
        ranks: P(rank = 1 … A) of each agent that any resample has. Agents with equal scores share their ranks.
    """

    tau_b: float
    rank_sd: float
    rank_range: float
    score_shift: float
    subsets: int
    ranks: Mapping[Key, tuple[float, ...]]


def ranking_stability(
    item: ArrayLike,
    annotator: ArrayLike,
    label: ArrayLike,
    agent: ArrayLike,
    *,
    subsets: int = 50,
    fraction: float = 0.7,
    seed: int = 42,
    with_items: bool = False,
    prompt: ArrayLike | None = None,
    preset: Preset = "converged",
    classes: Sequence[Key] | None = None,
    values: ArrayLike | None = None,
    ties: Ties = "first",
    gold: Mapping[Any, Any] | None = None,
    jobs: int = 1,
    report: Report | None = None,
) -> Mapping[Method, Stability]:
    """Return, for each method, the stability of agents' rankings under random subsets of the annotators.

    On the same items, agents of equal quality look as if their order were stable. `with_items` also draws items, with
    replacement: how much would change with other annotators and other items?

    Args:
        item, annotator, label, agent: row by row, as for `fit` and `agent_scores`.
        subsets: number of subsets, at least 2; drawn as in the published tables, by
            `RandomState(seed).choice(annotators in the order of appearance, int(fraction * R), replace=False)`.
        fraction: share of the annotators in a subset, in (0, 1].
        seed: seed of the subsets, and of the items.
        with_items: score each subset on a resample of the items.
        prompt: the unit that is drawn in place of items, as for `agent_scores`. Items of several agents with the same
            prompt are drawn together, so that agents are compared on the same prompts.
        preset, classes, values: as for `fit` and `agent_scores`.
        ties: tie rule of the majority vote.
        gold: as for `fit`.
        jobs: number of processes.
        report: called with the number of subsets completed since the last call.

    Raises:
        PlanError: as for `fit`, or for an empty subset or fewer than two agents.
    """
    votes = encode(item, annotator, label, classes)
    grouping = grouped_by_agent(votes, agent, prompt)
    credit = credit_values(votes, values)
    known = known_classes(votes, gold or {})
    kept = _draw_subsets(votes, subsets, fraction, seed)
    if len(grouping.agents) < 2:
        raise PlanError(f"there is one agent, {grouping.agents[0]!r}: a ranking needs two")
    settings = settings_with(preset)
    score = partial(_score_draw, votes, grouping, settings, credit, ties, known)
    all_items = np.ones(len(votes.items), dtype=np.intp)
    whole = score((np.ones(len(votes.annotators), dtype=np.bool_), all_items))
    times = [all_items] * subsets
    if with_items:
        times = _draw_resamples(grouping.prompt, subsets, seed)
        settings = settings._replace(max_iter=min(settings.max_iter, MOST_STEPS))
        score = partial(_score_draw, votes, grouping, settings, credit, ties, known)
    scores = _score_draws(score, list(zip(kept, times, strict=True)), jobs, report)
    return {method: _stability(grouping.agents, scores[:, place], whole[place]) for place, method in enumerate(METHODS)}


def _score_draws(score: Callable[[_Draw], Floats], draws: Sequence[_Draw], jobs: int, report: Report | None) -> Floats:
    """Return the scores of all draws, [S,M,A']; repeated ones, common with few annotators, are scored only once."""
    keys = [(kept.tobytes(), times.tobytes()) for kept, times in draws]
    distinct = dict(zip(keys, draws, strict=True))
    score_of = dict(zip(distinct, run_each(score, list(distinct.values()), jobs, report), strict=True))
    if report is not None and len(keys) > len(distinct):
        report(len(keys) - len(distinct))
    return np.array([score_of[key] for key in keys])


def _score_draw(
    votes: Votes,
    grouping: Grouping,
    settings: FitSettings,
    values: Floats,
    ties: Ties,
    known: Ints,
    draw: _Draw,
) -> Floats:
    """Return scores [M,A'] by method and agent; NaN for an agent without an item."""
    kept, times = draw
    subset = votes.select_annotators(kept)
    index_of = {item: index for index, item in enumerate(votes.items)}
    items = [index_of[item] for item in subset.items]
    agent = grouping.agent[items]
    known = known[items]
    times = times[items]
    agents = len(grouping.agents)
    if not times.any():  # none of the annotators labelled an item that was drawn
        return np.full((len(METHODS), agents), np.nan)
    rows = patterns(subset, known + 1)
    rows = rows.with_weights(np.bincount(rows.pattern_of_item, weights=times).astype(np.float64))
    fitted = fit_patterns(subset, rows, settings, known, None)
    posterior = fitted.posterior.T[rows.pattern_of_item]  # items of no pattern count 0 times
    hard = np.eye(len(votes.classes))[posterior.argmax(axis=1)]
    size = np.bincount(agent, weights=times, minlength=agents)
    results = vote(subset, ties, known).posterior, hard, posterior
    sums = [np.bincount(agent, weights=times * (result @ values), minlength=agents) for result in results]
    return np.array([np.where(size > 0, total / np.maximum(size, 1), np.nan) for total in sums])


def _draw_subsets(votes: Votes, subsets: int, fraction: float, seed: int) -> list[Bools]:
    count = len(votes.annotators)
    if subsets < 2:
        raise PlanError(f"subsets is {subsets}: at least 2 are needed")
    if not 0.0 < fraction <= 1.0:
        raise PlanError(f"fraction is {fraction}: more than 0 and at most 1 is needed")
    size = int(fraction * count)
    if size < 1:
        raise PlanError(f"a share of {fraction} of {count} annotators is empty; take a larger fraction")
    if not 0 <= seed < 2**32:
        raise PlanError(f"seed is {seed}: a whole number from 0 to {2**32 - 1} is needed")
    rng = np.random.RandomState(seed)
    kept = np.zeros((subsets, count), dtype=np.bool_)
    for row in kept:
        row[rng.choice(count, size, replace=False)] = True
    return list(kept)


def _stability(agents: Sequence[Key], scores: Floats, whole: Floats) -> Stability:
    """Return the statistics of scores [S,A] of resamples and [A] of all; an agent counts in those with a score."""
    ranks = np.array([_ranks(row) for row in scores])
    is_ranked = np.isfinite(ranks)
    rank_count = is_ranked.sum(axis=0)
    mean = np.where(is_ranked, ranks, 0.0).sum(axis=0) / np.maximum(rank_count, 1)
    squares = np.where(is_ranked, (ranks - mean) ** 2, 0.0).sum(axis=0)
    has_spread = rank_count > 1
    sd = np.sqrt(squares[has_spread] / (rank_count[has_spread] - 1))
    has_rank = rank_count > 0
    spread = np.nanmax(ranks[:, has_rank], axis=0) - np.nanmin(ranks[:, has_rank], axis=0)
    taus = [tau for tau in (tau_b(whole, row) for row in scores) if not np.isnan(tau)]
    shift = np.abs(scores - whole)[is_ranked]
    return Stability(
        tau_b=float(np.mean(taus)) if taus else float("nan"),
        rank_sd=float(sd.mean()) if len(sd) else float("nan"),
        rank_range=float(spread.mean()) if len(spread) else float("nan"),
        score_shift=float(shift.mean()) if len(shift) else float("nan"),
        subsets=len(scores),
        ranks=dict(compress(zip(agents, map(tuple, rank_probabilities(scores).tolist()), strict=True), has_rank)),
    )


def rank_probabilities(scores: Floats) -> Floats:
    """Return the probability of each rank [A,A] from draws of scores [S,A]: of each agent, rank 1 first.

    Scores are compared with 12 decimals, since ties can differ in their last bits. Agents with equal scores have each
    of the ranks that they share with the same probability. A draw in which an agent's score is NaN does not count for
    it; without any other, its row is 0.
    """
    agents = scores.shape[1]
    scores = scores.round(_COMPARED_DECIMALS)
    changes = np.zeros((agents, agents + 1))
    for agent, own in enumerate(scores.T):
        rows = np.isfinite(own)
        first = (scores[rows] > own[rows, None]).sum(axis=1)
        tied = (scores[rows] == own[rows, None]).sum(axis=1)
        changes[agent] = np.bincount(first, 1.0 / tied, agents + 1) - np.bincount(first + tied, 1.0 / tied, agents + 1)
    draws = np.isfinite(scores).sum(axis=0)[:, None]
    return np.asarray(changes.cumsum(axis=1)[:, :agents] / np.maximum(1, draws)).clip(0.0, 1.0)


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


class Refits(NamedTuple):
    """95 % intervals over resamples: of agents' scores, and of annotators' accuracy, leniency and strictness."""

    agents: Mapping[Key, AgentScore]
    annotators: Mapping[Key, tuple[Interval, Interval, Interval]]


def refit_intervals(
    fitted: Consensus,
    agent: ArrayLike,
    *,
    values: ArrayLike | None = None,
    resamples: int = 200,
    seed: int = 0,
    prompt: ArrayLike | None = None,
    interval: IntervalKind = "t",
    as_published: bool = False,
    jobs: int = 1,
    report: Report | None = None,
) -> Refits:
    """Return 95 % intervals that include the uncertainty of confusions estimated from the same items.

    `agent_scores` leaves that uncertainty out. The intervals of annotators span the percentiles of the resamples and
    the interval of `Consensus.annotators`: if an annotator has few labels, or only equal ones, resamples hardly vary.

    Args:
        fitted: the estimate of all items; each resample is fitted with its settings and starts from its result.
        agent, values, prompt: as for `agent_scores`.
        resamples: number of resamples, at least 2.
        seed: seed of the resamples.
        interval: for agents: `t`, the interval of `agent_scores` with the variance that refitting adds to the score of
            the same resamples; or `bootstrap`, percentiles, which are too narrow for few items.
        as_published: resample as the authors did: percentiles of 10 resamples of `RandomState(42)`, from the usual
            start. An item counts once however often it is drawn, so the intervals are not centred on the score.
        jobs, report: the number of processes, and what is called with 1 after each resample.

    Raises:
        PlanError: as for `agent_scores`, or fewer than two resamples.
    """
    if resamples < 2:
        raise PlanError(f"resamples is {resamples}: at least 2 are needed")
    grouping = grouped_by_agent(fitted.votes, agent, prompt)
    worth = credit_values(fitted.votes, values)
    credit = fitted.posterior @ worth
    rows = patterns(fitted.votes, fitted.gold + 1)
    work = partial(_refit, fitted, None if as_published else fitted, rows, grouping.agent, worth)
    prompts = grouping.prompt
    draws = _published_resamples(len(fitted.items)) if as_published else _draw_resamples(prompts, resamples, seed)
    draws = [times * fitted.votes.has_label for times in draws]
    samples = np.array(run_each(work, draws, jobs, report))
    ends = _percentile_ends(samples)
    annotators = len(fitted.votes.annotators)
    fixed = np.array([_mean_credit(grouping.agent, credit, times) for times in draws])
    added = _added_variance(samples[:, : len(grouping.agents)], fixed)

    def bounds(index: int, sums: Floats, sizes: Ints) -> Bounds:
        if as_published or interval == "bootstrap":
            return ends[index]
        return t_bounds(worth, sums, sizes, float(added[index])) if np.isfinite(added[index]) else (None, None)

    of_annotators = {
        name: (ends[index], ends[index + annotators], ends[index + 2 * annotators])
        for index, name in enumerate(fitted.votes.annotators, len(grouping.agents))
    }
    if not as_published:
        of_annotators = {name: _widen(of_annotators[name], own) for name, own in fitted.annotators().items()}
    return Refits(score_agents(fitted, credit, grouping, bounds), of_annotators)


def _widen(intervals: Sequence[Interval], own: AnnotatorQuality) -> tuple[Interval, Interval, Interval]:
    """Return each interval of resamples, or NaN, extended to that of the posterior of the annotator's confusions."""
    both = np.array([intervals, own[-3:]])
    low = both[:, :, 0].min(axis=0)
    high = both[:, :, 1].max(axis=0)
    accuracy, leniency, strictness = zip(low.tolist(), high.tolist(), strict=True)
    return accuracy, leniency, strictness


def _percentile_ends(samples: Floats) -> list[Interval]:
    """Return the 95 % percentile interval of each column of samples [S,C]; NaN for a column without a number."""
    is_sampled = np.isfinite(samples).any(axis=0)
    quantiles = np.full((2, samples.shape[1]), np.nan)
    quantiles[:, is_sampled] = np.nanquantile(samples[:, is_sampled], QUANTILES, axis=0)
    return list(zip(*quantiles.tolist(), strict=True))


def _added_variance(refitted: Floats, fixed: Floats) -> Floats:
    """Return how much larger the variance of each agent's score is if resamples are refitted, [G], at least 0.

    NaN for an agent in fewer than two resamples.
    """
    added = np.full(refitted.shape[1], np.nan)
    for agent, columns in enumerate(zip(refitted.T, fixed.T, strict=True)):
        again, same = (column[np.isfinite(column)] for column in columns)
        if len(again) > 1:
            added[agent] = max(0.0, float(again.var(ddof=1) - same.var(ddof=1)))
    return added


def _mean_credit(agent: Ints, credit: Floats, times: Ints) -> Floats:
    """Return the mean credit of each agent's items [G], each item counted `times` [N]; NaN for none."""
    size = np.bincount(agent, weights=times)
    return np.where(size > 0, np.bincount(agent, weights=times * credit) / np.maximum(size, 1.0), np.nan)


def _refit(
    whole: Consensus, start: Consensus | None, rows: Patterns, agent: Ints, values: Floats, times: Ints
) -> Floats:
    """Return scores of agents [G], then accuracy, leniency and strictness of annotators, [G+3A], of one resample.

    `times` [N] is how often each item was drawn. Agents and annotators that are not in the resample are NaN. `whole` is
    the estimate of all items, `start` the estimate from which the refit begins.
    """
    votes = whole.votes
    k = len(whole.classes)
    labelled = rows.pattern_of_item >= 0
    weight = np.zeros(len(rows.weight))
    np.add.at(weight, rows.pattern_of_item[labelled], times[labelled])
    rows = rows.with_weights(weight)
    fitted = fit_patterns(votes, rows, whole.settings, whole.gold, start)
    credit = values @ fitted.posterior
    scores = _mean_credit(agent, credit[rows.pattern_of_item], times)  # items of no pattern are drawn 0 times
    confusion = fitted.model.confusion.reshape(k, -1, k)
    labels = np.bincount(rows.code // k, minlength=confusion.shape[1])
    quality = np.array([cells.mean(axis=1) for cells in read_cells(confusion.transpose(1, 0, 2))])
    quality[:, labels == 0] = np.nan
    return np.concatenate([scores, quality.ravel()])


def _published_resamples(count: int) -> list[Ints]:
    rng = np.random.RandomState(PUBLISHED_SEED)
    drawn = [rng.choice(count, count, replace=True) for _ in range(PUBLISHED_RESAMPLES)]
    return [np.minimum(np.bincount(items, minlength=count), 1) for items in drawn]


def _draw_resamples(prompt: Ints, resamples: int, seed: int) -> list[Ints]:
    count = int(prompt.max()) + 1
    batches = draw_clusters(count, resamples, seed)
    return [np.bincount(drawn, minlength=count)[prompt] for batch in batches for drawn in batch]


def run_each(
    work: Callable[[Argument], Result], arguments: Sequence[Argument], jobs: int = 1, report: Report | None = None
) -> list[Result]:
    """Return the results in order, and call `report` with 1 after each. Raises PlanError if `jobs` is less than 1."""
    if jobs < 1:
        raise PlanError(f"jobs is {jobs}: at least 1 is needed")
    results = []
    for result in map(work, arguments) if min(jobs, len(arguments)) < 2 else _run_in_processes(work, arguments, jobs):
        results.append(result)
        if report is not None:
            report(1)
    return results


def _run_in_processes(work: Callable[[Argument], Result], given: Sequence[Argument], jobs: int) -> Iterator[Result]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with (
        _current_folder_not_importable(),
        ProcessPoolExecutor(min(jobs, len(given)), mp_context=get_context("spawn")) as workers,
    ):
        yield from workers.map(work, given, chunksize=max(1, len(given) // (16 * jobs)))


@contextmanager
def _current_folder_not_importable() -> Iterator[None]:
    """Start processes that import nothing from the current folder: each would run a `pickle.py` found there."""
    previous = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        del os.environ["PYTHONSAFEPATH"]
        if previous is not None:
            os.environ["PYTHONSAFEPATH"] = previous
