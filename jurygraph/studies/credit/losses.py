"""Criteria that lost most credit under GEAR, with the edge that caused it."""

from collections.abc import Iterator, Sequence
from statistics import fmean

import numpy as np

from jurygraph.aggregation.arrays import Floats
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Count, Id, Number, Unit
from jurygraph.schema.rubric import Kind
from jurygraph.studies.credit.rules import shares
from jurygraph.studies.credit.sheets import RubricSheet


class Loss(FrozenModel):
    """The loss of a criterion: (|w| / Σ_{w>0} w) · (p - q), a share of the total reward; for a penalty, the deduction
    avoided.

    `mean_loss` is the mean over the `responses` in which it was judged, `most` the greatest loss, of response
    `max_loss_response`. `parent`
    is the one that takes most over these responses: for q = p Π f, the mean of (|w| / Σ_{w>0} w) · p · (1 - f) is
    greatest for its factor f; `kind`, `retention` (λ at the run's κ) and `reason` are those of its edge.
    """

    task: Id
    criterion: Id
    weight: Number
    responses: Count
    mean_loss: Number
    most: Number
    max_loss_response: Id
    parent: Id
    kind: Kind
    retention: Unit
    reason: str


def losses(sheets: Sequence[RubricSheet], kappa: float) -> tuple[Loss, ...]:
    """Return every criterion that lost anything at this κ, the greatest mean loss first, then by task and id."""
    unsorted = (loss for sheet in sheets for loss in _sheet_losses(sheet, kappa))
    return tuple(sorted(unsorted, key=lambda one: (-one.mean_loss, one.task, one.criterion)))


def _sheet_losses(sheet: RubricSheet, kappa: float) -> Iterator[Loss]:
    retention = sheet.retention(kappa)
    q, share = sheet.gated_scores(sheet.graph, retention), shares(sheet)
    loss = share * (sheet.p - q)
    reductions = _edge_reductions(sheet, q, retention)
    for child in sorted(set(sheet.children)):
        rows = np.flatnonzero(sheet.is_judged[:, child])
        lost = loss[rows, child]
        if not (lost > 0.0).any():
            continue
        incoming = [edge for edge, end in enumerate(sheet.children) if end == child]
        means = [fmean(share[rows, child] * sheet.p[rows, child] * reductions[rows, edge]) for edge in incoming]
        edge = incoming[int(np.argmax(means))]
        yield Loss(
            task=sheet.task,
            criterion=sheet.criteria[child],
            weight=float(sheet.weights[child]),
            responses=len(rows),
            mean_loss=fmean(lost),
            most=float(lost.max()),
            max_loss_response=sheet.responses[int(rows[lost.argmax()])],
            parent=sheet.edges[edge].parent,
            kind=sheet.edges[edge].kind,
            retention=retention[edge],
            reason=sheet.edges[edge].reason,
        )


def _edge_reductions(sheet: RubricSheet, q: Floats, retention: Sequence[float]) -> Floats:
    """Return 1 - f of each edge, [R, E]; an unjudged parent supports no gain, and every penalty."""
    default = np.where(sheet.weights[list(sheet.children)] > 0, 0.0, 1.0)
    parent_scores = np.where(sheet.is_judged[:, sheet.parents], q[:, sheet.parents], default)
    return np.asarray((1.0 - parent_scores) * (1.0 - np.asarray(retention)))
