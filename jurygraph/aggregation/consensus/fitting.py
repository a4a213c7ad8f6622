"""Consensus of annotators by Dawid and Skene's model with Dirichlet priors, as STABLEVAL uses it, with doubts about it;
and by majority, the baseline; and how far the annotators agree."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from jurygraph.aggregation.consensus.em import FitSettings, Preset, fit_items, settings_with
from jurygraph.aggregation.consensus.result import Consensus, Credited, MajorityVote
from jurygraph.aggregation.consensus.votes import Key, Votes, encode
from jurygraph.arrays import Bools, Floats, Ints
from jurygraph.errors import PlanError

Ties = Literal["shared", "first", "lowest", "highest"]
FEWEST_ANNOTATORS = 3
LEAST_DEPTH = 75.0
"""Depth below which the majority is used.

In simulations of 3, 5 and 9 annotators and 50, 200 and 1,000 items the majority is better in accuracy or in the error
of scores at depths of 8 to 58, and from 100 on the model is as good or better (docs/consensus.md).
"""
_SHOWN = 5


def fit(
    item: ArrayLike,
    annotator: ArrayLike,
    label: ArrayLike,
    preset: Preset = "converged",
    n_classes: int | None = None,
    *,
    classes: Sequence[Key] | None = None,
    prior_mu: float | None = None,
    prior_confusion: float | None = None,
    diagonal: float | None = None,
    tol: float | None = None,
    max_iter: int | None = None,
    accelerated: bool | None = None,
) -> Consensus:
    """Estimate the classes of items and the confusion matrices of annotators (STABLEVAL, Algorithm 1).

    Each item has a true class z, and annotator r gives label o to class c with probability π_r[c, o]. Both are
    estimated by EM; the result has the posterior γ of z, not its likeliest class. Repeated rows all count.

    Args:
        item, annotator, label: row by row, [rows]; codes, or any other hashable values. A label that is None, NaN or ""
            is an abstention.
        preset: settings for all arguments that are left out; see `em.PRESETS`.
        n_classes: K, where labels are 0 … K-1. Without it and `classes`, the classes are the labels that occur, sorted.
        classes: the labels, from low to high.
        prior_mu, prior_confusion: Dirichlet α of the class shares and of each row of π, at least 1 (1 is none).
        diagonal: the initial diagonal of π, in (0, 1).
        tol: largest change in one step (by default of a posterior) at which the estimate has converged.
        max_iter: maximum number of steps.
        accelerated: extrapolate steps (SQUAREM). They nearly always end at the same optimum as plain steps; if there
            are several optima, they may end at another one.

    Raises:
        PlanError: labels off the scale, lists of different lengths, only one class, or settings out of range.
    """
    votes = encode(item, annotator, label, _label_scale(n_classes, classes))
    settings = settings_with(
        preset,
        prior_mu=prior_mu,
        prior_confusion=prior_confusion,
        diagonal=diagonal,
        tol=tol,
        max_iter=max_iter,
        accelerated=accelerated,
    )
    return estimate(votes, settings)


def dawid_skene(
    item: ArrayLike,
    annotator: ArrayLike,
    label: ArrayLike,
    preset: Preset = "converged",
    n_classes: int | None = None,
    *,
    classes: Sequence[Key] | None = None,
) -> Credited:
    """Return hard labels: the likeliest class of each item from the same `fit`, as certain (ties to the lowest)."""
    return fit(item, annotator, label, preset, n_classes, classes=classes).hard_labels()


def _label_scale(n_classes: int | None, classes: Sequence[Key] | None) -> Sequence[Key] | None:
    if n_classes is None:
        return classes
    if classes is not None:
        raise PlanError("n_classes and classes: both say what the labels are; give one of them")
    if isinstance(n_classes, bool) or n_classes != int(n_classes):
        raise PlanError(f"n_classes is {n_classes!r}: a whole number is needed")
    if n_classes < 2:
        raise PlanError(f"n_classes is {n_classes}: 2 or more are needed")
    return range(int(n_classes))


def estimate(votes: Votes, settings: FitSettings) -> Consensus:
    """Fit rows that are already codes."""
    k = len(votes.classes)
    fitted = fit_items(votes, votes.has_label.astype(np.float64), settings)
    posterior = np.tile(fitted.model.prior, (len(votes.items), 1))
    posterior[votes.has_label] = fitted.posterior.T
    confusion = np.ascontiguousarray(fitted.model.confusion.reshape(k, -1, k).transpose(1, 0, 2))
    stop = f"not converged after {fitted.iterations} steps: the figures still move by more than {settings.tol:g}"
    return Consensus(
        votes=votes,
        posterior=posterior,
        prior=fitted.model.prior,
        confusion=confusion,
        log_likelihood=fitted.log_likelihood,
        converged=fitted.converged,
        iterations=fitted.iterations,
        settings=settings,
        warnings=tuple(doubts(votes, confusion, None if fitted.converged else stop)),
    )


def majority_vote(
    item: ArrayLike,
    annotator: ArrayLike,
    label: ArrayLike,
    ties: Ties = "shared",
    *,
    classes: Sequence[Key] | None = None,
) -> MajorityVote:
    """Return the most frequent label of each item; columns and errors as for `fit`.

    Args:
        ties: winner of a tie: all tied classes equally (`shared`), the label that comes first in the rows (`first`, as
            in STABLEVAL's tables of real votes), or the `lowest` or `highest` class (`highest` in its simulations).
    """
    return vote(encode(item, annotator, label, classes), ties)


def vote(votes: Votes, ties: Ties) -> MajorityVote:
    """Apply `majority_vote` to encoded rows."""
    if ties not in get_args(Ties):
        raise PlanError(f"ties is {ties!r}: one of {', '.join(get_args(Ties))} is needed")
    k = len(votes.classes)
    ranked = np.sort(votes.counts, axis=1)
    margin = ranked[:, -1] - (ranked[:, -2] if k > 1 else 0)
    is_leading = votes.counts == ranked[:, -1:]
    posterior = is_leading / is_leading.sum(axis=1, keepdims=True)
    if ties != "shared":
        posterior = np.eye(k)[_break_ties(votes, is_leading, ties)]
    unlabelled = ~votes.has_label
    posterior[unlabelled] = 1.0 / k
    return MajorityVote(votes, posterior, (is_leading.sum(axis=1) > 1) & ~unlabelled, margin)


def _break_ties(votes: Votes, is_leading: Bools, ties: Ties) -> Ints:
    n, k = is_leading.shape
    if ties == "lowest":
        return np.asarray(is_leading.argmax(axis=1))
    if ties == "highest":
        return np.asarray(k - 1 - is_leading[:, ::-1].argmax(axis=1))
    first_row = np.full((n, k), len(votes.item))
    first_row[votes.item[::-1], votes.label[::-1]] = np.arange(len(votes.item) - 1, -1, -1)
    return np.asarray(np.where(is_leading, first_row, len(votes.item)).argmin(axis=1))


class VoteAgreement(NamedTuple):
    """Agreement of the annotators: `unanimous` is the share of items of which all rows have the same label; `pairwise`
    the mean over items of the share of pairs of rows that agree (1 for an item with one row)."""

    unanimous: float
    pairwise: float


def agreement(votes: Votes) -> VoteAgreement:
    """Return the agreement over the items that have a label."""
    counts = votes.counts[votes.has_label]
    size = counts.sum(axis=1)
    pairs = size * (size - 1)
    share = np.divide((counts * (counts - 1)).sum(axis=1), pairs, out=np.ones(len(size)), where=pairs > 0)
    return VoteAgreement(float((counts.max(axis=1) == size).mean()), float(share.mean()))


class AnnotatorPanel(NamedTuple):
    """Connection and size of a panel of annotators.

    `is_connected` [A]: annotators who share items, directly or through others, are one part; these are of the part with
    the most labels. `depth` is the number of labels for each free cell of all confusions, times the number of labels of
    an item beyond two, since two labels carry no information about confusions. Repeated rows count once.
    """

    is_connected: Bools
    depth: float


def panel(votes: Votes) -> AnnotatorPanel:
    """Return the largest part and the depth of a panel."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, a, k = votes.shape
    links = coo_array((np.ones(len(votes.item)), (votes.annotator, a + votes.item)), shape=(a + n, a + n))
    part = connected_components(links, directed=False)[1][:a]  # numbered by the first annotator of each
    has_label = np.bincount(votes.annotator, minlength=a) > 0
    largest = np.bincount(part[votes.annotator]).argmax()
    once = len(votes.item) - votes.repeated_rows
    labels_per_cell = once / (np.count_nonzero(has_label) * k * max(1, k - 1))
    depth = labels_per_cell * max(0.0, once / np.count_nonzero(votes.has_label) - 2.0)
    return AnnotatorPanel(has_label & (part == largest), depth)


def too_small(votes: Votes) -> str | None:
    """Return why a panel is too small for confusions of its own, so that the majority is used; None if it is not."""
    if (reason := not_identifiable(votes)) is not None:
        return reason
    if (depth := panel(votes).depth) < LEAST_DEPTH:
        return f"the panel's depth is {depth:.3g}, and below {LEAST_DEPTH:g} the majority is the better guess"
    return None


def not_identifiable(votes: Votes) -> str | None:
    """Return why many models fit a panel equally well: fewer than three annotators are connected. None if not."""
    annotators = int(np.count_nonzero(panel(votes).is_connected))
    if annotators >= FEWEST_ANNOTATORS:
        return None
    k = len(votes.classes)
    who = "one annotator is" if annotators == 1 else f"{annotators} annotators are"
    unknown = annotators * k * (k - 1) + k - 1
    problem = f"{who} not identifiable: {k**annotators - 1} free cells for {unknown} unknowns"
    return f"{problem}; the estimate depends on its start or its prior"


def doubts(votes: Votes, confusion: Floats, failure: str | None) -> Iterator[str]:
    """Yield warnings that a user needs before trusting an estimate, one sentence each.

    `confusion` [A,K,K] are the estimated confusions; `failure` says that the computation did not converge.
    """
    k = len(votes.classes)
    labels = np.bincount(votes.annotator, minlength=len(votes.annotators))
    if votes.repeated_rows:
        yield f"rows that repeat an item and annotator: {votes.repeated_rows}; each counts"
    if votes.abstentions:
        yield f"abstentions, left out: {votes.abstentions}"
    if unlabelled := int(np.count_nonzero(~votes.has_label)):
        yield f"items without a label: {unlabelled}; their posterior is the class shares, and they count for no agent"
    if (reason := not_identifiable(votes)) is not None:
        yield reason
    apart = ~panel(votes).is_connected & (labels > 0)
    if apart.any():
        yield f"no item connects the others with {_name_annotators(votes, apart)}: only the class shares join them"
    if failure is not None:
        yield failure
    if (labels < k).any():
        yield f"fewer labels than classes: little is known of {_name_annotators(votes, labels < k)}"
    usual_label = (confusion * labels[:, None, None]).sum(axis=0).argmax(axis=1).tolist()
    for true, other in enumerate(usual_label):
        if true != other:
            called = f"what the model takes for class {votes.classes[true]!r} is called {votes.classes[other]!r}"
            yield f"{called} more often: it may mean something else"


def _name_annotators(votes: Votes, chosen: Bools) -> str:
    names = [str(votes.annotators[index]) for index in np.flatnonzero(chosen).tolist()]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
