"""The graph annotator: from a query and its rubric to the graph of criteria that license others (GEAR, App. A).

It asks a model batches of questions about a rubric. It sees the query, the rubric and the field of the task, and never
a response. A reply is validated independently of the order of its entries: the schema sent to the model allows only
existing ids; the reply is parsed with any id, so that an unknown one invalidates an answer and not the whole reply. The
most frequent kind wins a vote, and a tie gives no edge; a graph without cycles is left. All rejected edges are kept
with the reasons.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from itertools import chain, product, starmap
from pathlib import Path
from statistics import fmean, multimode
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import Field, create_model

from jurygraph.agents.roles import ask_model
from jurygraph.aggregation import gear
from jurygraph.concurrency import gather_all, split_into_batches
from jurygraph.errors import ConfigError, ModelError
from jurygraph.messages import quote, quote_prose, shorten, suggest_known_name
from jurygraph.models.request import Fault, Request
from jurygraph.prompts import load_prompt
from jurygraph.schema import (
    Annotation,
    Criterion,
    Edge,
    FrozenModel,
    RejectedEdge,
    Rubric,
    Task,
    UnansweredPair,
    digest_of,
)
from jurygraph.schema.frozen_model import JsonFields
from jurygraph.schema.task import (
    CriterionRole,
    EdgeKind,
    chat_to_prompt_text,
    query_to_text,
    sort_by_id,
)

if TYPE_CHECKING:
    from jurygraph.models.judge_client import JudgeClient

BUILTIN_DOMAIN_NAMES = ("generic", "legal", "medical", "writing")
DOMAIN_METADATA_KEYS = (
    "domain",
    "domain1",
    "domain2",
    "domains",
    "example_tags",
    "genre",
    "lang",
    "language",
    "topic",
)
"""The keys of a task's metadata that describe its field: the general ones, and those of HealthBench and WritingBench.

