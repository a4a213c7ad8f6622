"""From the answers to the frozen graph, with all rejected edges and the reasons."""

from collections.abc import Iterable, Iterator, Sequence

from jurygraph.agents.graph_annotator.candidates import Pair
from jurygraph.agents.graph_annotator.known_graph import KnownGraph, criterion_digest
from jurygraph.agents.graph_annotator.projection import Projection
from jurygraph.agents.graph_annotator.voting import (
    Batch,
    EdgeSource,
    elect_edge,
    is_answered,
    outvoted_edges,
    reject_answer,
)
from jurygraph.schema import Annotation, Edge, RejectedEdge, Rubric, Task, UnansweredPair


def elect_edges(batches: Iterable[Batch], source: EdgeSource) -> list[Edge]:
    """Return the edges that win the vote: at most one per pair."""
    edges = (elect_edge(pair, samples, source) for pairs, samples in batches for pair in pairs)
    return [edge for edge in edges if edge is not None]


def rejected_edges(batches: Iterable[Batch], source: EdgeSource) -> Iterator[RejectedEdge]:
    """Return the edges that the checks and the votes rejected."""
    for pairs, samples in batches:
        for sample in samples:
            for edge, why in sample.rejected:
                yield reject_answer(edge, "check", why, source)
        for pair in pairs:
            yield from outvoted_edges(pair, samples, source)


def unanswered_pairs(batches: Iterable[Batch]) -> Iterator[UnansweredPair]:
    """Return the pairs for which at least half of the samples have no answer."""
    for pairs, samples in batches:
        for pair in pairs:
            if not is_answered(pair, samples):
                why = min(sample.unanswered[pair] for sample in samples if pair in sample.unanswered)
                yield UnansweredPair(parent=pair.parent, child=pair.child, why=why)


def projection_rejections(projected: Projection) -> Iterator[RejectedEdge]:
    """Return the edges that the projection removed."""
    for edge, cycle in projected.dropped:
        content = edge.model_dump(include={"parent", "child", "kind", "reason", "confidence", "model", "prompt"})
        why = f"it closes a cycle of edges that rank higher: {' -> '.join(cycle)}"
        yield RejectedEdge(**content, stage="projection", why=why)


def freeze_graph(
    task: Task,
    rubric: Rubric,
    known: KnownGraph,
    requested: Iterable[Pair],
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
        "seen": {
            criterion.id: criterion_digest(task, criterion, criterion.role)
            for criterion in criteria
            if criterion.role is not None
        },
        "rejected": tuple(sorted({*known.still_rejected(requested), *record.rejected}, key=_sort_key)),
        "unanswered": tuple(sorted(record.unanswered, key=lambda pair: (pair.parent, pair.child))),
    }
    annotation = record.model_copy(update=update)
    updated = rubric.model_copy(update={"criteria": criteria, "edges": tuple(edges), "annotation": annotation})
    return Rubric.model_validate(updated.model_dump())


def _sort_key(edge: RejectedEdge) -> tuple[str, ...]:
    return edge.parent, edge.child, edge.kind, edge.stage, edge.why, edge.reason, str(edge.confidence), edge.model
