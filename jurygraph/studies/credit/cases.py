"""Dependency cases: the edges of all examples side by side, and what an aggregation rule lets through (GEAR, 4.3).

An example is one response with the graph of its rubric. An edge of it is a leakage case where the child is locally
supported and the parent is not (p_child >= t, p_parent < t), and a satisfied one where both are.
"""

from collections.abc import Collection
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jurygraph.errors import GraphError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

PREREQUISITE = ("weak", "strong")
ACTIVATION = ("activation",)
EDGE_KINDS = (*PREREQUISITE, *ACTIVATION)
THRESHOLD = 0.5
"""t of GEAR, section 4.3: from which local score an event counts as supported."""


@dataclass(frozen=True, eq=False, slots=True)
class Cases:
    """E edges, of all examples: one entry for each edge and response.

    Attributes:
        p_parent: local event score of the parent, in [0, 1], [E].
        p_child: local event score of the child, in [0, 1], [E].
        share: |w_child| / Σ_{w>0} w, at least 0, [E].
        kind: "weak", "strong" or "activation", [E].
        example: which example an edge belongs to, in 0..examples-1, [E].
        examples: how many examples there are, those without a case too.

    Raises:
        GraphError: lengths that differ, or a value that is NaN, out of range or of an unknown kind; it is named.
    """

    p_parent: Floats
    p_child: Floats
    share: Floats
    kind: NDArray[np.str_]
    example: Ints
    examples: int

    def __post_init__(self) -> None:
        edges = len(self.p_child)
        for name in ("p_parent", "p_child", "share", "kind", "example"):
            if np.shape(getattr(self, name)) != (edges,):
                raise GraphError(f"{name} has shape {np.shape(getattr(self, name))}: one for each of {edges} edges")
        for name, most in (("p_parent", 1.0), ("p_child", 1.0), ("share", np.finfo(np.float64).max)):
            _refuse_outside(name, getattr(self, name), most)
        unknown = sorted(set(np.unique(self.kind).tolist()) - set(EDGE_KINDS))
        if unknown:
            raise GraphError(f"{unknown[0]!r} is no kind of edge: {', '.join(EDGE_KINDS)} are")
        if edges and not (self.example.min() >= 0 and self.example.max() < self.examples):
            raise GraphError(f"example names one outside 0..{self.examples - 1}")

    def violated(self, kinds: Collection[str] = EDGE_KINDS, threshold: float = THRESHOLD) -> Bools:
        """The leakage cases among edges of these kinds, [E]."""
        return self._among(kinds) & (self.p_child >= threshold) & (self.p_parent < threshold)

    def satisfied(self, kinds: Collection[str] = EDGE_KINDS, threshold: float = THRESHOLD) -> Bools:
        """The satisfied cases among edges of these kinds, [E]."""
        return self._among(kinds) & (self.p_child >= threshold) & (self.p_parent >= threshold)

    def _among(self, kinds: Collection[str]) -> Bools:
        return np.isin(self.kind, list(kinds))

    def leaked(self, scores: ArrayLike) -> Floats:
        """What is left of each child's utility, as a share of the whole: (|w| / Σ_{w>0} w) · s, [E]."""
        return self.share * self._checked(scores)

    def kept(self, scores: ArrayLike) -> Floats:
        """What is left of each child's own score: s / p, [E]; 0 where p is 0."""
        return self._checked(scores) / np.where(self.p_child > 0.0, self.p_child, 1.0)

    def _checked(self, scores: ArrayLike) -> Floats:
        given = np.asarray(scores, dtype=np.float64)
        if given.shape != self.p_child.shape:
            raise GraphError(f"scores have shape {given.shape}: one for each of {len(self.p_child)} edges")
        _refuse_outside("scores", given, 1.0)
        return given


def _refuse_outside(name: str, values: Floats, most: float) -> None:
    wrong = ~((values >= 0.0) & (values <= most))
    if wrong.any():
        expected = "[0, 1]" if most == 1.0 else "[0, ∞)"
        raise GraphError(f"{name}[{int(wrong.argmax())}] is {values[wrong][0]}: a number in {expected} is needed")


def leakage(
    cases: Cases, scores: ArrayLike, kinds: Collection[str] = EDGE_KINDS, threshold: float = THRESHOLD
) -> float | None:
    """Mean of (|w_child| / Σ_{w>0} w) · s_child over the leakage cases of all examples: Eq. 15 of GEAR.

    Args:
        cases: the edges of all examples, [E].
        scores: s, what a rule leaves of each child's p, in [0, 1], [E].
        kinds: the kinds of edges that count.
        threshold: t.

    Returns:
        A number of at least 0, the less the better; None without a case.

    Raises:
        GraphError: scores that are NaN, outside [0, 1] or not one for each edge.
    """
    leaked = cases.leaked(scores)[cases.violated(kinds, threshold)]
    return fmean(leaked) if len(leaked) else None


def preservation(
    cases: Cases, scores: ArrayLike, kinds: Collection[str] = EDGE_KINDS, threshold: float = THRESHOLD
) -> float | None:
    """Mean of s_child / p_child over the satisfied cases of all examples: Eq. 16 of GEAR.

    Arguments and errors as for `leakage`. In [0, 1] where s <= p, the more the better; None without a case.
    """
    kept = cases.kept(scores)[cases.satisfied(kinds, threshold)]
    return fmean(kept) if len(kept) else None