Others may hold anything, such as an answer or a name, and are not shown.
"""
_FRONT_MATTER_PATTERN = re.compile(r"(?s)(?:---\n(?P<front_matter>.*?)---\n)?(?P<body>.*)")
_EXAMPLES_HEADING_PATTERN = re.compile(r"^#+ *worked examples *$", re.MULTILINE | re.IGNORECASE)
_MAX_DOMAIN_CHARACTERS = 20_000


class DomainProfile(NamedTuple):
    """A domain profile: its name with a version, its text, and worked examples of pairs if it has some.

    In the file, these are the text below the heading `# Worked examples`.
    """

    name: str
    text: str
    examples: str


def load_domain(name: str, where: str = "annotation.domain") -> DomainProfile:
    """Load a built-in domain by its name, or a text file by its path. Raises `ConfigError` that begins with `where`."""
    if name in BUILTIN_DOMAIN_NAMES:
        from ruamel.yaml import YAML

        profile = files("jurygraph.prompts").joinpath("domains", f"{name}.md")
        front_matter, body = _split_front_matter(profile.read_text(encoding="utf-8"))
        version = YAML(typ="safe", pure=True).load(front_matter)["version"]
        return _build_domain_profile(f"{name} {version}", body)
    path = Path(name)
    if not path.is_file():
        suggestion = suggest_known_name(name, BUILTIN_DOMAIN_NAMES)
        raise ConfigError(f"{where}: there is no domain {name!r}, and no such file; {suggestion}")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{where}: {name} cannot be read as UTF-8 text ({error})") from None
    _, body = _split_front_matter(text)
    if not 0 < len(body) <= _MAX_DOMAIN_CHARACTERS:
        problem = "is empty" if not body else f"has more than {_MAX_DOMAIN_CHARACTERS} characters"
        raise ConfigError(
            f"{where}: {name} {problem}; write what an annotator should know of the field"
        )
    digest = hashlib.sha256(body.encode()).hexdigest()
    return _build_domain_profile(f"{path.name} {digest[:12]}", body)


def _build_domain_profile(name: str, body: str) -> DomainProfile:
    text, *examples = _EXAMPLES_HEADING_PATTERN.split(body, maxsplit=1)
    return DomainProfile(name, text.strip(), "".join(examples).strip())


def _split_front_matter(text: str) -> tuple[str, str]:
    """Return the front matter of a text, which may be missing, and the rest of it without blanks around."""
    match = _FRONT_MATTER_PATTERN.match(text.replace("\r\n", "\n"))
    assert match is not None, "everything in it may be absent"
    return match["front_matter"] or "", match["body"].strip()


_MAX_REPLY_ENTRIES = 1024

EdgeReasonText = Annotated[str, Field(max_length=1000)]
ShortText = Annotated[str, Field(max_length=600)]


# No docstrings below: they would be part of the JSON schema that a model is given.


class RoleReply(FrozenModel):
    reason: EdgeReasonText
    criterion: ShortText
    role: CriterionRole


class RolesReply(FrozenModel):
    roles: tuple[RoleReply, ...] = Field(max_length=_MAX_REPLY_ENTRIES)


class EdgeReply(FrozenModel):
    reason: EdgeReasonText
    parent: ShortText
    child: ShortText
    relation: Literal["none", "weak", "strong", "activation"]
    confidence: Annotated[int, Field(strict=True, ge=0, le=100)]

    @property
    def confidence_share(self) -> float:
        return self.confidence / 100


class EdgesReply(FrozenModel):
    pairs: tuple[EdgeReply, ...] = Field(max_length=_MAX_REPLY_ENTRIES)


@lru_cache(maxsize=256)
def roles_reply_model(criteria: tuple[str, ...]) -> type[FrozenModel]:
    role_reply_model = create_model(
        "RoleStated", __base__=RoleReply, criterion=_choice_field(criteria)
    )
    return create_model(
        "RolesReply",
        __base__=FrozenModel,
        roles=_fixed_length_field(role_reply_model, len(criteria)),
    )


@lru_cache(maxsize=256)
def edges_reply_model(pairs: tuple[tuple[str, str], ...]) -> type[FrozenModel]:
    """Return the schema of a reply about these pairs, each a parent and a child."""
    parents, children = (tuple(sorted(set(ends))) for ends in zip(*pairs, strict=True))
    pair_reply_model = create_model(
        "PairReply",
        __base__=EdgeReply,
        parent=_choice_field(parents),
        child=_choice_field(children),
    )
    return create_model(
        "PairsStated", __base__=FrozenModel, pairs=_fixed_length_field(pair_reply_model, len(pairs))
    )


def _choice_field(names: Sequence[str]) -> Any:
    return Literal[tuple(names)], ...


def _fixed_length_field(entry_model: type[FrozenModel], count: int) -> Any:
    return tuple[entry_model, ...], Field(min_length=count, max_length=count)  # type: ignore[valid-type]


RolesById = Mapping[str, CriterionRole]
EDGE_KINDS_BY_ROLES: Mapping[tuple[CriterionRole, CriterionRole], tuple[EdgeKind, ...]] = {
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


def possible_edge_kinds(roles: RolesById, pair: CriterionPair) -> tuple[EdgeKind, ...]:
    """Return the kinds of edge that a pair can have; none if either has no role."""
    if pair.parent == pair.child or pair.parent not in roles or pair.child not in roles:
        return ()
    return EDGE_KINDS_BY_ROLES.get((roles[pair.parent], roles[pair.child]), ())


def candidate_pairs(roles: RolesById) -> tuple[CriterionPair, ...]:
    """Return every pair that can have an edge. The two directions of a pair are adjacent; otherwise in id order."""
    pairs = starmap(CriterionPair, product(roles, repeat=2))
    return sort_criterion_pairs(pair for pair in pairs if possible_edge_kinds(roles, pair))


def sort_criterion_pairs(pairs: Iterable[CriterionPair]) -> tuple[CriterionPair, ...]:
    """Return the pairs in the order in which a model gets them, independent of their order here."""
    return tuple(sorted(pairs, key=lambda pair: (min(pair), max(pair), pair)))


@dataclass(frozen=True, slots=True)
class CheckedRoles:
    """The accepted roles, and why criteria have none, by their ids."""

    roles: dict[str, CriterionRole] = field(default_factory=dict)
    unassigned: dict[str, str] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        return [f"{quote_prose(name)} {why}" for name, why in self.unassigned.items()]


def check_roles(replies: Iterable[RoleReply], criteria: Mapping[str, Criterion]) -> CheckedRoles:
    """Validate the roles of a reply about `criteria`, which are given by their ids."""
    roles = defaultdict(set)
    for reply in replies:
        roles[reply.criterion].add(reply.role)
    checked_roles = CheckedRoles()
    for name, criterion in sorted(criteria.items()):
        if len(roles[name]) != 1:
            roles_text = " and ".join(sorted(roles[name]))
            problem = f"was given the roles {roles_text}" if roles_text else "was given no role"
            checked_roles.unassigned[name] = problem
            continue
        (role,) = roles[name]
        if role == "applicability" or (role == "penalty") == (criterion.weight < 0):
            checked_roles.roles[name] = role
        else:
            sign_word = "negative" if criterion.weight < 0 else "positive"
            problem = f"has {sign_word} points and was given the role {role}"
            checked_roles.unassigned[name] = problem
    return checked_roles


@dataclass(frozen=True, slots=True)
class CheckedEdges:
    """The accepted answers; the rejected ones, with the reasons; and the pairs without an answer, with the reasons."""

    answers: dict[CriterionPair, EdgeReply] = field(default_factory=dict)
    rejected: tuple[tuple[EdgeReply, str], ...] = ()
    reason_by_unanswered_pair: dict[CriterionPair, str] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        rejections = [(_criterion_pair_of_edge(edge), why) for edge, why in self.rejected]
        omissions = self.reason_by_unanswered_pair.items()
        return [f"{quote_prose(str(pair))}: {why}" for pair, why in (*rejections, *omissions)]


def check_edges(
    edges: Iterable[EdgeReply],
    requested_pairs: Sequence[CriterionPair],
    roles: RolesById,
) -> CheckedEdges:
    """Validate a reply about `requested_pairs`.

    A pair with two different kinds gets none, and of two equal answers the more confident counts.
    """
    answers = {}
    rejected_replies = []
    edges_by_pair = defaultdict(list)
    ordered_edges = sorted(
        edges,
        key=lambda edge: (edge.parent, edge.child, edge.relation, -edge.confidence, edge.reason),
    )
    for edge in ordered_edges:
        pair = _criterion_pair_of_edge(edge)
        kinds = possible_edge_kinds(roles, pair)
        if pair not in requested_pairs:
            rejected_replies.append((edge, "the pair was not asked about in this request"))
        elif edge.relation in ("none", *kinds):
            edges_by_pair[pair].append(edge)
        else:
            why = (
                f"{edge.relation} does not go from {roles[pair.parent]} to {roles[pair.child]}, but "
                f"{' or '.join(kinds)} does"
            )
            rejected_replies.append((edge, why))
    for pair, pair_edges in edges_by_pair.items():
        relations = sorted({edge.relation for edge in pair_edges})
        if len(relations) > 1:
            why = f"the pair is said to be {' and '.join(relations)}"
            rejected_replies += [(edge, why) for edge in pair_edges]
        else:
            answers[pair] = pair_edges[0]
            rejected_replies += [(edge, "the pair is listed twice") for edge in pair_edges[1:]]
    answered_pairs = set(map(_criterion_pair_of_edge, ordered_edges))
    unanswered_pair_reasons = {
        pair: "was not answered" for pair in requested_pairs if pair not in answered_pairs
    }
    return CheckedEdges(answers, tuple(rejected_replies), unanswered_pair_reasons)


class KnownGraph(NamedTuple):
    """The known state of a task's rubric: roles, criteria unchanged since their annotation, and its record.

    Hand-written edges stay. Edges that an annotator found, `annotated_edges`, stay unless they close a cycle, so edges
    that an earlier projection removed, `projected_out_edges`, may come back.
    """

    roles: RolesById
    unchanged_criterion_ids: frozenset[str]
    hand_written_edges: tuple[Edge, ...]
    annotated_edges: tuple[Edge, ...]
    projected_out_edges: tuple[Edge, ...]
    record: Annotation | None

    def find_pairs_to_ask(self, candidates: Iterable[CriterionPair]) -> tuple[CriterionPair, ...]:
        """Return the pairs about which nothing is known; a hand-written edge settles its pair in both directions."""
        unanswered_pairs = set(
            map(_criterion_pair_of_edge, self.record.unanswered if self.record else ())
        )
        settled_pairs = set(map(_criterion_pair_of_edge, self.annotated_edges))
        for edge in self.hand_written_edges:
            settled_pairs |= {_criterion_pair_of_edge(edge), CriterionPair(edge.child, edge.parent)}
        return sort_criterion_pairs(
            pair
            for pair in candidates
            if pair not in settled_pairs
            and (pair in unanswered_pairs or not self.unchanged_criterion_ids.issuperset(pair))
        )

    def still_rejected_edges(
        self, requested_pairs: Iterable[CriterionPair]
    ) -> Iterator[RejectedEdge]:
        """Yield the earlier rejections that hold: requested pairs, and pairs of changed criteria, get new ones."""
        replaced_pairs = set(map(frozenset, requested_pairs))
        for edge in self.record.rejected if self.record else ():
            ends = _criterion_pair_of_edge(edge)
            is_replaced = edge.stage == "projection" or frozenset(ends) in replaced_pairs
            if not is_replaced and self.unchanged_criterion_ids.issuperset(ends):
                yield edge


def build_known_graph(task: Task, rubric: Rubric, reviewed_rubric: Rubric | None) -> KnownGraph:
    """Return the known state of a task's `rubric`, from itself and from the `reviewed_rubric` one if there is one.

    An edge that an annotator found stays while both its criteria are as the annotator saw them. A hand-written edge of
    either rubric always stays, and in its reviewed form if both have it. Raises `GraphCycleError` if hand-written edges
    form a cycle.
    """
    source = rubric if reviewed_rubric is None else reviewed_rubric
    roles, settled_criterion_ids = _find_known_roles(task, rubric, source)
    criterion_ids = {criterion.id for criterion in rubric.criteria}
    hand_written_edge_by_ends = {
        _criterion_pair_of_edge(edge): edge
        for edge in (*rubric.edges, *source.edges)
        if not edge.model
    }
    hand_written_ends = sorted(filter(criterion_ids.issuperset, hand_written_edge_by_ends))
    names = sorted(criterion_ids)
    # Refuses a cycle of hand-written edges: no projection may remove any of them.
    gear.compile(len(names), *gear.edges(names, hand_written_ends), names)

    def is_settled_edge(edge: Edge) -> bool:
        ends = _criterion_pair_of_edge(edge)
        return ends not in hand_written_edge_by_ends and settled_criterion_ids.issuperset(ends)

    model_edges = [edge for edge in source.edges if edge.model]
    projected_out_edges = [
        Edge.model_validate(edge.model_dump(exclude={"stage", "why"}))
        for edge in (source.annotation.rejected if source.annotation else ())
        if edge.stage == "projection"
    ]
    return KnownGraph(
        roles,
        settled_criterion_ids,
        tuple(map(hand_written_edge_by_ends.__getitem__, hand_written_ends)),
        tuple(filter(is_settled_edge, model_edges)),
        tuple(filter(is_settled_edge, projected_out_edges)),
        source.annotation,
    )


def _find_known_roles(
    task: Task, rubric: Rubric, source: Rubric
) -> tuple[dict[str, CriterionRole], frozenset[str]]:
    source_criteria = {criterion.id: criterion for criterion in source.criteria}
    record = source.annotation
    roles = {}
    settled_criterion_ids = set()
    for criterion in rubric.criteria:
        earlier = source_criteria.get(criterion.id, criterion)
        role = criterion.role
        if role is None and criterion.content == earlier.content:
            role = earlier.role
        if role is None:
            continue
        digest = criterion_digest(task, criterion, role)
        is_criterion_unchanged = record is not None and record.seen.get(criterion.id) == digest
        if is_criterion_unchanged:
            settled_criterion_ids.add(criterion.id)
        # A role that was annotated from other words is annotated again.
        if is_criterion_unchanged or record is None or record.roles.get(criterion.id) != role:
            roles[criterion.id] = role
    return roles, frozenset(settled_criterion_ids)


def _criterion_pair_of_edge(
    edge: Edge | EdgeReply | RejectedEdge | UnansweredPair,
) -> CriterionPair:
    return CriterionPair(edge.parent, edge.child)


def criterion_digest(task: Task, criterion: Criterion, role: CriterionRole) -> str:
    """Return a short digest of the annotator's input: a criterion's words, its sign and its role, under the query."""
    return digest_of([query_to_text(task.query), criterion.content, role])[:16]


PairBatchAnswers = tuple[Sequence[CriterionPair], Sequence[CheckedEdges]]
"""Pairs of one request, and the answers of each sample."""


class EdgeProvenance(NamedTuple):
    model: str
    prompt: str


class EdgeVoteResult(NamedTuple):
    """The result of the votes: at most one edge per pair, the rejected answers, and pairs without enough answers."""

    proposed: list[Edge]
    rejected: list[RejectedEdge]
    unanswered: list[UnansweredPair]


def elect_edges(
    batch_answers: Iterable[PairBatchAnswers], source: EdgeProvenance
) -> EdgeVoteResult:
    """Count the votes on every pair. A pair that at least half of the samples leave without an answer gets no edge.

    An answer that the checks rejected is an answer. An edge has the mean confidence of the winners. Those that lost the
    vote are rejected, each as its most confident answer.
    """
    vote_result = EdgeVoteResult([], [], [])
    for pairs, samples in batch_answers:
        for edge, why in chain.from_iterable(sample.rejected for sample in samples):
            vote_result.rejected.append(
                RejectedEdge(**_edge_fields([edge], source), stage="check", why=why)
            )
        for pair in pairs:
            reasons = [
                sample.reason_by_unanswered_pair[pair]
                for sample in samples
                if pair in sample.reason_by_unanswered_pair
            ]
            if 2 * len(reasons) >= len(samples):
                vote_result.unanswered.append(UnansweredPair(**pair._asdict(), why=min(reasons)))
                continue
            votes = [sample.answers[pair] for sample in samples if pair in sample.answers]
            answers = defaultdict(list)
            for vote in votes:
                answers[vote.relation].append(vote)
            most_frequent_kinds = multimode(vote.relation for vote in votes)
            winning_kind = most_frequent_kinds[0] if len(most_frequent_kinds) == 1 else "none"
            if winning_kind != "none":
                winning_answers = answers[winning_kind]
                fields = _edge_fields(winning_answers, source)
                fields["confidence"] = fmean(answer.confidence_share for answer in winning_answers)
                vote_counts = (len(winning_answers), len(samples)) if len(samples) > 1 else None
                vote_result.proposed.append(Edge(**fields, votes=vote_counts))
            vote_counts_text = ", ".join(f"{kind} {len(answers[kind])}" for kind in sorted(answers))
            for kind in sorted({*answers} - {"none", winning_kind}):
                losing_fields = _edge_fields(answers[kind], source)
                why = f"the vote was: {vote_counts_text}"
                vote_result.rejected.append(RejectedEdge(**losing_fields, stage="vote", why=why))
    return vote_result


def _edge_fields(answers: Sequence[EdgeReply], source: EdgeProvenance) -> JsonFields:
    """Return what an edge and a rejected one take over from the most confident of the answers that give it."""
    answer = min(answers, key=lambda answer: (-answer.confidence, answer.reason))
    fields = answer.model_dump(include={"parent", "child", "reason"}) | source._asdict()
    return {**fields, "kind": answer.relation, "confidence": answer.confidence_share}


_EDGE_KINDS = ("weak", "strong", "activation")  # in ascending rank: the first is removed first


DroppedEdgesWithCycles = tuple[tuple[Edge, tuple[str, ...]], ...]
"""Edges, each with the cycle that it would close."""


def drop_cycle_edges(
    edges: Iterable[Edge], protected_edges: Iterable[Edge] = ()
) -> tuple[tuple[Edge, ...], DroppedEdgesWithCycles]:
    """Return the edges without those that close a cycle with higher ones, and those, both in id order.

    The `protected_edges` rank highest.
    Weak edges rank below strong ones, and these below activations; within a kind, less confident edges rank lower, and
    of equal ones those with smaller ids (our reading, since the paper leaves this open). So an edge on no cycle stays,
    a dropped edge would close a cycle in which it is the lowest, and none could be added back. `protected_edges` have
    no cycle.
    """
    children = defaultdict(list)
    kept_edges = list(protected_edges)
    dropped_edges = []
    for edge in kept_edges:
        children[edge.parent].append(edge.child)
    for edge in sorted(edges, key=_rank_of_edge, reverse=True):
        path = _shortest_path(children, edge.child, edge.parent)
        if path is None:
            children[edge.parent].append(edge.child)
            kept_edges.append(edge)
        else:
            dropped_edges.append((edge, (edge.parent, *path)))
    return tuple(sorted(kept_edges, key=_criterion_pair_of_edge)), tuple(
        sorted(dropped_edges, key=lambda entry: _criterion_pair_of_edge(entry[0]))
    )


def _rank_of_edge(edge: Edge) -> tuple[Any, ...]:
    confidence = 1.0 if edge.confidence is None else edge.confidence
    return _EDGE_KINDS.index(edge.kind), confidence, edge.parent, edge.child


def _shortest_path(
    children: Mapping[str, Sequence[str]], start: str, end: str
) -> tuple[str, ...] | None:
    paths: dict[str, tuple[str, ...]] = {start: (start,)}
    frontier = [start]
    while frontier and end not in paths:
        steps = []
        for node in frontier:
            steps.extend([(child, node) for child in children.get(node, ())])
        frontier = []
        for child, node in sorted(steps):
            if child not in paths:
                paths[child] = (*paths[node], child)
                frontier.append(child)
    return paths.get(end)


def build_projection_rejections(dropped_edges: DroppedEdgesWithCycles) -> Iterator[RejectedEdge]:
    for edge, cycle in dropped_edges:
        content = edge.model_dump(exclude={"retention", "votes"})
        why = f"it closes a cycle of edges that rank higher: {' -> '.join(cycle)}"
        yield RejectedEdge(**content, stage="projection", why=why)


def freeze_graph(
    task: Task,
    rubric: Rubric,
    previous_graph: KnownGraph,
    requested_pairs: Iterable[CriterionPair],
    edges: Sequence[Edge],
    record: Annotation,
) -> Rubric:
    """Return the rubric with its roles and its graph, ordered by id; the order of the criteria is kept.

    `record` has what is new about `requested_pairs`; what still holds of the previous record is added.
    """
    criteria = []
    roles = {}
    criterion_digests = {}
    for criterion in rubric.criteria:
        role = previous_graph.roles.get(criterion.id, record.roles.get(criterion.id))
        criterion_with_role = criterion.model_copy(update={"role": role})
        criteria.append(criterion_with_role)
        if role is not None:
            roles[criterion.id] = role
            criterion_digests[criterion.id] = criterion_digest(task, criterion_with_role, role)
    earlier_roles = previous_graph.record.roles if previous_graph.record else {}
    # Only roles that an annotator gave and that still hold: later runs tell them from those of people.
    annotated_roles = (earlier_roles | record.roles).items() & roles.items()
    rejected_edges = {*previous_graph.still_rejected_edges(requested_pairs), *record.rejected}
    update = {
        "roles": dict(sorted(annotated_roles)),
        "seen": criterion_digests,
        "rejected": tuple(sorted(rejected_edges, key=_rejected_edge_sort_key)),
        "unanswered": tuple(sorted(record.unanswered, key=_criterion_pair_of_edge)),
    }
    annotation = record.model_copy(update=update)
    updated_rubric = rubric.model_copy(
        update={"criteria": tuple(criteria), "edges": tuple(edges), "annotation": annotation}
    )
    return Rubric.model_validate(updated_rubric.model_dump())


def _rejected_edge_sort_key(edge: RejectedEdge) -> tuple[str, ...]:
    return (
        edge.parent,
        edge.child,
        edge.kind,
        edge.stage,
        edge.why,
        edge.reason,
        str(edge.confidence),
        edge.model,
    )


def graph_statistics(rubrics: Iterable[Rubric]) -> dict[str, float | None]:
    """Return means over rubrics: criteria, candidate and retained edges, update size (criteria and retained edges), the
    share of rubrics with an edge, and answers that the checks rejected. All but their number are None without a rubric.

    `candidates` and `invalid` are over the rubrics that have these numbers.
    """
    rubric_list = list(rubrics)
    records = [rubric.annotation for rubric in rubric_list if rubric.annotation is not None]
    candidate_counts = [_count_candidate_pairs(rubric) for rubric in rubric_list]
    edge_counts = [len(rubric.edges) for rubric in rubric_list]
    node_and_edge_counts = [len(rubric.criteria) + len(rubric.edges) for rubric in rubric_list]
    invalid_answer_counts = [
        sum(edge.stage == "check" for edge in record.rejected) for record in records
    ]
    return {
        "rubrics": len(rubric_list),
        "criteria": _mean_or_none([len(rubric.criteria) for rubric in rubric_list]),
        "candidates": _mean_or_none([count for count in candidate_counts if count is not None]),
        "edges": _mean_or_none(edge_counts),
        "update_size": _mean_or_none(node_and_edge_counts),
        "non_empty": _mean_or_none([count > 0 for count in edge_counts]),
        "invalid": _mean_or_none(invalid_answer_counts),
    }


def _count_candidate_pairs(rubric: Rubric) -> int | None:
    if rubric.annotation is not None:
        return rubric.annotation.candidates
    roles = {
        criterion.id: criterion.role for criterion in rubric.criteria if criterion.role is not None
    }
    return len(candidate_pairs(roles)) if len(roles) == len(rubric.criteria) else None


def _mean_or_none(numbers: Sequence[int]) -> float | None:
    return fmean(numbers) if numbers else None


MAX_ROLES_PER_CALL = 60  # the largest number of criteria whose roles one request asks for
_REPLY_TOKENS_PER_ROLE = 80
_MAX_REPLY_TOKENS_PER_EDGE = 110
_BASE_REPLY_TOKENS = 200

AnnotationReplyT = TypeVar("AnnotationReplyT", RolesReply, EdgesReply)
CheckedReplyT = TypeVar("CheckedReplyT", CheckedRoles, CheckedEdges)


class GraphAnnotator:
    def __init__(
        self, task: Task, rubric: Rubric, domain: DomainProfile, client: "JudgeClient"
    ) -> None:
        self._task = task
        self._domain = domain
        self._client = client
        self._by_id = {criterion.id: criterion for criterion in sort_by_id(rubric.criteria)}
        about = _to_json_lines(
            {name: task.metadata[name]} for name in DOMAIN_METADATA_KEYS if task.metadata.get(name)
        )
        self._shared_variables = {
            "domain": domain.text,
            "about": about,
            "query": chat_to_prompt_text(task.query),
        }

    async def roles(self, names: Sequence[str]) -> CheckedRoles:
        """Return the roles of these criteria. Raises `ModelError` or `BudgetExceeded` if the model gave no answer."""
        parts = await gather_all(
            self._ask_roles(batch)
            for batch in split_into_batches(sorted(names), MAX_ROLES_PER_CALL)
        )
        checked_roles = CheckedRoles()
        for part in parts:
            checked_roles.roles.update(part.roles)
            checked_roles.unassigned.update(part.unassigned)
        return checked_roles

    async def edges(
        self,
        pairs: Sequence[CriterionPair],
        roles: RolesById,
        batch: int,
        votes: int,
    ) -> list[PairBatchAnswers]:
        """Return the answers about these pairs, `batch` pairs per request, `votes` samples each.

        The order of a request's pairs says nothing of their ids, so that a model that favours the first favours no
        criterion. Every sample has another order: a model that always answers the same question alike would be a panel
        of one. Raises `ModelError` or `BudgetExceeded` if the model gave no answer.
        """
        query = self._shared_variables["query"]
        batches = [
            sorted(group, key=lambda pair: digest_of([query, *pair]))
            for group in split_into_batches(pairs, batch)
        ]
        questions = []
        for group in batches:
            for sample in range(votes):
                first = sample * len(group) // votes
                rotated_pairs = [*group[first:], *group[:first]]
                questions.append(self._ask_edges(rotated_pairs, roles, sample))
        results = await gather_all(questions)
        return list(zip(batches, split_into_batches(results, votes), strict=True))

    @property
    def source(self) -> EdgeProvenance:
        """Return the source of the edges: the model, and the digest of the prompt with its domain."""
        prompt = load_prompt("graph-edges")
        texts = [*map(list, prompt.sections), self._domain.text, self._domain.examples]
        prompt_digest = digest_of([prompt.id, prompt.full_version, *texts])
        return EdgeProvenance(self._client.model, prompt_digest[:16])

    async def _ask_roles(self, names: Sequence[str]) -> CheckedRoles:
        criteria = {name: self._by_id[name] for name in names}
        rubric = [
            {"id": name, **_criterion_fields(criterion)} for name, criterion in self._by_id.items()
        ]
        variables = {
            **self._shared_variables,
            "rubric": _to_json_lines(rubric),
            "asked": _to_json_lines(names),
        }
        max_reply_tokens = (
            _BASE_REPLY_TOKENS + _REPLY_TOKENS_PER_ROLE * len(names) + _max_tokens_of_ids(names)
        )
        form = roles_reply_model(tuple(names))
        prompt = load_prompt("graph-roles")
        request = self._client.request(prompt, form, variables, max_reply_tokens=max_reply_tokens)
        return await self._ask_with_repair(
            request,
            RolesReply,
            lambda reply: check_roles(reply.roles, criteria),
            lambda problem: CheckedRoles(
                unassigned=dict.fromkeys(names, f"was given no role: {problem}")
            ),
            "the roles of its criteria",
        )

    async def _ask_edges(
        self, pairs: Sequence[CriterionPair], roles: RolesById, sample: int
    ) -> CheckedEdges:
        """Ask about pairs. The request shows only these and their criteria, so other changes do not affect it."""
        criteria = []
        for name in sorted(set(chain.from_iterable(pairs))):
            criterion_fields = _criterion_fields(self._by_id[name])
            criteria.append({"id": name, "role": roles[name], **criterion_fields})
        criterion_pair_entries = (
            {**pair._asdict(), "relations": possible_edge_kinds(roles, pair)} for pair in pairs
        )
        variables = {
            **self._shared_variables,
            "worked_examples": self._domain.examples,
            "criteria": _to_json_lines(criteria),
            "pairs": _to_json_lines(criterion_pair_entries),
        }
        edge_reply_tokens = _MAX_REPLY_TOKENS_PER_EDGE * len(pairs)
        max_tokens = (
            _BASE_REPLY_TOKENS + edge_reply_tokens + _max_tokens_of_ids(chain.from_iterable(pairs))
        )
        form = edges_reply_model(tuple(pairs))
        prompt = load_prompt("graph-edges")
        request = self._client.request(
            prompt, form, variables, sample=sample, max_reply_tokens=max_tokens
        )
        return await self._ask_with_repair(
            request,
            EdgesReply,
            lambda reply: check_edges(reply.pairs, pairs, roles),
            lambda problem: CheckedEdges(reason_by_unanswered_pair=dict.fromkeys(pairs, problem)),
            "pairs of its criteria",
        )

    async def _ask_with_repair(
        self,
        request: Request,
        reply_model: type[AnnotationReplyT],
        check: Callable[[AnnotationReplyT], CheckedReplyT],
        build_result_without_reply: Callable[[str], CheckedReplyT],
        subject: str,
    ) -> CheckedReplyT:
        """Return the checked reply, after one repair; or, for a problem, the result if none can be read."""

        def find_reply_flaw(reply: AnnotationReplyT) -> str | None:
            problems = check(reply).problems[:12]
            if not problems:
                return None
            return f"{'; '.join(problems)}; answer again for everything that was asked, each once"

        def handle_fault(fault: Fault) -> CheckedReplyT:
            if fault.cause != "infrastructure":
                return build_result_without_reply(shorten(str(fault), 200))
            raise ModelError(
                f"task {quote(self._task.id)}: {subject} could not be annotated: {fault}"
            ) from fault

        return await ask_model(
            self._client,
            request,
            reply_model,
            read=lambda reply: check(reply.value),
            fail=handle_fault,
            find_reply_flaw=find_reply_flaw,
        )


def _criterion_fields(criterion: Criterion) -> JsonFields:
    parts = {"parts": [part.text for part in criterion.parts]} if criterion.parts else {}
    return {"points": criterion.weight, "text": criterion.text, **parts}


def _max_tokens_of_ids(ids: Iterable[str]) -> int:
    """Return the largest number of tokens needed to write ids: one per byte."""
    return sum(len(name.encode()) for name in ids)


def _to_json_lines(entries: Iterable[Any]) -> str:
    return "\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
