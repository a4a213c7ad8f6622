"""The part of a rubric's graph that is already known: hand-written edges, and answers about unchanged criteria."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from jurygraph.agents.graph_annotator.validation import Pair, sort_pairs
from jurygraph.aggregation import gear
from jurygraph.schema import Annotation, Criterion, Edge, RejectedEdge, Rubric, Task, digest_of
from jurygraph.schema.rubric import Role
from jurygraph.schema.task import query_text


@dataclass(frozen=True, slots=True)
class KnownGraph:
    """The known state of a task's rubric: the known roles, the criteria unchanged since their annotation
    (`unchanged_criteria`), and the record of the annotation. Hand-written edges stay; edges that an annotator
    `annotated_edges` stay unless they close a cycle, so those that an earlier projection `projected_out_edges` may come
    back."""

    roles: Mapping[str, Role]
    unchanged_criteria: frozenset[str]
    hand_written_edges: tuple[Edge, ...]
    annotated_edges: tuple[Edge, ...]
    projected_out_edges: tuple[Edge, ...]
    record: Annotation | None

    def open_pairs(self, candidates: Iterable[Pair]) -> tuple[Pair, ...]:
        """Return the pairs about which nothing is known; a hand-written edge settles its pair in both directions."""
        unanswered = {Pair(pair.parent, pair.child) for pair in (self.record.unanswered if self.record else ())}
        by_hand = {frozenset(_ends(edge)) for edge in self.hand_written_edges}
        known = set(map(_ends, self.annotated_edges))
        return sort_pairs(
            pair
            for pair in candidates
            if (pair in unanswered or not self.unchanged_criteria.issuperset(pair))
            and pair not in known
            and frozenset(pair) not in by_hand
        )

    def still_rejected(self, requested: Iterable[Pair]) -> Iterator[RejectedEdge]:
        """Yield the earlier rejections that still hold: pairs in `requested` get new ones."""
        requested_pairs = set(requested)
        requested_undirected = {frozenset(pair) for pair in requested_pairs}
        for edge in () if self.record is None else self.record.rejected:
            ends = Pair(edge.parent, edge.child)
            is_superseded = ends in requested_pairs if edge.stage == "vote" else frozenset(ends) in requested_undirected
            is_invalid = edge.parent == edge.child or not self.unchanged_criteria.issuperset(ends)
            if edge.stage != "projection" and not is_superseded and not (requested_pairs and is_invalid):
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
    cut = [
        Edge.model_validate(edge.model_dump(exclude={"stage", "why"}))
        for edge in rejected
        if edge.stage == "projection"
    ]
    found, projected_out = (
        tuple(edge for edge in edges if _ends(edge) not in hand_written and settled.issuperset(_ends(edge)))
        for edges in ([edge for edge in source.edges if edge.model], cut)
    )
    return KnownGraph(roles, settled, tuple(by_hand), found, projected_out, source.annotation)


def _known_roles(task: Task, rubric: Rubric, source: Rubric) -> tuple[dict[str, Role], frozenset[str]]:
    """Return the known roles, and the criteria that are as the annotator saw them."""
    source_criteria, record = {criterion.id: criterion for criterion in source.criteria}, source.annotation
    roles: dict[str, Role] = {}
    settled = set()
    for criterion in rubric.criteria:
        source_criterion = source_criteria.get(criterion.id)
        role = criterion.role or (
            source_criterion.role
            if source_criterion is not None and criterion.has_same_content(source_criterion)
            else None
        )
        if role is None:
            continue
        is_unchanged = record is not None and record.seen.get(criterion.id) == criterion_digest(task, criterion, role)
        if is_unchanged:
            settled.add(criterion.id)
        # A role that was annotated from other words is annotated again.
        if is_unchanged or record is None or record.roles.get(criterion.id) != role:
            roles[criterion.id] = role
    return roles, frozenset(settled)


def _ends(edge: Edge) -> Pair:
    return Pair(edge.parent, edge.child)


def criterion_digest(task: Task, criterion: Criterion, role: Role) -> str:
    """Return a short digest of the annotator's input: a criterion's words, its sign and its role, under the query."""
    return digest_of([query_text(task.query), criterion.content, role])[:16]
