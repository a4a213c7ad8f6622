"""Validate an annotator's reply, independently of the order of its entries."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jurygraph.agents.graph_annotator.candidates import Pair, kinds_between
from jurygraph.agents.graph_annotator.reply import EdgeReply, RoleReply
from jurygraph.messages import shorten
from jurygraph.schema import Criterion
from jurygraph.schema.rubric import Role

_MAX_CHARACTERS = 80


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
    for name in sorted(criteria):
        why = _wrong_role(criteria[name], sorted(roles[name]))
        if why is None:
            checked.roles[name] = next(iter(roles[name]))
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

    answers: dict[Pair, EdgeReply] = field(default_factory=dict)
    rejected: tuple[tuple[EdgeReply, str], ...] = ()
    unanswered: dict[Pair, str] = field(default_factory=dict)

    @property
    def wrong(self) -> list[str]:
        """Return all problems, in sentences."""
        messages = [f"{_quote(f'{edge.parent} -> {edge.child}')}: {why}" for edge, why in self.rejected]
        return [*messages, *(f"{_quote(str(pair))}: {why}" for pair, why in self.unanswered.items())]


def check_edges(
    edges: Iterable[EdgeReply], requested: Sequence[Pair], roles: Mapping[str, Role], known: Iterable[str]
) -> CheckedEdges:
    """Validate a reply about the pairs `requested`; `known` are the ids of all criteria.

    A pair with two different kinds gets none, and of two equal answers the more confident counts.
    """
    answers: dict[Pair, EdgeReply] = {}
    rejected: list[tuple[EdgeReply, str]] = []
    by_pair: dict[Pair, list[EdgeReply]] = defaultdict(list)
    ids = frozenset(known)
    for edge in sorted(edges, key=_sort_key):
        pair = Pair(edge.parent, edge.child)
        why = _wrong_pair(pair, requested, roles, ids) or _wrong_kind(edge, pair, roles)
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
    rejected_pairs = {Pair(edge.parent, edge.child) for edge, _ in rejected}
    unanswered = {pair: "was not answered" for pair in requested if pair not in answers and pair not in rejected_pairs}
    return CheckedEdges(answers, tuple(rejected), unanswered)


def _sort_key(edge: EdgeReply) -> tuple[str, str, str, int, str]:
    return edge.parent, edge.child, edge.relation, -edge.confidence, edge.reason


def _wrong_pair(pair: Pair, requested: Sequence[Pair], roles: Mapping[str, Role], ids: frozenset[str]) -> str | None:
    """Return why an answer's pair is not one of the requested pairs; None if it is."""
    if pair in requested:
        return None
    unknown = [name for name in pair if name not in ids]
    if unknown:
        return f"{_quote(unknown[0])} is no criterion of the rubric"
    if pair.parent == pair.child:
        return "it joins a criterion to itself"
    if not kinds_between(roles, pair):
        if Pair(pair.child, pair.parent) in requested:
            return "it is the wrong way round: the pair that was asked about has the other direction"
        roles_of_pair = [roles.get(name, "criterion without role") for name in pair]
        return f"a criterion of role {roles_of_pair[0]} licenses none of role {roles_of_pair[1]}"
    return "the pair was not asked about in this request"


def _wrong_kind(edge: EdgeReply, pair: Pair, roles: Mapping[str, Role]) -> str | None:
    kinds = kinds_between(roles, pair)
    if edge.relation == "none" or edge.relation in kinds:
        return None
    return (
        f"{edge.relation} does not go from {roles[pair.parent]} to {roles[pair.child]}, but {' or '.join(kinds)} does"
    )


def _quote(name: str) -> str:
    return f"“{shorten(name, _MAX_CHARACTERS)}”"
