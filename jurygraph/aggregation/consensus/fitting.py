"""Consensus of annotators by Dawid and Skene's model with Dirichlet priors, as STABLEVAL uses it, with doubts about it;
by majority, the baseline; and estimates on parts of the votes: stability of rankings, intervals by resampling."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation.consensus.model import (
    AgentScore,
    Consensus,
    FitPreset,
    FitSettings,
    GoldLabels,
    ItemAgentsAndPrompts,
    ItemKey,
    ItemKeys,
    ItemPosteriors,
    MajorityVote,
    Model,
    Votes,
    class_credit_values,
    encode,
    error_rates,
    fit_model,
    fit_settings_from_preset,
    gold_class_codes,
    group_items_by_agent,
    score_agents,
    t_interval_of_mean_credit,
)
from jurygraph.arrays import Bools, Floats, Ints, check_choice
from jurygraph.errors import PlanError
from jurygraph.inference.clusters import INTERVAL_QUANTILES, ONE_SIDED_LEVEL, Bounds, draw_clusters

TieRule = Literal["shared", "first", "highest"]
MIN_ANNOTATORS = 3
MIN_PANEL_DEPTH = 75.0
"""Depth below which the model is not used.

In simulations of 3, 5 and 9 annotators and 50, 200 and 1,000 items the majority is better in accuracy or in the error
of scores at depths of 8 to 58, and from 100 on the model is as good or better (docs/consensus.md).
"""
_MAX_LABEL_FACTOR = 10
"""How many times the labels that there are may be asked for with a number; more is no plan."""
_MIN_REFIT_SPREAD = 0.003
"""Refits nearer than this are alike, as of someone with equal labels: how rare others are, they cannot tell."""
_MIN_LABELS_FOR_TWO_RARE = 100
"""Above this, two labels of a class are less than 2 %."""
_MAX_NAMES_SHOWN = 5
_MAX_HELD_OUT_PARTS = 10


def fit(
    item: ArrayLike,
    annotator: ArrayLike,
    label: ArrayLike,
    preset: FitPreset = "converged",
    n_classes: int | None = None,
    *,
    classes: ItemKeys | None = None,
    prior_mu: float | None = None,
    prior_confusion: float | None = None,
    diagonal: float | None = None,
    tol: float | None = None,
    max_iter: int | None = None,
    accelerated: bool | None = None,
    gold: GoldLabels | None = None,
) -> Consensus:
    """Estimate the classes of items and the confusion matrices of annotators (STABLEVAL, Algorithm 1).

    Each item has a true class z, and annotator r gives label o to class c with probability π_r[c, o]. Both are
    estimated by EM; the result has the posterior γ of z, not its likeliest class. Repeated rows all count.

    Args:
        item, annotator, label: row by row, [rows]; codes, or any other hashable values. A label that is None, NaN or ""
            is an abstention.
        preset: settings for all arguments that are left out; see `PRESETS`.
        n_classes: K, where labels are 0 … K-1. Without it and `classes`, the classes are the labels that occur, sorted.
        classes: the labels, from low to high.
        prior_mu, prior_confusion: Dirichlet α of the class shares and of each row of π, at least 1 (1 is none).
        diagonal: the initial diagonal of π, in (0, 1).
        tol: largest change in one step (by default of a posterior) at which the estimate has converged.
        max_iter: maximum number of steps; up to two more where they are accelerated.
        accelerated: extrapolate steps (SQUAREM). They nearly always end at the same optimum as plain steps; if there
            are several optima, they may end at another one.
        gold: known class by item; the posterior of these items is certain, and they count in every M-step.

    Raises:
        PlanError: labels off the scale, lists of different lengths, only one class, or settings out of range.
    """
    if n_classes is not None:
        if classes is not None:
            raise PlanError("n_classes and classes: both say what the labels are; give one of them")
        if isinstance(n_classes, bool) or n_classes != int(n_classes):
            raise PlanError(f"n_classes is {n_classes!r}: a whole number is needed")
        if n_classes < 2:
            raise PlanError(f"n_classes is {n_classes}: 2 or more are needed")
        classes = range(int(n_classes))
    votes = encode(item, annotator, label, classes)
    settings = fit_settings_from_preset(
        preset,
        prior_mu=prior_mu,
        prior_confusion=prior_confusion,
        diagonal=diagonal,
        tol=tol,
        max_iter=max_iter,
        accelerated=accelerated,
    )
    return estimate(votes, settings, gold_class_codes(votes, gold or {}))


def dawid_skene(
    item: ArrayLike,
    annotator: ArrayLike,
    label: ArrayLike,
    preset: FitPreset = "converged",
    n_classes: int | None = None,
    *,
    classes: ItemKeys | None = None,
) -> ItemPosteriors:
    """Return hard labels: the likeliest class of each item from the same `fit`, as certain (ties to the lowest)."""
    return fit(item, annotator, label, preset, n_classes, classes=classes).hard_labels()


def estimate(votes: Votes, settings: FitSettings, gold: Ints) -> Consensus:
    """Fit rows that are already codes. `gold` [N] is the class of a gold item, -1 for any other."""
    k = len(votes.classes)
    fitted = fit_model(votes, votes.has_label.astype(np.float64), settings, gold)
    # An item without a label has the class shares, a gold item its class.
    posterior = np.tile(fitted.model.prior, (len(votes.items), 1))
    posterior[votes.has_label] = fitted.posterior.T
    _set_gold_posteriors(posterior, gold)
    # From [K,A·K] to [A,K,K].
    confusion = np.ascontiguousarray(fitted.model.confusion.reshape(k, -1, k).transpose(1, 0, 2))
    failure = None
    if not fitted.converged:
        failure = f"not converged after {fitted.iterations} steps: the figures still move by more than {settings.tol:g}"
    return Consensus(
        votes=votes,
        posterior=posterior,
        prior=fitted.model.prior,
        confusion=confusion,
        log_likelihood=fitted.log_likelihood,
        converged=fitted.converged,
        iterations=fitted.iterations,
        settings=settings,
        gold=gold,
        warnings=tuple(list_fit_warnings(votes, confusion, failure, gold)),
    )


def _set_gold_posteriors(posterior: Floats, gold: Ints) -> None:
    """Make the class of each gold item certain, in place."""
    is_gold = gold >= 0
    one_hot_classes = np.eye(posterior.shape[1])
    posterior[is_gold] = one_hot_classes[gold[is_gold]]


def held_out_posteriors(fitted: Consensus, items: Ints) -> Floats:
    """Return the posteriors of gold items [G], each fitted as if its class were not known, [G,K].

    Up to ten items are held out one by one, more in ten parts. Each fit has the usual start: that of all gold items
    would tell their classes.
    """
    part_count = min(len(items), _MAX_HELD_OUT_PARTS)
    posteriors = np.empty((len(items), len(fitted.classes)))
    for part in range(part_count):
        held_out_items = items[part::part_count]
        gold = fitted.gold.copy()
        gold[held_out_items] = -1
        refitted = estimate(fitted.votes, fitted.settings, gold)
        posteriors[part::part_count] = refitted.posterior[held_out_items]
    return posteriors


def majority_vote(
    item: ArrayLike,
    annotator: ArrayLike,
    label: ArrayLike,
    ties: TieRule = "shared",
    *,
    classes: ItemKeys | None = None,
    gold: GoldLabels | None = None,
) -> MajorityVote:
    """Return the most frequent label of each item; columns and errors as for `fit`.

    Args:
        ties: winner of a tie: all tied classes equally (`shared`), the label that comes first in the rows (`first`, as
            in STABLEVAL's tables of real votes), or the `highest` class (as in its simulations).
        gold: known class by item, which overrides the votes.
    """
    votes = encode(item, annotator, label, classes)
    return vote(votes, ties, gold_class_codes(votes, gold or {}))


def vote(votes: Votes, ties: TieRule, gold: Ints) -> MajorityVote:
    """Apply `majority_vote` to encoded rows. `gold` [N] is the class of a gold item, -1 for any other."""
    check_choice("ties", ties, get_args(TieRule))
    k = len(votes.classes)
    sorted_counts = np.sort(votes.counts, axis=1)
    second = sorted_counts[:, -2] if k > 1 else 0
    margin = sorted_counts[:, -1] - second
    is_leading_class = votes.counts == sorted_counts[:, -1:]
    posterior = is_leading_class / is_leading_class.sum(axis=1, keepdims=True)
    if ties != "shared":
        posterior = np.eye(k)[_break_ties(votes, is_leading_class, ties)]
    posterior[~votes.has_label] = 1.0 / k
    _set_gold_posteriors(posterior, gold)
    is_voted = votes.has_label & (gold < 0)
    margin[~is_voted] = 0
    is_tied_item = (is_leading_class.sum(axis=1) > 1) & is_voted
    return MajorityVote(votes, posterior, is_tied_item, margin)


def _break_ties(votes: Votes, is_leading_class: Bools, ties: TieRule) -> Ints:
    n, k = is_leading_class.shape
    if ties == "highest":
        return np.asarray(k - 1 - is_leading_class[:, ::-1].argmax(axis=1))
    rows = len(votes.item)
    # Backwards, so that the first row of an item and a label is the one that stays.
    first_row_by_class = np.full((n, k), rows)
    first_row_by_class[votes.item[::-1], votes.label[::-1]] = np.arange(rows - 1, -1, -1)
    return np.asarray(np.where(is_leading_class, first_row_by_class, rows).argmin(axis=1))


class VoteAgreement(NamedTuple):
    """Agreement of the annotators over `items`: `unanimous` is the share of them of which all rows have the same label;
    `pairwise` the mean of the share of pairs of rows that agree (1 for an item with one row). None without items."""

    unanimous: float | None
    pairwise: float | None
    items: int


def agreement(votes: Votes, min_labels: int = 1) -> VoteAgreement:
    """Return the agreement over the items with so many labels or more; published figures count all with a label."""
    counts = votes.counts[votes.counts.sum(axis=1) >= min_labels]
    if not len(counts):
        return VoteAgreement(None, None, 0)
    size = counts.sum(axis=1)
    pairs = size * (size - 1)
    agreeing_pairs = (counts * (counts - 1)).sum(axis=1)
    share = np.divide(agreeing_pairs, pairs, out=np.ones(len(size)), where=pairs > 0)
    is_unanimous = counts.max(axis=1) == size
    return VoteAgreement(float(is_unanimous.mean()), float(share.mean()), len(counts))


class PanelStructure(NamedTuple):
    """Connection and size of a panel of annotators.

    `is_annotator_connected` [A]: annotators who share items, directly or through others, are one part; these are of the
    part with the most labels. `depth` is the number of labels for each free cell of all confusions, times the number of
    labels of an item beyond two, since two labels carry no information about confusions. Repeated rows count once.
    """

    is_annotator_connected: Bools
    depth: float


def panel_structure(votes: Votes) -> PanelStructure:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, a, k = votes.shape
    # The annotators are the first nodes, and the items follow.
    ends = (votes.annotator, a + votes.item)
    annotator_item_matrix = coo_array((np.ones(len(votes.item)), ends), shape=(a + n, a + n))
    _, parts = connected_components(annotator_item_matrix, directed=False)
    connected_part_by_annotator = parts[:a]  # numbered by the first annotator of each
    is_labelling_annotator = votes.labels_by_annotator > 0
    largest_connected_part = np.bincount(connected_part_by_annotator[votes.annotator]).argmax()
    labels = len(votes.item) - votes.repeated_rows
    confusion_parameter_count = np.count_nonzero(is_labelling_annotator) * k * max(1, k - 1)
    labels_per_parameter = labels / confusion_parameter_count
    labels_per_item = labels / np.count_nonzero(votes.has_label)
    depth = labels_per_parameter * max(0.0, labels_per_item - 2.0)
    return PanelStructure(
        is_labelling_annotator & (connected_part_by_annotator == largest_connected_part), depth
    )


def too_small(votes: Votes) -> str | None:
    """Return why a panel is too small for confusions of its own; None if it is not."""
    reason = not_identifiable(votes)
    depth = panel_structure(votes).depth
    if reason is not None or depth >= MIN_PANEL_DEPTH:
        return reason
    remedy = "for which items need more than 2 labels each"
    if depth > 0.0:  # which grows as the labels, with as many an item
        labels = len(votes.item) - votes.repeated_rows
        needed_label_count = math.ceil(round(labels * (MIN_PANEL_DEPTH / depth - 1.0), 6))
        amount = f"about {needed_label_count:,}"
        if needed_label_count > _MAX_LABEL_FACTOR * labels:
            amount = f"over {_MAX_LABEL_FACTOR * labels:,}"
        remedy = f"which takes {amount} more labels, of new items (now {labels:,})"
    return (
        f"too few labels to learn how each annotator errs: the panel's depth "
        f"is {depth:.3g}, and {MIN_PANEL_DEPTH:g} is needed, {remedy}"
    )


def not_identifiable(votes: Votes) -> str | None:
    """Return why many models fit a panel equally well: fewer than three annotators are connected. None if not."""
    annotators = int(np.count_nonzero(panel_structure(votes).is_annotator_connected))
    if annotators >= MIN_ANNOTATORS:
        return None
    k = len(votes.classes)
    annotators_text = "one annotator is" if annotators == 1 else f"{annotators} annotators are"
    unknown_parameter_count = annotators * k * (k - 1) + k - 1
    problem = (
        f"{annotators_text} not identifiable: {k**annotators - 1} free cells for "
        f"{unknown_parameter_count} unknowns"
    )
    return f"{problem}; the estimate depends on its start or its prior"


def list_fit_warnings(
    votes: Votes, confusion: Floats, failure: str | None, gold: Ints
) -> Iterator[str]:
    """Yield warnings that a user needs before trusting an estimate, one sentence each.

    `confusion` [A,K,K] are the estimated confusions; `failure` says that the computation did not converge; `gold` [N]
    is the class of a gold item, -1 for any other.
    """
    labels = votes.labels_by_annotator
    yield from list_vote_warnings(votes, "only the class shares join them")
    reason = not_identifiable(votes)
    if reason is not None:
        yield reason
    if failure is not None:
        yield failure
    has_few_labels = labels < len(votes.classes)
    if has_few_labels.any():
        yield f"fewer labels than classes: little is known of {_annotator_names_text(votes, has_few_labels)}"
    # Confusions of all annotators together, by their numbers of labels, [K,K].
    pooled_confusion = (confusion * labels[:, None, None]).sum(axis=0)
    yield from _list_class_warnings(votes, pooled_confusion, gold)


def list_vote_warnings(votes: Votes, join_of_parts: str) -> Iterator[str]:
    """Yield warnings of the votes themselves; `join_of_parts` says how people are compared whom no items connect."""
    if votes.abstention_count:
        yield f"abstentions, left out: {votes.abstention_count}"
    unlabelled_count = int(np.count_nonzero(~votes.has_label))
    if unlabelled_count:
        yield f"items without a label: {unlabelled_count}; they count for no agent"
    is_disconnected_annotator = ~panel_structure(votes).is_annotator_connected & (
        votes.labels_by_annotator > 0
    )
    if is_disconnected_annotator.any():
        yield (
            "no item connects the others with "
            f"{_annotator_names_text(votes, is_disconnected_annotator)}: {join_of_parts}"
        )


def _list_class_warnings(votes: Votes, confusion: Floats, gold: Ints) -> Iterator[str]:
    """Yield the classes of which hardly anything is known, and those that may mean another, by a confusion [K,K]."""
    classes = np.arange(len(votes.classes))
    # One label or none, or two that are few of all; an accuracy is the mean over all classes.
    most = 1 + (len(votes.label) > _MIN_LABELS_FOR_TWO_RARE)
    is_rare_class = np.bincount(votes.label, minlength=len(classes)) <= most
    is_rare_class &= ~np.isin(classes, gold)
    names = []
    for rare_class in np.flatnonzero(is_rare_class).tolist():
        origins = []
        for row in np.flatnonzero(votes.label == rare_class).tolist():
            annotator, item = votes.annotators[votes.annotator[row]], votes.items[votes.item[row]]
            origins.append(f"{annotator}'s of {item}")
        names.append(f"{votes.classes[rare_class]!r} ({' and '.join(origins) or 'none'})")
    if names:
        yield (
            f"classes with very few labels: {_join_first_names(names)}: their share of every accuracy, the mean over "
            "the classes, is a guess, which lowers it; correct a slip (--classes with the others finds it), merge a "
            "class with another, or leave it out"
        )
    calls = [
        f"{votes.classes[true_class]!r} is called {votes.classes[commonest_class]!r}"
        for true_class, commonest_class in enumerate(confusion.argmax(axis=1).tolist())
        if true_class != commonest_class and not is_rare_class[true_class]
    ]
    if calls:
        yield (
            f"what the model takes for class {_join_first_names(calls)} more often: it may mean something else"
        )


def _annotator_names_text(votes: Votes, chosen: Bools) -> str:
    return _join_first_names(
        [str(votes.annotators[index]) for index in np.flatnonzero(chosen).tolist()]
    )


def _join_first_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES_SHOWN} more" if len(names) > _MAX_NAMES_SHOWN else ""
    return ", ".join(names[:_MAX_NAMES_SHOWN]) + more


PublishedMethod = Literal["majority", "dawid-skene", "stableval"]
CONSENSUS_METHODS: tuple[PublishedMethod, ...] = get_args(PublishedMethod)
"""Those that the paper compares."""
ConsensusMethod = Literal[PublishedMethod, "adjusted-mean"]
PUBLISHED_RESAMPLE_COUNT = 10
PUBLISHED_SEED = 42
MAX_STABILITY_ITERATIONS = 500
"""Most steps of a fit for stability. MT-Bench takes 234; one or two annotators may take 10,000, and there the model has
no unique optimum to reach."""


class RankingStability(NamedTuple):
    """Stability of one method under resampling. The statistics may rank methods differently: report all.

    Attributes:
        tau_b: E[τ_b] between the ranking and that by all annotators (STABLEVAL, section 4); NaN if undefined for all
            resamples.
        rank_sd: standard deviation (ddof 1) of an agent's rank over the resamples, averaged over agents (Tables 9, 14,
            26).
        rank_range: largest minus smallest rank, averaged over agents.
        score_shift: mean |S_R'(a) - S_R(a)| over resamples and agents (Proposition 2).
        subsets: number of resamples.
    """

    tau_b: float
    rank_sd: float
    rank_range: float
    score_shift: float
    subsets: int


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
    preset: FitPreset = "converged",
    settings: FitSettings | None = None,
    classes: ItemKeys | None = None,
    values: ArrayLike | None = None,
    gold: GoldLabels | None = None,
    report: Callable[[int], None] = lambda draw_count: None,
) -> Mapping[PublishedMethod, RankingStability]:
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
        preset, classes, values, gold: as for `fit` and `agent_scores`; by preset `paper`, ties of the majority go to
            the label that comes first, and else they are shared.
        settings: those of an estimate (`Consensus.settings`), instead of the preset's.
        report: called with 1 after each subset.

    Raises:
        PlanError: as for `fit`, or for an empty subset or fewer than two agents.
    """
    votes = encode(item, annotator, label, classes)
    items_by_agent_and_prompt = group_items_by_agent(votes, agent, prompt)
    gold_classes = gold_class_codes(votes, gold or {})
    kept = _draw_subsets(votes, subsets, fraction, seed)
    agents = items_by_agent_and_prompt.agents
    if len(agents) < 2:
        raise PlanError(f"there is one agent, {agents[0]!r}: a ranking needs two")
    ties: TieRule = "first" if preset == "paper" else "shared"
    settings = settings or fit_settings_from_preset(preset)
    credit_by_class = class_credit_values(votes, values)
    step_count = min(settings.max_iter, MAX_STABILITY_ITERATIONS)
    settings = settings._replace(max_iter=step_count)

    def score(kept_annotators_mask: Bools, times: Ints) -> Floats:
        """Return the agents' scores by each method, [M,A'], from the annotators to keep [A] and how often each item
        counts [N]."""
        subset = votes.select_labels(kept_annotators_mask[votes.annotator])
        weight = np.where(subset.has_label, times, 0).astype(np.float64)
        if not weight.any():  # none of the annotators labelled an item that was drawn
            return np.full((len(CONSENSUS_METHODS), len(agents)), np.nan)
        posterior = fit_model(subset, weight, settings, gold_classes).posterior.T
        hard_posterior = np.eye(len(votes.classes))[posterior.argmax(axis=1)]
        majority_posterior = vote(subset, ties, gold_classes).posterior[weight > 0]
        scores = []
        # In the order of `CONSENSUS_METHODS`; each [N',K], over the items that count.
        for result in (majority_posterior, hard_posterior, posterior):
            scores.append(items_by_agent_and_prompt.mean_credit(result @ credit_by_class, weight))
        return np.array(scores)

    all_annotators_mask = np.ones(len(votes.annotators), dtype=np.bool_)
    unit_item_counts = np.ones(len(votes.items), dtype=np.intp)
    full_data_scores = score(all_annotators_mask, unit_item_counts)  # [M,A']
    times = [unit_item_counts] * subsets
    if with_items:
        times = _draw_resamples(items_by_agent_and_prompt.prompt, subsets, seed)
    scores_by_draw = []
    for draw in zip(kept, times, strict=True):
        scores_by_draw.append(score(*draw))
        report(1)
    scores = np.array(scores_by_draw)  # [S,M,A']
    return {
        method: _stability(scores[:, index], full_data_scores[index])
        for index, method in enumerate(CONSENSUS_METHODS)
    }


