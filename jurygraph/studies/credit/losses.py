"""Which criteria lost most credit under GEAR, and over which edge."""

from collections.abc import Iterator, Sequence
from statistics import fmean

import numpy as np

from jurygraph.agents.roles import Floats
from jurygraph.schema import Noun
from jurygraph.schema.noun import Count, Id, Number, Unit
from jurygraph.schema.rubric import Kind
from jurygraph.studies.credit.measuring import shares
from jurygraph.studies.credit.sheets import Sheet


class Loss(Noun):
    """What a criterion lost: (|w| / Σ_{w>0} w) · (p - q), a share of the reward's whole; of a penalty, what it spared.

    `lost` is the mean over the `responses` in which it was judged, `most` the greatest loss, of response `worst`.
    `parent` is the one that takes most over these responses: of q = p Π f the mean of (|w| / Σ_{w>0} w) · p · (1 - f)
    is greatest for its factor f; `kind`, `retention` (λ at the run's κ) and `reason` are its edge's.
    """

    task: Id
    criterion: Id
    weight: Number
    responses: Count
    lost: Number
    most: Number
    worst: Id
    parent: Id
    kind: Kind
    retention: Unit
    reason: str


def losses(sheets: Sequence[Sheet], kappa: float) -> tuple[Loss, ...]:
    """Every criterion that lost anything at this κ, the greatest mean loss first, then by task and id."""
    found = (loss for sheet in sheets for loss in _of(sheet, kappa))
    return tuple(sorted(found, key=lambda one: (-one.lost, one.task, one.criterion)))


def _of(sheet: Sheet, kappa: float) -> Iterator[Loss]:
    retention = sheet.retention(kappa)
    q, share = sheet.gated(sheet.graph, retention), shares(sheet)
    taken = share * (sheet.p - q)
    over = _over_edges(sheet, q, retention)
    for child in sorted(set(sheet.children)):
        rows = np.flatnonzero(sheet.decided[:, child])
        lost = taken[rows, child]
        if not (lost > 0.0).any():
            continue
        mine = [edge for edge, end in enumerate(sheet.children) if end == child]
        means = [fmean(share[rows, child] * sheet.p[rows, child] * over[rows, edge]) for edge in mine]
        edge = mine[int(np.argmax(means))]
        yield Loss(
            task=sheet.task,
            criterion=sheet.criteria[child],
            weight=float(sheet.weights[child]),
            responses=len(rows),
            lost=fmean(lost),
            most=float(lost.max()),
            worst=sheet.responses[int(rows[lost.argmax()])],
            parent=sheet.edges[edge].parent,
            kind=sheet.edges[edge].kind,
            retention=retention[edge],
            reason=sheet.edges[edge].reason,
        )


def _over_edges(sheet: Sheet, q: Floats, retention: Sequence[float]) -> Floats:
    """1 - f of each edge, [R, E]; an unjudged parent supports no gain, and every penalty."""
    credit = np.where(sheet.weights[list(sheet.children)] > 0, 0.0, 1.0)
    held = np.where(sheet.decided[:, sheet.parents], q[:, sheet.parents], credit)
    return np.asarray((1.0 - held) * (1.0 - np.asarray(retention)))
