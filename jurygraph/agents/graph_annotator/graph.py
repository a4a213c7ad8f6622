"""From answers to the frozen graph: what is known, the vote, and the projection on a graph without cycles (GEAR, A.5).

The most frequent kind wins a vote, and a tie gives no edge. All rejected edges are kept with the reasons. Also has the
statistics of graphs (GEAR, Table 14).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from jurygraph.agents.graph_annotator.validation import (
    CheckedEdges,
    CriterionPair,
    EdgeReply,
    candidate_pairs,
    sort_pairs,
)
from jurygraph.aggregation import gear
from jurygraph.schema import Annotation, Criterion, Edge, RejectedEdge, Rubric, Task, UnansweredPair, digest_of
from jurygraph.schema.task import Role, query_text


@dataclass(frozen=True, slots=True)
class KnownGraph:
    """The known state of a task's rubric: roles, criteria unchanged since their annotation, and its record.

    Hand-written edges stay. Edges that an annotator found, `annotated_edges`, stay unless they close a cycle, so edges
    that an earlier projection removed, `projected_out_edges`, may come back.
    """

    roles: Mapping[str, Role]
    unchanged_criteria: frozenset[str]
    hand_written_edges: tuple[Edge, ...]
    annotated_edges: tuple[Edge, ...]
    projected_out_edges: tuple[Edge, ...]
    record: Annotation | None

    def open_pairs(self, candidates: Iterable[CriterionPair]) -> tuple[CriterionPair, ...]:
        """Return the pairs about which nothing is known; a hand-written edge settles its pair in both directions."""
        unanswered = set(map(_ends, self.record.unanswered if self.record else ()))
        by_hand = {frozenset(_ends(edge)) for edge in self.hand_written_edges}
        known = set(map(_ends, self.annotated_edges))
        return sort_pairs(
            pair
            for pair in candidates
            if (pair in unanswered or not self.unchanged_criteria.issuperset(pair))
            and pair not in known
            and frozenset(pair) not in by_hand
        )

    def still_rejected(self, requested: Iterable[CriterionPair]) -> Iterator[RejectedEdge]:
        """Yield the earlier rejections that still hold: pairs in `requested`, or of changed criteria, get new ones."""
        replaced = {frozenset(pair) for pair in requested}
        for edge in () if self.record is None else self.record.rejected:
            is_unchanged = self.unchanged_criteria.issuperset(_ends(edge))
            if edge.stage != "projection" and is_unchanged and frozenset(_ends(edge)) not in replaced:
                yield edge


def known_graph(task: Task, rubric: Rubric, reviewed: Rubric | None = None) -> KnownGraph:
    """Return the known state of a task's `rubric`, from itself and from the `reviewed` one if there is one.

    An edge that an annotator found stays while both its criteria are as the annotator saw them. A hand-written edge of
    either rubric always stays, and in its reviewed form if both have it. Raises `GraphCycleError` if hand-written edges
    form a cycle.
    """
    source = rubric if reviewed is None else reviewed
    roles, settled = _known_roles(task, rubric, source)
    present = {criterion.id for criterion in rubric.criteria}
    hand_written = {_ends(edge): edge for edge in (*rubric.edges, *source.edges) if not edge.model}
    by_hand = [hand_written[ends] for ends in sorted(hand_written) if present.issuperset(ends)]
    names = sorted(present)
    gear.compile(len(names), *gear.edges(names, [(*_ends(edge), edge.kind) for edge in by_hand])[:2], names)
    rejected = source.annotation.rejected if source.annotation else ()
    cut_edges = (edge.model_dump(exclude={"stage", "why"}) for edge in rejected if edge.stage == "projection")
    found, projected_out = (
        tuple(edge for edge in edges if _ends(edge) not in hand_written and settled.issuperset(_ends(edge)))
        for edges in ([edge for edge in source.edges if edge.model], map(Edge.model_validate, cut_edges))
    )
    return KnownGraph(roles, settled, tuple(by_hand), found, projected_out, source.annotation)


def _known_roles(task: Task, rubric: Rubric, source: Rubric) -> tuple[dict[str, Role], frozenset[str]]:
    before = {criterion.id: criterion for criterion in source.criteria}
    record = source.annotation
    roles: dict[str, Role] = {}
    settled = set()
    for criterion in rubric.criteria:
        earlier = before.get(criterion.id, criterion)
        role = criterion.role or (earlier.role if criterion.content == earlier.content else None)
        if role is None:
            continue
        is_unchanged = record is not None and record.seen.get(criterion.id) == criterion_digest(task, criterion, role)
        if is_unchanged:
            settled.add(criterion.id)
        # A role that was annotated from other words is annotated again.
        if is_unchanged or record is None or record.roles.get(criterion.id) != role:
            roles[criterion.id] = role
    return roles, frozenset(settled)


def _ends(edge: Edge | RejectedEdge | UnansweredPair) -> CriterionPair:
    return CriterionPair(edge.parent, edge.child)


def criterion_digest(task: Task, criterion: Criterion, role: Role) -> str:
    """Return a short digest of the annotator's input: a criterion's words, its sign and its role, under the query."""
    return digest_of([query_text(task.query), criterion.content, role])[:16]


class Batch(NamedTuple):
    """Pairs of one request, and the answers of each sample."""

    pairs: Sequence[CriterionPair]
    samples: Sequence[CheckedEdges]


class EdgeSource(NamedTuple):
    model: str
    prompt: str


class Election(NamedTuple):
    """The result of the votes: at most one edge per pair, the rejected answers, and pairs without enough answers."""

    proposed: list[Edge]
    rejected: list[RejectedEdge]
    unanswered: list[UnansweredPair]


def elect_edges(batches: Iterable[Batch], source: EdgeSource) -> Election:
    """Count the votes on every pair. A pair that at least half of the samples leave without an answer gets no edge.

    An answer that the checks rejected is an answer. An edge has the mean confidence of the winners. Those that lost the
    vote are rejected, each as its most confident answer.
    """
    election = Election([], [], [])
    for pairs, samples in batches:
        checked = ((edge, why) for sample in samples for edge, why in sample.rejected)
        election.rejected.extend(_reject(edge, "check", why, source) for edge, why in checked)
        for pair in pairs:
            reasons = [sample.unanswered[pair] for sample in samples if pair in sample.unanswered]
            if 2 * len(reasons) >= len(samples):
                election.unanswered.append(UnansweredPair(**pair._asdict(), why=min(reasons)))
                continue
            answers: dict[str, list[EdgeReply]] = defaultdict(list)
            for answer in (sample.answers[pair] for sample in samples if pair in sample.answers):
                answers[answer.relation].append(answer)
            winner = _winner(answers)
            if winner != "none":
                election.proposed.append(_edge(answers[winner], len(samples), source))
            tally = ", ".join(f"{kind} {len(answers[kind])}" for kind in sorted(answers))
            election.rejected.extend(
                _reject(_most_confident(answers[kind]), "vote", f"the vote was: {tally}", source)
                for kind in sorted({*answers} - {"none", winner})
            )
    return election


def _winner(answers: Mapping[str, Sequence[EdgeReply]]) -> str:
    counts = Counter({kind: len(of_kind) for kind, of_kind in answers.items()}).most_common(2)
    return "none" if not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]) else counts[0][0]


def _edge(winners: Sequence[EdgeReply], samples: int, source: EdgeSource) -> Edge:
    best = _most_confident(winners)
    content = best.model_dump(include={"parent", "child", "reason"}) | source._asdict()
    confidence = fmean(answer.confidence_share for answer in winners)
    votes = (len(winners), samples) if samples > 1 else None
    return Edge.model_validate({**content, "kind": best.relation, "confidence": confidence, "votes": votes})


def _reject(answer: EdgeReply, stage: str, why: str, source: EdgeSource) -> RejectedEdge:
    content = answer.model_dump(include={"parent", "child", "reason"}) | source._asdict()
    content |= {"kind": answer.relation, "confidence": answer.confidence_share, "stage": stage, "why": why}
    return RejectedEdge.model_validate(content)


def _most_confident(answers: Sequence[EdgeReply]) -> EdgeReply:
    return min(answers, key=lambda answer: (-answer.confidence, answer.reason))


_KINDS = ("weak", "strong", "activation")  # in ascending rank: the first is removed first


class Projection(NamedTuple):
    """The kept edges, and the dropped ones, each with the cycle that it would close; all in id order."""

    kept: tuple[Edge, ...]
    dropped: tuple[tuple[Edge, tuple[str, ...]], ...]


def project(edges: Iterable[Edge], standing: Iterable[Edge] = ()) -> Projection:
    """Return the edges without those that close a cycle with higher ones; edges in `standing` rank highest.

    Weak edges rank below strong ones, and these below activations; within a kind, less confident edges rank lower, and
    of equal ones those with smaller ids (our reading, since the paper leaves this open). So an edge on no cycle stays,
    a dropped edge would close a cycle in which it is the lowest, and none could be added back. `standing` has no cycle.
    """
    children: dict[str, list[str]] = defaultdict(list)
    kept = list(standing)
    dropped = []
    for edge in kept:
        children[edge.parent].append(edge.child)
    for edge in sorted(edges, key=_rank, reverse=True):
        path = _shortest_path(children, edge.child, edge.parent)
        if path is None:
            children[edge.parent].append(edge.child)
            kept.append(edge)
        else:
            dropped.append((edge, (edge.parent, *path)))
    return Projection(tuple(sorted(kept, key=_ends)), tuple(sorted(dropped, key=lambda entry: _ends(entry[0]))))


def _rank(edge: Edge) -> tuple[int, float, str, str]:
    return _KINDS.index(edge.kind), 1.0 if edge.confidence is None else edge.confidence, edge.parent, edge.child


def _shortest_path(children: Mapping[str, Sequence[str]], start: str, end: str) -> tuple[str, ...] | None:
    paths: dict[str, tuple[str, ...]] = {start: (start,)}
    frontier = [start]
    while frontier and end not in paths:
        reached = sorted((child, node) for node in frontier for child in children.get(node, ()))
        frontier = []
        for child, node in reached:
            if child not in paths:
                paths[child] = (*paths[node], child)
                frontier.append(child)
    return paths.get(end)


def projection_rejections(projected: Projection) -> Iterator[RejectedEdge]:
    for edge, cycle in projected.dropped:
        content = edge.model_dump(include={"parent", "child", "kind", "reason", "confidence", "model", "prompt"})
        why = f"it closes a cycle of edges that rank higher: {' -> '.join(cycle)}"
        yield RejectedEdge(**content, stage="projection", why=why)


def freeze_graph(
    task: Task,
    rubric: Rubric,
    known: KnownGraph,
    requested: Iterable[CriterionPair],
    edges: Sequence[Edge],
    record: Annotation,
) -> Rubric:
    """Return the rubric with its roles and its graph, ordered by id; the order of the criteria is kept.

    `record` has what is new about the pairs `requested`; what still holds of the previous record is added.
    """
    criteria = tuple(
        criterion.model_copy(update={"role": known.roles.get(criterion.id, record.roles.get(criterion.id))})
        for criterion in rubric.criteria
    )
    roles = {criterion.id: criterion.role for criterion in criteria if criterion.role is not None}
    before = {} if known.record is None else known.record.roles
    update = {
        "roles": {name: role for name, role in sorted((before | record.roles).items()) if roles.get(name) == role},
        "seen": {one.id: criterion_digest(task, one, one.role) for one in criteria if one.role is not None},
        "rejected": tuple(sorted({*known.still_rejected(requested), *record.rejected}, key=_sort_key)),
        "unanswered": tuple(sorted(record.unanswered, key=_ends)),
    }
    annotation = record.model_copy(update=update)
    updated = rubric.model_copy(update={"criteria": criteria, "edges": tuple(edges), "annotation": annotation})
    return Rubric.model_validate(updated.model_dump())


def _sort_key(edge: RejectedEdge) -> tuple[str, ...]:
    return edge.parent, edge.child, edge.kind, edge.stage, edge.why, edge.reason, str(edge.confidence), edge.model


def graph_statistics(rubrics: Iterable[Rubric]) -> dict[str, float | None]:
    """Return means over rubrics: criteria, candidate and retained edges, update size (criteria and retained edges), the
    share of rubrics with an edge, and answers that the checks rejected. All but their number are None without a rubric.

    `candidates` and `invalid` are over the rubrics that have these numbers.
    """
    listed = list(rubrics)
    records = [rubric.annotation for rubric in listed if rubric.annotation is not None]
    return {
        "rubrics": len(listed),
        "criteria": _mean(len(rubric.criteria) for rubric in listed),
        "candidates": _mean(number for rubric in listed if (number := _candidates(rubric)) is not None),
        "edges": _mean(len(rubric.edges) for rubric in listed),
        "update_size": _mean(len(rubric.criteria) + len(rubric.edges) for rubric in listed),
        "non_empty": _mean(len(rubric.edges) > 0 for rubric in listed),
        "invalid": _mean(sum(edge.stage == "check" for edge in record.rejected) for record in records),
    }


def _candidates(rubric: Rubric) -> int | None:
    if rubric.annotation is not None:
        return rubric.annotation.candidates
    roles = {criterion.id: criterion.role for criterion in rubric.criteria if criterion.role is not None}
    return len(candidate_pairs(roles)) if len(roles) == len(rubric.criteria) else None


def _mean(numbers: Iterable[int]) -> float | None:
    values = list(numbers)
    return sum(values) / len(values) if values else None