def _draw_subsets(votes: Votes, subsets: int, fraction: float, seed: int) -> Bools:
    count = len(votes.annotators)
    if subsets < 2:
        raise PlanError(f"subsets is {subsets}: at least 2 are needed")
    if not 0.0 < fraction <= 1.0:
        raise PlanError(f"fraction is {fraction}: more than 0 and at most 1 is needed")
    size = int(fraction * count)
    if not size:
        raise PlanError(
            f"a share of {fraction} of {count} annotators is empty; take a larger fraction"
        )
    if not 0 <= seed < 2**32:
        raise PlanError(f"seed is {seed}: a whole number from 0 to {2**32 - 1} is needed")
    rng = np.random.RandomState(seed)
    kept = np.zeros((subsets, count), dtype=np.bool_)
    for row in kept:
        row[rng.choice(count, size, replace=False)] = True
    return kept


def _stability(scores: Floats, full_data_scores: Floats) -> RankingStability:
    """Return the statistics of scores [S,A] of resamples and [A] of all; an agent counts in those with a score."""
    from scipy.stats import rankdata

    ranks = rankdata(-scores, axis=1, nan_policy="omit")  # 1 for the largest; NaN for NaN
    finite_ranks_by_agent = [agent_ranks[np.isfinite(agent_ranks)] for agent_ranks in ranks.T]
    correlations = [tau_b(full_data_scores, row) for row in scores]
    deviations = [
        agent_ranks.std(ddof=1) for agent_ranks in finite_ranks_by_agent if len(agent_ranks) > 1
    ]
    rank_ranges = [np.ptp(agent_ranks) for agent_ranks in finite_ranks_by_agent if len(agent_ranks)]
    return RankingStability(
        tau_b=_finite_mean(correlations),
        rank_sd=_finite_mean(deviations),
        rank_range=_finite_mean(rank_ranges),
        score_shift=_finite_mean(np.abs(scores - full_data_scores)),
        subsets=len(scores),
    )


