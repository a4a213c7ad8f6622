"""What a picture of a rubric graph shows, before it has a form: criteria, edges, and the words on them."""

from collections.abc import Mapping
from dataclasses import dataclass

from jurygraph.aggregation import gear
from jurygraph.schema import Criterion, Edge, Rubric


@dataclass(frozen=True, slots=True)
class Score:
    """What a criterion came to in one response: its `local` score p, and what is `left` of it, q; both in [0, 1].

    `missing` says what of its judgement is not there, such as "unjudged"; `reason` is what the judges said. Where it is
    not `judged` at all, `local` is what it counts for by the run's rule.
    """

    local: float
    left: float
    missing: str = ""
    reason: str = ""
    judged: bool = True

    @property
    def suppressed(self) -> bool:
        """Whether a prerequisite took some of it away."""
        return self.left < self.local


@dataclass(frozen=True, slots=True)
class Scores:
    """One response's scores by criterion, and how edges counted: the `aggregation` of its run, and λ by (parent, child)
    where that is `gear`. `failed` is whether the response has no reward."""

    response: str
    aggregation: str
    kappa: float
    criteria: Mapping[str, Score]
    retention: Mapping[tuple[str, str], float]
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A criterion, the role that it or an annotator states, and its score where the picture is of a response."""

    criterion: Criterion
    role: str | None
    score: Score | None

    @property
    def penalty(self) -> bool:
        """Whether it takes away."""
        return self.criterion.weight < 0

    @property
    def suppressed(self) -> bool:
        """Whether a prerequisite took some of it away."""
        return self.score is not None and self.score.suppressed

    @property
    def missing(self) -> str:
        """What of its judgement is not there."""
        return "" if self.score is None else self.score.missing

    @property
    def standing(self) -> str:
        """Its role, if it has one, and its signed weight."""
        weight = f"weight {_signed(self.criterion.weight)}"
        return f"{self.role}, {weight}" if self.role else weight

    @property
    def results(self) -> list[str]:
        """Lines with p → q and each mark on it; none where there is no response."""
        if self.score is None:
            return []
        return [_change(self.score), *["▼ suppressed"] * self.suppressed, *[f"? {self.missing}"] * bool(self.missing)]


@dataclass(frozen=True, slots=True)
class Link:
    """An edge between two nodes, by their places; `label` says its kind and what it keeps. One that is `upward` closes
    a cycle: its child stands above its parent."""

    parent: int
    child: int
    edge: Edge
    label: str
    upward: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """All that a picture shows. Nodes and links stand in the rubric's order; `order` is one of the nodes in which every
    parent stands before its children, but for the `upward` links. `scores` are those of the response that it is of, if
    any."""

    title: str
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    order: tuple[int, ...]
    scores: Scores | None

    @property
    def summary(self) -> str:
        """What there is to see, in a sentence or two."""
        said = f"{len(self.nodes)} criteria and {len(self.links)} edges; parents stand above what needs them"
        upward = [f"{one.edge.parent} → {one.edge.child}" for one in self.links if one.upward]
        said += f", but for {', '.join(upward)}." if upward else "."
        if self.scores is None:
            return said
        held = ", ".join(node.criterion.id for node in self.nodes if node.suppressed) or "none"
        return f"{said} Suppressed: {held}."


def picture_of(task: str, rubric: Rubric, scores: Scores | None = None) -> Picture:
    """The picture of a task's rubric, of one response's `scores` on it if they are given.

    Edges of a response's picture may go round, as a run that makes no use of them lets them. Raises `GraphCycleError`
    where they do without a response.
    """
    place = {criterion.id: number for number, criterion in enumerate(rubric.criteria)}
    ends = [(place[edge.parent], place[edge.child]) for edge in rubric.edges]
    order = _order(list(place), ends) if scores is None else _order_of_most(list(place), ends)
    rank = {node: at for at, node in enumerate(order)}
    given = {} if rubric.annotation is None else rubric.annotation.roles
    return Picture(
        title=f"Rubric of task {task}" + ("" if scores is None else _whose(scores)),
        nodes=tuple(
            Node(c, c.role or given.get(c.id), None if scores is None else scores.criteria[c.id])
            for c in rubric.criteria
        ),
        links=tuple(
            Link(parent, child, edge, _label(edge, scores), rank[parent] > rank[child])
            for (parent, child), edge in zip(ends, rubric.edges, strict=True)
        ),
        order=order,
        scores=scores,
    )


def _order(names: list[str], ends: list[tuple[int, int]]) -> tuple[int, ...]:
    """The nodes, parents before children. Raises `GraphCycleError`."""
    return gear.compile(len(names), [parent for parent, _ in ends], [child for _, child in ends], names).order


def _order_of_most(names: list[str], ends: list[tuple[int, int]]) -> tuple[int, ...]:
    """The nodes, parents before children but for one edge of each cycle that is met."""
    closing = _closing_edges(len(names), ends)
    return _order(names, [pair for pair in ends if pair not in closing])


def _closing_edges(n: int, ends: list[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the edges that close a cycle in a depth-first search from the first node on."""
    children: list[list[int]] = [[] for _ in range(n)]
    for parent, child in ends:
        children[parent].append(child)
    left = [iter(sorted(found)) for found in children]
    is_found, is_on_path = [False] * n, [False] * n
    closing: set[tuple[int, int]] = set()
    for start in range(n):
        path = [] if is_found[start] else [start]
        while path:
            node = path[-1]
            is_found[node] = is_on_path[node] = True
            below = next(left[node], None)
            if below is None:
                is_on_path[path.pop()] = False
            elif is_on_path[below]:
                closing.add((node, below))
            elif not is_found[below]:
                path.append(below)
    return closing


def _whose(scores: Scores) -> str:
    strength = f", κ = {_exact(scores.kappa)}" if scores.aggregation == "gear" else ""
    failed = "; its reward failed" if scores.failed else ""
    return f", response {scores.response} ({scores.aggregation}{strength}{failed})"


def _label(edge: Edge, scores: Scores | None) -> str:
    if scores is None:
        own: dict[str, float] = {} if edge.retention is None else {edge.kind: edge.retention}
        return f"{edge.kind} {_short(float(gear.retention([edge.kind], base=own)[0]))}"
    if scores.aggregation == "gear":
        return f"{edge.kind} {_short(scores.retention[edge.parent, edge.child])}"
    return f"{edge.kind}, {'not used' if scores.aggregation == 'flat' else 'gate'}"


def _short(share: float) -> str:
    """A share of 1 in two digits, without the 0 before the point."""
    text = f"{share:.2g}"
    return text.removeprefix("0") if text.startswith("0.") else text


def _exact(value: float) -> str:
    return str(value).removesuffix(".0")


def _signed(weight: float) -> str:
    return ("+" * (weight > 0) + _exact(weight)).replace("-", "−")


def _change(score: Score) -> str:
    """p → q in two digits, or in as many more as tell them apart; p is no number where nobody judged it."""
    for digits in (2, 4):
        local, left = f"{score.local:.{digits}f}", f"{score.left:.{digits}f}"
        if (local == left) is not score.suppressed:
            break
    return f"p {local if score.judged else f'– (counts {local})'} → q {left}"
