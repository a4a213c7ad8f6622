"""The vote among several answers about a pair, and the removal of the lowest edge of each cycle (GEAR, Appendix A.5).

The most frequent kind wins; a tie gives no edge.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from jurygraph.agents.graph_annotator.validation import CheckedEdges, EdgeReply, Pair
from jurygraph.schema import Edge, RejectedEdge


class Batch(NamedTuple):
    """Pairs of one request, and the answers of each sample."""

    pairs: Sequence[Pair]
    samples: Sequence[CheckedEdges]


class EdgeSource(NamedTuple):
    """The source of an edge: a model, and the digest of its prompt."""

    model: str
    prompt: str


def elect_edge(pair: Pair, samples: Sequence[CheckedEdges], source: EdgeSource) -> Edge | None:
    """Return the edge of a pair; None without one or with too few answers. Its confidence is the winners' mean."""
    answers = _answers_for(pair, samples)
    kind = _winner(answers)
    if kind == "none" or not is_answered(pair, samples):
        return None
    winners = [answer for answer in answers if answer.relation == kind]
    most_confident = min(winners, key=lambda answer: (-answer.confidence, answer.reason))
    return Edge.model_validate(
        {
            "parent": pair.parent,
            "child": pair.child,
            "kind": kind,
            "reason": most_confident.reason,
            "confidence": fmean(answer.confidence_share for answer in winners),
            "votes": (len(winners), len(samples)) if len(samples) > 1 else None,
            **source._asdict(),
        }
    )


def is_answered(pair: Pair, samples: Sequence[CheckedEdges]) -> bool:
    """Return true if more than half of the samples answered about a pair, even if the answer was rejected."""
    return 2 * sum(pair in sample.unanswered for sample in samples) < len(samples)


def outvoted_edges(pair: Pair, samples: Sequence[CheckedEdges], source: EdgeSource) -> Iterator[RejectedEdge]:
    """Yield the edges that lost the vote, each as its most confident answer."""
    if not is_answered(pair, samples):
        return
    answers = _answers_for(pair, samples)
    counts = Counter(answer.relation for answer in answers)
    tally = ", ".join(f"{kind} {counts[kind]}" for kind in sorted(counts))
    for kind in sorted({*counts} - {"none", _winner(answers)}):
        answer = min(
            (answer for answer in answers if answer.relation == kind),
            key=lambda answer: (-answer.confidence, answer.reason),
        )
        yield reject_answer(answer, "vote", f"the vote was: {tally}", source)


def reject_answer(answer: EdgeReply, stage: str, why: str, source: EdgeSource) -> RejectedEdge:
    """Return the record of an answer that gives no edge, with the reason."""
    content = {
        **answer.model_dump(include={"parent", "child", "reason"}),
        "kind": answer.relation,
        "confidence": answer.confidence_share,
    }
    return RejectedEdge.model_validate({**content, "stage": stage, "why": why, **source._asdict()})


def _answers_for(pair: Pair, samples: Sequence[CheckedEdges]) -> list[EdgeReply]:
    return [sample.answers[pair] for sample in samples if pair in sample.answers]


def _winner(answers: Sequence[EdgeReply]) -> str:
    counts = Counter(answer.relation for answer in answers).most_common()
    tied = len(counts) > 1 and counts[0][1] == counts[1][1]
    return "none" if tied or not counts else counts[0][0]


_KINDS = ("weak", "strong", "activation")
"""The kinds of edges in ascending rank: the first is removed first."""


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
    graph = _GrowingGraph()
    kept, dropped = [], []
    for edge in standing:
        graph.add(edge)
        kept.append(edge)
    for edge in sorted(edges, key=_rank, reverse=True):
        path = graph.path(edge.child, edge.parent)
        if path is None:
            graph.add(edge)
            kept.append(edge)
        else:
            dropped.append((edge, (edge.parent, *path)))
    return Projection(tuple(sorted(kept, key=_ends)), tuple(sorted(dropped, key=lambda entry: _ends(entry[0]))))


def _rank(edge: Edge) -> tuple[int, float, str, str]:
    return _KINDS.index(edge.kind), 1.0 if edge.confidence is None else edge.confidence, edge.parent, edge.child


def _ends(edge: Edge) -> tuple[str, str]:
    return edge.parent, edge.child


class _GrowingGraph:
    """A graph that grows edge by edge."""

    def __init__(self) -> None:
        self._children: dict[str, list[str]] = defaultdict(list)

    def add(self, edge: Edge) -> None:
        """Add an edge."""
        self._children[edge.parent].append(edge.child)

    def path(self, start: str, end: str) -> tuple[str, ...] | None:
        """Return the shortest path along the edges, including both ends; None if there is none."""
        came_from: dict[str, str | None] = {start: None}
        frontier = [start]
        while frontier and end not in came_from:
            reached = [(child, node) for node in frontier for child in self._children[node]]
            frontier = []
            for child, node in sorted(reached):
                if child not in came_from:
                    came_from[child] = node
                    frontier.append(child)
        return _path_to(came_from, end) if end in came_from else None


def _path_to(came_from: Mapping[str, str | None], end: str) -> tuple[str, ...]:
    path: list[str] = []
    node: str | None = end
    while node is not None:
        path.append(node)
        node = came_from[node]
    return tuple(reversed(path))