def _finite_mean(values: ArrayLike) -> float:
    numbers = np.asarray(values, dtype=np.float64)
    finite_numbers = numbers[np.isfinite(numbers)]
    return float(finite_numbers.mean()) if len(finite_numbers) else float("nan")


def tau_b(first: Floats, second: Floats) -> float:
    """Return Kendall's τ_b over the entries that both have; NaN if one of them has no two different values."""
    has_both_values = np.isfinite(first) & np.isfinite(second)
    # The order of each pair of entries, [N,N] bytes: ten times as fast as SciPy for the few entries that there are.
    first_order_signs, second_order_signs = (
        np.greater.outer(values, values).view(np.int8) - np.less.outer(values, values)
        for values in (first[has_both_values], second[has_both_values])
    )
    size = np.sqrt(
        float(np.count_nonzero(first_order_signs)) * float(np.count_nonzero(second_order_signs))
    )
    return float((first_order_signs * second_order_signs).sum() / size) if size else float("nan")


class RefitIntervals(NamedTuple):
    """95 % intervals over resamples: of agents' scores, and [low, high] of annotators' accuracy, leniency and
    strictness."""

    agents: Mapping[ItemKey, AgentScore]
    annotators: Mapping[ItemKey, Sequence[Sequence[float]]]


def refit_intervals(
    fitted: Consensus,
    agent: ArrayLike,
    *,
    values: ArrayLike | None = None,
    resamples: int = 200,
    seed: int = 0,
    prompt: ArrayLike | None = None,
    as_published: bool = False,
    report: Callable[[int], None] = lambda resample_item_counts: None,
) -> RefitIntervals:
    """Return 95 % intervals that include the uncertainty of confusions estimated from the same items.

    `agent_scores` leaves that uncertainty out. An agent's interval is that of `agent_scores` with the variance that
    refitting adds to the score of the same resamples. The intervals of annotators are the percentiles of the resamples;
    NaN if these are all alike, as for an annotator with equal labels only. The accuracy of who never errs has the exact
    interval, for which resamples have no errors either.

    Args:
        fitted: the estimate of all items; each resample is fitted with its settings and starts from its result.
        agent, values, prompt: as for `agent_scores`.
        resamples: number of resamples, at least 2.
        seed: seed of the resamples.
        as_published: resample as the authors did: percentiles of 10 resamples of `RandomState(42)`, from the usual
            start. An item counts once however often it is drawn, so the intervals are not centred on the score.
        report: called with 1 after each resample.

    Raises:
        PlanError: as for `agent_scores`, or fewer than two resamples.
    """
    if resamples < 2:
        raise PlanError(f"resamples is {resamples}: at least 2 are needed")
    votes = fitted.votes
    items_by_agent_and_prompt = group_items_by_agent(votes, agent, prompt)
    agents = len(items_by_agent_and_prompt.agents)
    credit_by_class = class_credit_values(votes, values)
    credit_by_item = fitted.posterior @ credit_by_class
    if as_published:
        start = None
        resample_item_counts = _published_resample_indices(len(items_by_agent_and_prompt.prompt))
    else:
        # From [A,K,K] to [K,A·K].
        confusion = fitted.confusion.transpose(1, 0, 2).reshape(len(fitted.prior), -1)
        start = Model(fitted.prior, confusion)
        resample_item_counts = _draw_resamples(items_by_agent_and_prompt.prompt, resamples, seed)
    refitted_values = []
    scores_without_refit = []
    for item_counts in resample_item_counts:
        times = item_counts * votes.has_label
        refitted_values.append(
            _refit_on_resample(fitted, start, items_by_agent_and_prompt, credit_by_class, times)
        )
        scores_without_refit.append(
            items_by_agent_and_prompt.mean_credit(credit_by_item[times > 0], times)
        )
        report(1)
    samples = np.array(refitted_values)  # [S,G+3A]
    with warnings.catch_warnings():
        # what is in no resample, or in one alone, has NaN for its ends or its variance
        warnings.simplefilter("ignore", RuntimeWarning)
        ends = np.nanquantile(samples, INTERVAL_QUANTILES, axis=0)
        refitted_variance = np.nanvar(samples[:, :agents], axis=0, ddof=1)
        fixed_fit_variance = np.nanvar(scores_without_refit, axis=0, ddof=1)
    added_variance = np.maximum(0.0, refitted_variance - fixed_fit_variance)

    def bounds(index: int, sums: Floats, sizes: Ints) -> Bounds:
        if as_published:
            low, high = ends[:, index].tolist()
            return low, high
        if not np.isfinite(added_variance[index]):
            return None, None
        return t_interval_of_mean_credit(credit_by_class, sums, sizes, float(added_variance[index]))

    annotator_rate_intervals = ends[:, agents:].reshape(2, 3, -1)
    is_alike = np.ptp(annotator_rate_intervals, axis=0) < _MIN_REFIT_SPREAD
    annotator_rate_intervals[:, is_alike] = np.nan
    if not as_published:
        lower_ends = _exact_lower_ends(fitted, items_by_agent_and_prompt.prompt)
        low, high = annotator_rate_intervals[:, 0]
        np.fmin(low, lower_ends, out=low)
        high[np.isfinite(lower_ends)] = 1.0
    annotator_intervals = annotator_rate_intervals.transpose(2, 1, 0).tolist()  # [3,2] each
    annotators = dict(zip(votes.annotators, annotator_intervals, strict=True))
    return RefitIntervals(
        score_agents(fitted, credit_by_item, items_by_agent_and_prompt, bounds), annotators
    )


