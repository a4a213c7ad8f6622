"""The models of an annotator's reply, and its validation, independently of the order of its entries.

The schema sent to the model allows only existing ids; the reply is parsed with any id, so that an unknown one
invalidates an answer and not the whole reply.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, create_model

from jurygraph.messages import shorten
from jurygraph.schema import Criterion, FrozenModel
from jurygraph.schema.task import Kind, Role

_MAX_ENTRIES = 1024

Reason = Annotated[str, Field(max_length=1000)]
Named = Annotated[str, Field(max_length=600)]
Percent = Annotated[int, Field(strict=True, ge=0, le=100)]
Relation = Literal["none", "weak", "strong", "activation"]


# No docstrings below: they would be part of the JSON schema that a model is given.


class RoleReply(FrozenModel):
    reason: Reason
    criterion: Named
    role: Role


class RolesReply(FrozenModel):
    roles: tuple[RoleReply, ...] = Field(max_length=_MAX_ENTRIES)


class EdgeReply(FrozenModel):
    reason: Reason
    parent: Named
    child: Named
    relation: Relation
    confidence: Percent

    @property
    def confidence_share(self) -> float:
        return self.confidence / 100


class EdgesReply(FrozenModel):
    pairs: tuple[EdgeReply, ...] = Field(max_length=_MAX_ENTRIES)


@lru_cache(maxsize=256)
def roles_reply_model(criteria: tuple[str, ...]) -> type[FrozenModel]:
    """Return the schema of a reply about the roles of these criteria."""
    role_model = create_model("RoleStated", __base__=RoleReply, criterion=_one_of(criteria))
    return create_model("RolesReply", __base__=FrozenModel, roles=_list_of(role_model, len(criteria)))


@lru_cache(maxsize=256)
def edges_reply_model(pairs: tuple[tuple[str, str], ...]) -> type[FrozenModel]:
    """Return the schema of a reply about these pairs, each a parent and a child."""
    parents, children = (tuple(sorted(set(ends))) for ends in zip(*pairs, strict=True))
    pair_model = create_model("PairReply", __base__=EdgeReply, parent=_one_of(parents), child=_one_of(children))
    return create_model("PairsStated", __base__=FrozenModel, pairs=_list_of(pair_model, len(pairs)))


def _one_of(names: Sequence[str]) -> Any:
    return Literal[tuple(names)], ...


def _list_of(entry_model: type[FrozenModel], count: int) -> Any:
    return tuple[entry_model, ...], Field(min_length=count, max_length=count)  # type: ignore[valid-type]


LICENSED: Mapping[tuple[Role, Role], tuple[Kind, ...]] = {
    ("core", "core"): ("weak", "strong"),
    ("core", "additional"): ("weak", "strong"),
    ("core", "penalty"): ("weak", "strong"),
    ("applicability", "additional"): ("activation",),
    ("applicability", "penalty"): ("activation",),
}
"""The possible kinds of edges from a criterion of one role to one of another; other combinations have none."""


class CriterionPair(NamedTuple):
    """Two criteria, by their ids, of which the parent may license the child."""

    parent: str
    child: str

    def __str__(self) -> str:
        return f"{self.parent} -> {self.child}"


def kinds_between(roles: Mapping[str, Role], pair: CriterionPair) -> tuple[Kind, ...]:
    """Return the kinds of edge that a pair can have; none if either has no role."""
    if pair.parent == pair.child or pair.parent not in roles or pair.child not in roles:
        return ()
    return LICENSED.get((roles[pair.parent], roles[pair.child]), ())


def candidate_pairs(roles: Mapping[str, Role]) -> tuple[CriterionPair, ...]:
    """Return every pair that can have an edge. The two directions of a pair are adjacent; otherwise in id order."""
    return sort_pairs(
        pair for parent in roles for child in roles if kinds_between(roles, pair := CriterionPair(parent, child))
    )


def sort_pairs(pairs: Iterable[CriterionPair]) -> tuple[CriterionPair, ...]:
    """Return the pairs in the order in which a model gets them, independent of their order here."""
    return tuple(sorted(pairs, key=lambda pair: (min(pair), max(pair), pair)))


@dataclass(frozen=True, slots=True)
class CheckedRoles:
    """The accepted roles, and the problems: `unassigned` by criterion id, and `unknown_names` for unknown names."""

    roles: dict[str, Role] = field(default_factory=dict)
    unassigned: dict[str, str] = field(default_factory=dict)
    unknown_names: tuple[str, ...] = ()

    @property
    def problems(self) -> list[str]:
        """Return all problems, in sentences."""
        return [*(f"{_quote(name)} {why}" for name, why in self.unassigned.items()), *self.unknown_names]


def check_roles(replies: Iterable[RoleReply], criteria: Mapping[str, Criterion]) -> CheckedRoles:
    """Validate the roles of a reply about `criteria`, which are given by their ids."""
    roles: dict[str, set[Role]] = defaultdict(set)
    for reply in replies:
        roles[reply.criterion].add(reply.role)
    checked = CheckedRoles(
        unknown_names=tuple(f"{_quote(name)} was not asked about" for name in sorted({*roles} - {*criteria}))
    )
    for name, criterion in sorted(criteria.items()):
        why = _wrong_role(criterion, sorted(roles[name]))
        if why is None:
            (checked.roles[name],) = roles[name]
        else:
            checked.unassigned[name] = why
    return checked


def _wrong_role(criterion: Criterion, roles: Sequence[Role]) -> str | None:
    if not roles:
        return "was given no role"
    if len(roles) > 1:
        return f"was given the roles {' and '.join(roles)}"
    if (roles[0] == "penalty") != (criterion.weight < 0) and roles[0] != "applicability":
        sign = "negative" if criterion.weight < 0 else "positive"
        return f"has {sign} points and was given the role {roles[0]}"
    return None


@dataclass(frozen=True, slots=True)
class CheckedEdges:
    """The accepted answers; the rejected ones, with the reasons; and the pairs without an answer, with the reasons."""

    answers: dict[CriterionPair, EdgeReply] = field(default_factory=dict)
    rejected: tuple[tuple[EdgeReply, str], ...] = ()
    unanswered: dict[CriterionPair, str] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        """Return all problems, in sentences."""
        messages = [f"{_quote(f'{edge.parent} -> {edge.child}')}: {why}" for edge, why in self.rejected]
        return [*messages, *(f"{_quote(str(pair))}: {why}" for pair, why in self.unanswered.items())]


def check_edges(
    edges: Iterable[EdgeReply], requested: Sequence[CriterionPair], roles: Mapping[str, Role], known: Iterable[str]
) -> CheckedEdges:
    """Validate a reply about the pairs `requested`; `known` are the ids of all criteria.

    A pair with two different kinds gets none, and of two equal answers the more confident counts.
    """
    answers: dict[CriterionPair, EdgeReply] = {}
    rejected: list[tuple[EdgeReply, str]] = []
    by_pair: dict[CriterionPair, list[EdgeReply]] = defaultdict(list)
    ids = frozenset(known)
    for edge in sorted(edges, key=lambda edge: (edge.parent, edge.child, edge.relation, -edge.confidence, edge.reason)):
        pair = CriterionPair(edge.parent, edge.child)
        why = _wrong_edge(edge.relation, pair, requested, roles, ids)
        if why is None:
            by_pair[pair].append(edge)
        else:
            rejected.append((edge, why))
    for pair, pair_edges in by_pair.items():
        kinds = sorted({edge.relation for edge in pair_edges})
        if len(kinds) > 1:
            rejected += [(edge, f"the pair is said to be {' and '.join(kinds)}") for edge in pair_edges]
        else:
            answers[pair] = pair_edges[0]
            rejected += [(edge, "the pair is listed twice") for edge in pair_edges[1:]]
    rejected_pairs = {CriterionPair(edge.parent, edge.child) for edge, _ in rejected}
    unanswered = {pair: "was not answered" for pair in requested if pair not in answers and pair not in rejected_pairs}
    return CheckedEdges(answers, tuple(rejected), unanswered)


def _wrong_edge(
    relation: Relation,
    pair: CriterionPair,
    requested: Sequence[CriterionPair],
    roles: Mapping[str, Role],
    ids: frozenset[str],
) -> str | None:
    """Return why an answer is not about a requested pair, or not of a kind between its roles; None if it is valid."""
    kinds = kinds_between(roles, pair)
    if pair in requested:
        known = f"{' or '.join(kinds)} does"
        wrong = f"{relation} does not go from {roles[pair.parent]} to {roles[pair.child]}, but {known}"
        return None if relation in ("none", *kinds) else wrong
    unknown = [name for name in pair if name not in ids]
    if unknown:
        return f"{_quote(unknown[0])} is no criterion of the rubric"
    if pair.parent == pair.child:
        return "it joins a criterion to itself"
    if not kinds:
        if CriterionPair(pair.child, pair.parent) in requested:
            return "it is the wrong way round: the pair that was asked about has the other direction"
        roles_of_pair = [roles.get(name, "criterion without role") for name in pair]
        return f"a criterion of role {roles_of_pair[0]} licenses none of role {roles_of_pair[1]}"
    return "the pair was not asked about in this request"


def _quote(name: str) -> str:
    return f"“{shorten(name, 80)}”"
