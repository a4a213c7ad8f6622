"""From answers to the frozen graph, with all rejected edges and the reasons; statistics of graphs (GEAR, Table 14)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from jurygraph.agents.graph_annotator.known_graph import KnownGraph, criterion_digest
from jurygraph.agents.graph_annotator.validation import Pair, candidate_pairs
from jurygraph.agents.graph_annotator.voting import (
    Batch,
    EdgeSource,
    Projection,
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


@dataclass(frozen=True, slots=True)
class GraphStatistics:
    """Means over rubrics: criteria, candidate and retained edges, update size (criteria and retained edges), the share
    of rubrics with an edge, and answers that the checks rejected. All are None without a rubric.

    `candidates` and `invalid` are over the rubrics that have these numbers.
    """

    rubrics: int
    criteria: float | None
    candidates: float | None
    edges: float | None
    update_size: float | None
    non_empty: float | None
    invalid: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the statistics as JSON values."""
        return asdict(self)


def graph_statistics(rubrics: Iterable[Rubric]) -> GraphStatistics:
    """Return the statistics of rubrics."""
    listed = list(rubrics)
    sizes = [(len(rubric.criteria), len(rubric.edges)) for rubric in listed]
    return GraphStatistics(
        rubrics=len(listed),
        criteria=_mean([criteria for criteria, _ in sizes]),
        candidates=_mean([number for rubric in listed if (number := _candidates(rubric)) is not None]),
        edges=_mean([edges for _, edges in sizes]),
        update_size=_mean([criteria + edges for criteria, edges in sizes]),
        non_empty=_mean([edges > 0 for _, edges in sizes]),
        invalid=_mean([_count_invalid(rubric) for rubric in listed if rubric.annotation is not None]),
    )


def _candidates(rubric: Rubric) -> int | None:
    if rubric.annotation is not None:
        return rubric.annotation.candidates
    roles = {criterion.id: criterion.role for criterion in rubric.criteria if criterion.role is not None}
    return len(candidate_pairs(roles)) if len(roles) == len(rubric.criteria) else None


def _count_invalid(rubric: Rubric) -> int:
    assert rubric.annotation is not None
    return sum(edge.stage == "check" for edge in rubric.annotation.rejected)


def _mean(values: list[int] | list[bool]) -> float | None:
    return sum(values) / len(values) if values else None
