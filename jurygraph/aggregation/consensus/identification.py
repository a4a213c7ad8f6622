"""What the votes cannot tell: said in words, and the rule by which a panel is too small for confusions of its own."""

from typing import NamedTuple

import numpy as np

from jurygraph.aggregation._inputs import FloatArray, IndexArray
from jurygraph.aggregation.consensus.em import Fitted, Rules
from jurygraph.aggregation.consensus.votes import Key, Votes

FEWEST_ANNOTATORS = 3
LEAST_DEPTH = 75.0
"""Below which the majority stands in. In simulations of 3, 5 and 9 annotators and 50, 200 and 1,000 items it is better
in accuracy or in the error of scores at depths of 8 to 58, and from 100 on the model is as good or better
(docs/consensus.md)."""
_SHOWN = 5


class Panel(NamedTuple):
    """How much a panel tells.

    Attributes:
        parts: the part of each annotator [A]: those are of one part whom items, one by one, connect. The part with the
            most labels is 0; who gave no label is of none, -1.
        depth: the labels for each free cell of all confusions, times the labels of an item beyond two, since two tell
            nothing of confusions. Repeated rows count once.
    """

    parts: IndexArray
    depth: float


def panel(votes: Votes) -> Panel:
    """How much a panel tells."""
    labels = np.bincount(votes.annotator, minlength=len(votes.annotators))
    said, part = labels > 0, _parts(votes)
    known = np.unique(part[said])
    order = np.argsort(-np.bincount(part, weights=labels)[known], kind="stable")
    place = np.full(len(part), -1)
    place[known[order]] = np.arange(len(known))
    k, once = len(votes.classes), len(votes.item) - votes.repeated
    a_cell = once / (np.count_nonzero(said) * k * max(1, k - 1))
    depth = a_cell * max(0.0, once / np.count_nonzero(votes.labelled) - 2.0)
    return Panel(np.where(said, place[part], -1), depth)


def too_small(votes: Votes) -> str | None:
    """Why a panel is too small for confusions of its own, so that the majority stands in; None where it is not."""
    seen = panel(votes)
    main = int(np.count_nonzero(seen.parts == 0))
    if main < FEWEST_ANNOTATORS:
        return _too_few(main, len(votes.classes))
    if seen.depth < LEAST_DEPTH:
        return f"the panel's depth is {seen.depth:.3g}, and below {LEAST_DEPTH:g} the majority is the better guess"
    return None


def _parts(votes: Votes) -> IndexArray:
    """The part of each annotator, [A]: annotators are of one part where items, one by one, connect them."""
    part = np.arange(len(votes.annotators))
    while True:
        least = np.full(len(votes.items), len(part))
        np.minimum.at(least, votes.item, part[votes.annotator])
        reached = part.copy()
        np.minimum.at(reached, votes.annotator, least[votes.item])
        reached = reached[reached]  # halves what is left to go
        if (reached == part).all():
            return np.unique(part, return_inverse=True)[1]
        part = reached


def doubts(votes: Votes, fitted: Fitted, rules: Rules) -> tuple[str, ...]:
    """What a user has to know before trusting the estimate, a sentence each."""
    k = len(votes.classes)
    told = [*_of_rows(votes), *_of_panel(votes, panel(votes).parts)]
    if not fitted.converged:
        told.append(f"not converged after {fitted.iterations} steps: the figures still move by more than {rules.tol:g}")
    lone = np.flatnonzero(np.bincount(votes.annotator, minlength=len(votes.annotators)) < k)
    if len(lone):
        named = _named([votes.annotators[one] for one in lone[:_SHOWN]], len(lone))
        told.append(f"fewer labels than classes: little is known of {named}")
    return (*told, *_misnamed(votes, fitted.model.confusion.reshape(k, -1, k)))


def _of_rows(votes: Votes) -> list[str]:
    told = []
    if votes.repeated:
        told.append(f"rows that repeat an item and annotator: {votes.repeated}; each counts")
    if votes.abstained:
        told.append(f"abstentions, left out: {votes.abstained}")
    silent = int(np.count_nonzero(~votes.labelled))
    if silent:
        told.append(
            f"items without a label: {silent}; their posterior is the class shares, and they count for no agent"
        )
    return told


def _of_panel(votes: Votes, parts: IndexArray) -> list[str]:
    main, apart = int(np.count_nonzero(parts == 0)), np.flatnonzero(parts > 0)
    told = [_too_few(main, len(votes.classes))] if main < FEWEST_ANNOTATORS else []
    if len(apart):
        named = _named([votes.annotators[one] for one in apart[:_SHOWN]], len(apart))
        told.append(f"no item connects the others with {named}: only the class shares join them")
    return told


def _too_few(annotators: int, k: int) -> str:
    cells, unknown = k**annotators - 1, annotators * k * (k - 1) + k - 1
    many = "one annotator" if annotators == 1 else f"{annotators} annotators"
    where = f"{many} cannot be told apart: {cells} free cells for {unknown} unknowns"
    return f"{where}; the estimate rests on where it started"


def _misnamed(votes: Votes, confusion: FloatArray) -> list[str]:
    """A sentence for each class [K,A,K] that on the whole is called by another name more often than by its own."""
    labels = np.bincount(votes.annotator, minlength=len(votes.annotators))
    said = (confusion * labels[:, None]).sum(axis=1).argmax(axis=1).tolist()
    return [
        f"what the model takes for class {votes.classes[true]!r} is called {votes.classes[other]!r} more often: it may "
        "mean something else"
        for true, other in enumerate(said)
        if true != other
    ]


def _named(shown: list[Key], many: int) -> str:
    names = ", ".join(map(str, shown))
    return names if many <= len(shown) else f"{names} and {many - len(shown)} more"
