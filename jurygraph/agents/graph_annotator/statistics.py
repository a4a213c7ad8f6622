"""Statistics of rubric graphs, as in the paper's table (GEAR, Table 14)."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from jurygraph.agents.graph_annotator.candidates import candidate_pairs
from jurygraph.schema import Rubric


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