def _exact_lower_ends(fitted: Consensus, prompt: Ints) -> Floats:
    """Return the lower end of the accuracy of annotators who gave all items their likeliest class, NaN for others, [A].

    Each class counts as many prompts as the annotator's rarest one (Clopper & Pearson 1934), or none is known.

    Args:
        prompt: of each item, [N].
    """
    votes = fitted.votes
    _, annotators, classes = votes.shape
    errors = np.bincount(
        votes.annotator, votes.label != fitted.likeliest_labels()[votes.item], annotators
    )
    cells = np.stack([votes.annotator, votes.label, prompt[votes.item]])
    labelling, label, _ = np.unique(cells, axis=1)
    prompts = np.zeros((annotators, classes))
    np.add.at(prompts, (labelling, label), 1)
    trials = classes * prompts.min(axis=1)
    ends = ONE_SIDED_LEVEL ** (1.0 / np.maximum(trials, 1))
    return np.where((errors == 0.0) & (trials > 0), ends, np.nan)


def _refit_on_resample(
    full_fit: Consensus,
    start: Model | None,
    items_by_agent_and_prompt: ItemAgentsAndPrompts,
    values: Floats,
    times: Ints,
) -> Floats:
    """Return scores of agents [G], then accuracy, leniency and strictness of annotators, [G+3A], of one resample.

    `times` [N] is how often each item was drawn. Agents and annotators that are not in the resample are NaN.
    `full_fit` is the estimate of all items, `start` the model from which the refit begins.
    """
    votes = full_fit.votes
    k = len(full_fit.classes)
    weight = times.astype(np.float64)
    if not weight.any():  # only items were drawn that nobody labelled
        return np.full(len(items_by_agent_and_prompt.agents) + 3 * len(votes.annotators), np.nan)
    refitted_model = fit_model(votes, weight, full_fit.settings, full_fit.gold, start)
    credit = values @ refitted_model.posterior
    scores = items_by_agent_and_prompt.mean_credit(credit, times)
    annotator_rates = error_rates(
        refitted_model.model.confusion.reshape(k, -1, k).transpose(1, 0, 2)
    )
    labels = np.bincount(votes.annotator, times[votes.item], len(votes.annotators))
    annotator_rates[:, labels == 0] = np.nan
    return np.concatenate([scores, annotator_rates.ravel()])


def _published_resample_indices(count: int) -> list[Ints]:
    rng = np.random.RandomState(PUBLISHED_SEED)
    item_counts = []
    for _ in range(PUBLISHED_RESAMPLE_COUNT):
        drawn_items = rng.choice(count, count, replace=True)
        item_counts.append(np.minimum(np.bincount(drawn_items, minlength=count), 1))
    return item_counts


def _draw_resamples(prompt: Ints, resamples: int, seed: int) -> list[Ints]:
    count = int(prompt.max()) + 1
    cluster_draws = chain.from_iterable(draw_clusters(count, resamples, seed))
    return [np.bincount(drawn_prompts, minlength=count)[prompt] for drawn_prompts in cluster_draws]
