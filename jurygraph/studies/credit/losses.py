"""Criteria that lost most credit under GEAR, with the edge that caused it."""

from collections.abc import Iterator, Sequence
from statistics import fmean

import numpy as np

from jurygraph.studies.credit.report import Loss
from jurygraph.studies.credit.sheets import RubricSheet


def losses(sheets: Sequence[RubricSheet], kappa: float) -> tuple[Loss, ...]:
    """Return every criterion that lost anything at this κ, the greatest mean loss first, then by task and id."""
    unsorted = (loss for sheet in sheets for loss in _sheet_losses(sheet, kappa))
    return tuple(sorted(unsorted, key=lambda one: (-one.mean_loss, one.task, one.criterion)))


def _sheet_losses(sheet: RubricSheet, kappa: float) -> Iterator[Loss]:
    retention, shares = sheet.retention(kappa), sheet.shares()
    q = sheet.gated_scores(retention)
    # 1 - f of each edge, [R, E]: an unjudged parent supports no gain, and every penalty
    fill = np.where(sheet.weights[list(sheet.children)] > 0, 0.0, 1.0)
    parent_scores = np.where(sheet.is_judged[:, sheet.parents], q[:, sheet.parents], fill)
    reductions = (1.0 - parent_scores) * (1.0 - np.asarray(retention))
    for child in sorted(set(sheet.children)):
        rows = np.flatnonzero(sheet.is_judged[:, child])
        share, p = shares[rows, child], sheet.p[rows, child]
        lost = share * (p - q[rows, child])
        if not (lost > 0.0).any():
            continue
        incoming = [edge for edge, end in enumerate(sheet.children) if end == child]
        edge = max(incoming, key=lambda edge: fmean(share * p * reductions[rows, edge]))
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
