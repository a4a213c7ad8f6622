"""The frozen graph from elected edges: without cycles, with all rejected edges and the reasons (GEAR, Appendix A.5).

Also statistics of graphs (GEAR, Table 14).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from jurygraph.agents.graph_annotator.known_graph import KnownGraph, criterion_digest
from jurygraph.agents.graph_annotator.validation import Pair, candidate_pairs
from jurygraph.schema import Annotation, Edge, RejectedEdge, Rubric, Task

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
    kept, dropped = list(standing), []
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


def _ends(edge: Edge) -> tuple[str, str]:
    return edge.parent, edge.child


def _shortest_path(children: Mapping[str, Sequence[str]], start: str, end: str) -> tuple[str, ...] | None:
    """Return the shortest path along the edges, including both ends; None if there is none."""
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
    by_id = {criterion.id: criterion for criterion in criteria}
    update = {
        "roles": {name: role for name, role in sorted((before | record.roles).items()) if roles.get(name) == role},
        "seen": {name: criterion_digest(task, by_id[name], role) for name, role in roles.items()},
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
        criteria=_mean(criteria for criteria, _ in sizes),
        candidates=_mean(number for rubric in listed if (number := _candidates(rubric)) is not None),
        edges=_mean(edges for _, edges in sizes),
        update_size=_mean(criteria + edges for criteria, edges in sizes),
        non_empty=_mean(edges > 0 for _, edges in sizes),
        invalid=_mean(
            sum(edge.stage == "check" for edge in rubric.annotation.rejected)
            for rubric in listed
            if rubric.annotation is not None
        ),
    )


def _candidates(rubric: Rubric) -> int | None:
    if rubric.annotation is not None:
        return rubric.annotation.candidates
    roles = {criterion.id: criterion.role for criterion in rubric.criteria if criterion.role is not None}
    return len(candidate_pairs(roles)) if len(roles) == len(rubric.criteria) else None


def _mean(numbers: Iterable[int]) -> float | None:
    values = list(numbers)
    return sum(values) / len(values) if values else None
