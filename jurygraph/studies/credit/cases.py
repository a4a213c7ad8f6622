"""Dependency cases: the edges of all examples, and the credit an aggregation rule lets through (GEAR, 4.3).

An example is one response with the graph of its task's rubric. Its edge is a leakage case if the child is locally
supported and the parent is not (p_child >= t, p_parent < t), and a satisfied case if both are.
"""

from collections.abc import Collection
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jurygraph.arrays import Bools, Floats, Ints, as_nonnegative, as_unit_interval, check_shape
from jurygraph.errors import GraphError

EDGE_KINDS = ("weak", "strong", "activation")
THRESHOLD = 0.5
"""t of GEAR, section 4.3: the lowest local score that counts as supported."""


@dataclass(frozen=True, eq=False, slots=True)
class Cases:
    """E edges, of all examples: one entry for each edge and response.

    Attributes:
        p_parent, p_child: local event scores of the ends, in [0, 1], [E].
        share: |w_child| / Σ_{w>0} w, at least 0, [E].
        kind: "weak", "strong" or "activation", [E].
        task: index of the task of each edge, at least 0, [E].

    Raises:
        GraphError: lengths that differ, or a value that is NaN, out of range or of an unknown kind; it is named.
    """

    p_parent: Floats
    p_child: Floats
    share: Floats
    kind: NDArray[np.str_]
    task: Ints

    def __post_init__(self) -> None:
        edges = len(self.p_child)
        for name in ("p_parent", "p_child", "share", "kind", "task"):
            check_shape(name, getattr(self, name), (edges,), error=GraphError)
        as_unit_interval("p_parent", self.p_parent, GraphError)
        as_unit_interval("p_child", self.p_child, GraphError)
        as_nonnegative("share", self.share, GraphError)
        unknown = sorted(set(np.unique(self.kind).tolist()) - set(EDGE_KINDS))
        if unknown:
            raise GraphError(f"{unknown[0]!r} is not a kind of edge; use {', '.join(EDGE_KINDS)}")
        as_nonnegative("task", self.task, GraphError)

    def violated_mask(self, kinds: Collection[str] = EDGE_KINDS, threshold: float = THRESHOLD) -> Bools:
        """Return a mask of the leakage cases among edges of these kinds, [E]."""
        return np.isin(self.kind, list(kinds)) & (self.p_child >= threshold) & (self.p_parent < threshold)

    def satisfied_mask(self, kinds: Collection[str] = EDGE_KINDS, threshold: float = THRESHOLD) -> Bools:
        """Return a mask of the satisfied cases among edges of these kinds, [E]."""
        return np.isin(self.kind, list(kinds)) & (self.p_child >= threshold) & (self.p_parent >= threshold)

    def leaked_shares(self, scores: ArrayLike) -> Floats:
        """Return the remaining utility of each child, as a share of the total: (|w| / Σ_{w>0} w) · s, [E]."""
        return self.share * self._validate_scores(scores)

    def preserved_shares(self, scores: ArrayLike) -> Floats:
        """Return the remaining share of each child's own score: s / p, [E]; 0 where p is 0."""
        return self._validate_scores(scores) / np.where(self.p_child > 0.0, self.p_child, 1.0)

    def _validate_scores(self, scores: ArrayLike) -> Floats:
        values = as_unit_interval("scores", scores, GraphError)
        check_shape("scores", values, self.p_child.shape, error=GraphError)
        return values


def leakage(
    cases: Cases, scores: ArrayLike, kinds: Collection[str] = EDGE_KINDS, threshold: float = THRESHOLD
) -> float | None:
    """Return the mean of (|w_child| / Σ_{w>0} w) · s_child over the leakage cases of all examples: Eq. 15 of GEAR.

    At least 0, lower is better; None without a case. Raises `GraphError` for scores that are NaN, outside [0, 1] or not
    one for each edge.

    Args:
        cases: the edges of all examples, [E].
        scores: s, each child's score under a rule, in [0, 1], [E].
        kinds: the kinds of edges that count.
        threshold: t.
    """
    leaked = cases.leaked_shares(scores)[cases.violated_mask(kinds, threshold)]
    return fmean(leaked) if len(leaked) else None


def preservation(
    cases: Cases, scores: ArrayLike, kinds: Collection[str] = EDGE_KINDS, threshold: float = THRESHOLD
) -> float | None:
    """Return the mean of s_child / p_child over the satisfied cases of all examples: Eq. 16 of GEAR.

    Arguments and errors as for `leakage`. In [0, 1] if s <= p, higher is better; None without a case.
    """
    preserved = cases.preserved_shares(scores)[cases.satisfied_mask(kinds, threshold)]
    return fmean(preserved) if len(preserved) else None
