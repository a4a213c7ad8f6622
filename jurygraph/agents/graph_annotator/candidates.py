"""Pairs of criteria that may license each other, by their roles alone (GEAR, Appendices A.2 and A.3)."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jurygraph.schema.rubric import Kind, Role

_PREREQUISITE: tuple[Kind, ...] = ("weak", "strong")
_ACTIVATION: tuple[Kind, ...] = ("activation",)
LICENSED: Mapping[tuple[Role, Role], tuple[Kind, ...]] = {
    ("core", "core"): _PREREQUISITE,
    ("core", "additional"): _PREREQUISITE,
    ("core", "penalty"): _PREREQUISITE,
    ("applicability", "additional"): _ACTIVATION,
    ("applicability", "penalty"): _ACTIVATION,
}
"""The possible kinds of edges from a criterion of one role to one of another; other combinations have none."""


class Pair(NamedTuple):
    """Two criteria, by their ids, of which the parent may license the child."""

    parent: str
    child: str

    def __str__(self) -> str:
        return f"{self.parent} -> {self.child}"


def kinds_between(roles: Mapping[str, Role], pair: Pair) -> tuple[Kind, ...]:
    """Return the kinds of edge that a pair can have; none if either has no role."""
    if pair.parent == pair.child or pair.parent not in roles or pair.child not in roles:
        return ()
    return LICENSED.get((roles[pair.parent], roles[pair.child]), ())


def candidate_pairs(roles: Mapping[str, Role]) -> tuple[Pair, ...]:
    """Return every pair that can have an edge. The two directions of a pair are adjacent; otherwise in id order."""
    return sort_pairs(pair for parent in roles for child in roles if kinds_between(roles, pair := Pair(parent, child)))


def sort_pairs(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """Return the pairs in the order in which a model gets them, independent of their order here."""
    return tuple(sorted(pairs, key=lambda pair: (min(pair), max(pair), pair)))
