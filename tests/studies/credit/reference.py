"""Examples as sheets: one response with the graph of its rubric each."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from jurygraph.aggregation import gear
from jurygraph.schema import Edge
from jurygraph.studies.credit import RunRubricScores, TaskRubricScores
from tests.aggregation.reference import rubrics

LAMBDA = {"weak": 0.6, "strong": 0.2, "activation": 0.0}


@dataclass(frozen=True)
class Link:
    """An edge: places of its ends, and its kind."""

    parent: int
    child: int
    kind: str


@dataclass(frozen=True)
class Example:
    """One response with the graph of its rubric; `judged` is True for criteria with a score."""

    weights: Sequence[float]
    links: Sequence[Link]
    p: Sequence[float]
    judged: Sequence[bool]
    met: Sequence[bool] = field(default=())

    @property
    def total_weight(self) -> float:
        return sum(weight for weight in self.weights if weight > 0)

    def reward(self, scores: Sequence[float]) -> float:
        return sum(w * s for w, s in zip(self.weights, scores, strict=True)) / self.total_weight


def sheet_of(name: str, examples: Sequence[Example]) -> TaskRubricScores:
    """Return examples of one rubric as a sheet."""
    first = examples[0]
    names = [f"c{i}" for i in range(len(first.weights))]
    parents, children = [link.parent for link in first.links], [link.child for link in first.links]
    weights = np.array(first.weights, dtype=np.float64)
    p = np.array([one.p for one in examples], dtype=np.float64)
    met = np.array([one.met or [score >= 0.5 for score in one.p] for one in examples])
    return TaskRubricScores(
        task=name,
        unit=f"task {name}",
        responses=tuple(f"{name}/{row}" for row in range(len(examples))),
        criteria=tuple(names),
        edges=tuple(
            Edge(parent=names[x.parent], child=names[x.child], kind=x.kind) for x in first.links
        ),
        parents=tuple(parents),
        children=tuple(children),
        graph=gear.compile(len(names), parents, children),
        base=tuple(LAMBDA[link.kind] for link in first.links),
        p=p,
        is_judged=np.array([one.judged for one in examples], dtype=np.bool_),
        exact="never",
        weights=weights,
        applied_weights=np.tile(weights, (len(examples), 1)),
        hard={
            f"hard-{mode}": gear.hard(p, parents, children, mode, met)
            for mode in ("local", "transitive")
        },
    )


def sheets_of(groups: Sequence[Sequence[Example]], kappa: float = 1.0) -> RunRubricScores:
    each = [sheet_of(f"t{place}", group) for place, group in enumerate(groups)]
    return RunRubricScores(
        kappa=kappa, tasks=len(each), responses=sum(map(len, groups)), sheets=each
    )


@st.composite
def groups(draw: st.DrawFn, largest: int = 5) -> list[Example]:
    """Three responses to one rubric with a random graph; a tenth of the criteria are unjudged."""
    rubric = draw(rubrics(largest=largest))
    weight = st.sampled_from([-2.0, -0.5, 0.25, 1.0, 3.0])
    weights = [draw(weight) for _ in range(rubric.n)]
    weights[draw(st.integers(0, rubric.n - 1))] = 2.0
    links = [Link(*ends, kind) for ends, kind in zip(rubric.edges, rubric.kinds, strict=True)]
    judged = [[draw(st.integers(0, 9)) > 0 for _ in range(rubric.n)] for _ in rubric.p]
    return [
        Example(weights, links, p, known)
        for p, known in zip(rubric.p.tolist(), judged, strict=True)
    ]
