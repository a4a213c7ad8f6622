"""Identifiability: warnings about an estimate, and the rule for panels too small for confusions of their own."""

from typing import NamedTuple

import numpy as np

from jurygraph.aggregation.arrays import Floats, Ints
from jurygraph.aggregation.consensus.em import Fitted, Rules
from jurygraph.aggregation.consensus.votes import Key, Votes

FEWEST_ANNOTATORS = 3
LEAST_DEPTH = 75.0
"""Depth below which the majority is used.

In simulations of 3, 5 and 9 annotators and 50, 200 and 1,000 items the majority is better in accuracy or in the error
of scores at depths of 8 to 58, and from 100 on the model is as good or better (docs/consensus.md).
"""
_SHOWN = 5


class Panel(NamedTuple):
    """Size and connection of a panel of annotators.

    Attributes:
        parts: the part of each annotator [A]: annotators connected by shared items, directly or through others, are in
            one part. The part with the most labels is 0; annotators without a label have -1.
        depth: the number of labels for each free cell of all confusions, times the number of labels of an item beyond
            two, since two labels carry no information about confusions. Repeated rows count once.
    """

    parts: Ints
    depth: float


def panel(votes: Votes) -> Panel:
    """Return the parts and the depth of a panel."""
    labels = np.bincount(votes.annotator, minlength=len(votes.annotators))
    has_label, part = labels > 0, _parts(votes)
    used_parts = np.unique(part[has_label])
    order = np.argsort(-np.bincount(part, weights=labels)[used_parts], kind="stable")
    rank = np.full(len(part), -1)
    rank[used_parts[order]] = np.arange(len(used_parts))
    k, once = len(votes.classes), len(votes.item) - votes.repeated_rows
    labels_per_cell = once / (np.count_nonzero(has_label) * k * max(1, k - 1))
    depth = labels_per_cell * max(0.0, once / np.count_nonzero(votes.has_label) - 2.0)
    return Panel(np.where(has_label, rank[part], -1), depth)


def too_small(votes: Votes) -> str | None:
    """Return why a panel is too small for confusions of its own, so that the majority is used; None if it is not."""
    size = panel(votes)
    main = int(np.count_nonzero(size.parts == 0))
    if main < FEWEST_ANNOTATORS:
        return _describe_few_annotators(main, len(votes.classes))
    if size.depth < LEAST_DEPTH:
        return f"the panel's depth is {size.depth:.3g}, and below {LEAST_DEPTH:g} the majority is the better guess"
    return None


def _parts(votes: Votes) -> Ints:
    """Return the part of each annotator, [A]: annotators are in one part if items connect them, directly or not."""
    part = np.arange(len(votes.annotators))
    while True:
        least = np.full(len(votes.items), len(part))
        np.minimum.at(least, votes.item, part[votes.annotator])
        reached = part.copy()
        np.minimum.at(reached, votes.annotator, least[votes.item])
        reached = reached[reached]  # pointer jumping: halves the remaining steps
        if (reached == part).all():
            return np.unique(part, return_inverse=True)[1]
        part = reached


def doubts(votes: Votes, fitted: Fitted, rules: Rules) -> tuple[str, ...]:
    """Return warnings that a user needs before trusting the estimate, one sentence each."""
    k = len(votes.classes)
    warnings = [*_row_warnings(votes), *_panel_warnings(votes, panel(votes).parts)]
    if not fitted.converged:
        warnings.append(
            f"not converged after {fitted.iterations} steps: the figures still move by more than {rules.tol:g}"
        )
    sparse = np.flatnonzero(np.bincount(votes.annotator, minlength=len(votes.annotators)) < k)
    if len(sparse):
        named = _join_names([votes.annotators[index] for index in sparse[:_SHOWN]], len(sparse))
        warnings.append(f"fewer labels than classes: little is known of {named}")
    return (*warnings, *_class_warnings(votes, fitted.model.confusion.reshape(k, -1, k)))


def _row_warnings(votes: Votes) -> list[str]:
    warnings = []
    if votes.repeated_rows:
        warnings.append(f"rows that repeat an item and annotator: {votes.repeated_rows}; each counts")
    if votes.abstentions:
        warnings.append(f"abstentions, left out: {votes.abstentions}")
    unlabelled = int(np.count_nonzero(~votes.has_label))
    if unlabelled:
        warnings.append(
            f"items without a label: {unlabelled}; their posterior is the class shares, and they count for no agent"
        )
    return warnings


def _panel_warnings(votes: Votes, parts: Ints) -> list[str]:
    connected, unconnected = int(np.count_nonzero(parts == 0)), np.flatnonzero(parts > 0)
    warnings = [_describe_few_annotators(connected, len(votes.classes))] if connected < FEWEST_ANNOTATORS else []
    if len(unconnected):
        named = _join_names([votes.annotators[index] for index in unconnected[:_SHOWN]], len(unconnected))
        warnings.append(f"no item connects the others with {named}: only the class shares join them")
    return warnings


def _describe_few_annotators(annotators: int, k: int) -> str:
    cells, unknown = k**annotators - 1, annotators * k * (k - 1) + k - 1
    who = "one annotator" if annotators == 1 else f"{annotators} annotators"
    problem = f"{who} cannot be told apart: {cells} free cells for {unknown} unknowns"
    return f"{problem}; the estimate rests on where it started"


def _class_warnings(votes: Votes, confusion: Floats) -> list[str]:
    """Return a sentence for each class that is on the whole labelled as another class; `confusion` is [K,A,K]."""
    labels = np.bincount(votes.annotator, minlength=len(votes.annotators))
    usual_label = (confusion * labels[:, None]).sum(axis=1).argmax(axis=1).tolist()
    return [
        f"what the model takes for class {votes.classes[true]!r} is called {votes.classes[other]!r} more often: it may "
        "mean something else"
        for true, other in enumerate(usual_label)
        if true != other
    ]


def _join_names(shown: list[Key], count: int) -> str:
    names = ", ".join(map(str, shown))
    return names if count <= len(shown) else f"{names} and {count - len(shown)} more"
