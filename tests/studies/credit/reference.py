"""Reference implementation of GEAR, sections 3.4 and 4.3: plain loops over one edge of one response at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from jurygraph.aggregation import gear
from jurygraph.schema import Edge
from jurygraph.studies.credit.sheets import RubricSheet, Sheets
from tests.aggregation.reference import eq_9, rubrics

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

    def holds(self, criterion: int) -> bool:
        return self.met[criterion] if self.met else self.p[criterion] >= 0.5

    def reward(self, scores: Sequence[float]) -> float:
        return sum(w * s for w, s in zip(self.weights, scores, strict=True)) / self.total_weight


Rule = Callable[[Example], list[float]]


def flat(example: Example) -> list[float]:
    return list(example.p)


def soft(kappa: float) -> Rule:
    return lambda example: [_q(example, i, kappa, example.weights[i] < 0) for i in range(len(example.p))]


def _q(example: Example, i: int, kappa: float, penalty: bool) -> float:
    """An unjudged ancestor supports a penalty, but not a gain."""
    q = example.p[i]
    for link in example.links:
        if link.child == i:
            retention = LAMBDA[link.kind] ** kappa
            if example.judged[link.parent]:
                supported = _q(example, link.parent, kappa, penalty)
            else:
                supported = 1.0 if penalty else 0.0
            q *= supported + (1 - supported) * retention
    return q


def exact(example: Example) -> list[float]:
    """q at κ = 1 from all states; an unjudged ancestor of a penalty holds for sure, and one of a gain does not."""
    return [_exact_q(example, i) for i in range(len(example.p))]


def _exact_q(example: Example, i: int) -> float:
    event = float(example.weights[i] < 0)
    given = [j == i or judged for j, judged in enumerate(example.judged)]
    links = [link for link in example.links if given[link.child]]
    p = [score if known else event for score, known in zip(example.p, given, strict=True)]
    return eq_9(p, [(link.parent, link.child) for link in links], [LAMBDA[link.kind] for link in links])[i]


def hard_local(example: Example) -> list[float]:
    def is_open(i: int) -> bool:
        return all(_supports(example, link) for link in example.links if link.child == i)

    return [p if is_open(i) else 0.0 for i, p in enumerate(example.p)]


def hard_transitive(example: Example) -> list[float]:
    def is_open(i: int, penalty: bool) -> bool:
        mine = [link for link in example.links if link.child == i]
        return all(_holds_for(example, link.parent, penalty) and is_open(link.parent, penalty) for link in mine)

    return [p if is_open(i, example.weights[i] < 0) else 0.0 for i, p in enumerate(example.p)]


def _supports(example: Example, link: Link) -> bool:
    return _holds_for(example, link.parent, example.weights[link.child] < 0)


def _holds_for(example: Example, parent: int, penalty: bool) -> bool:
    """An unjudged parent supports no gain, and every penalty."""
    return example.holds(parent) if example.judged[parent] else penalty


RULES: dict[str, Rule] = {
    "flat": flat,
    "hard-local": hard_local,
    "hard-transitive": hard_transitive,
    "gear": soft(1.0),
}


def leakage(examples: Sequence[Example], rule: Rule, kinds: Sequence[str]) -> float | None:
    """Eq. 15."""
    leaked = []
    for example in examples:
        scores = rule(example)
        for link in _cases(example, kinds):
            if example.p[link.child] >= 0.5 and example.p[link.parent] < 0.5:
                leaked.append(abs(example.weights[link.child]) / example.total_weight * scores[link.child])
    return sum(leaked) / len(leaked) if leaked else None


def preservation(examples: Sequence[Example], rule: Rule, kinds: Sequence[str]) -> float | None:
    """Eq. 16."""
    kept = []
    for example in examples:
        scores = rule(example)
        for link in _cases(example, kinds):
            if example.p[link.child] >= 0.5 and example.p[link.parent] >= 0.5:
                kept.append(scores[link.child] / example.p[link.child])
    return sum(kept) / len(kept) if kept else None


def _cases(example: Example, kinds: Sequence[str]) -> list[Link]:
    return [
        link
        for link in example.links
        if link.kind in kinds and example.judged[link.parent] and example.judged[link.child]
    ]


def sheet_of(name: str, examples: Sequence[Example]) -> RubricSheet:
    """Return examples of one rubric as a sheet, with the hard scores of the reference."""
    first = examples[0]
    names = [f"c{i}" for i in range(len(first.weights))]
    parents, children = [link.parent for link in first.links], [link.child for link in first.links]
    weights = np.array(first.weights, dtype=np.float64)
    return RubricSheet(
        task=name,
        responses=tuple(f"{name}/{row}" for row in range(len(examples))),
        criteria=tuple(names),
        edges=tuple(Edge(parent=names[x.parent], child=names[x.child], kind=x.kind) for x in first.links),
        parents=tuple(parents),
        children=tuple(children),
        graph=gear.compile(len(names), parents, children),
        base=tuple(LAMBDA[link.kind] for link in first.links),
        p=np.array([one.p for one in examples], dtype=np.float64),
        is_judged=np.array([one.judged for one in examples], dtype=np.bool_),
        exact="never",
        weights=weights,
        applied_weights=np.tile(weights, (len(examples), 1)),
        hard={name: np.array([RULES[name](one) for one in examples]) for name in ("hard-local", "hard-transitive")},
    )


def sheets_of(groups: Sequence[Sequence[Example]], kappa: float = 1.0) -> Sheets:
    each = [sheet_of(f"t{place}", group) for place, group in enumerate(groups)]
    return Sheets(kappa=kappa, tasks=len(each), responses=sum(map(len, groups)), sheets=each)


@st.composite
def groups(draw: st.DrawFn, largest: int = 5) -> list[Example]:
    """Three responses to one rubric with a random graph; a tenth of the criteria are unjudged."""
    rubric = draw(rubrics(largest=largest))
    weight = st.sampled_from([-2.0, -0.5, 0.25, 1.0, 3.0])
    weights = [draw(weight) for _ in range(rubric.n)]
    weights[draw(st.integers(0, rubric.n - 1))] = 2.0
    links = [Link(*ends, kind) for ends, kind in zip(rubric.edges, rubric.kinds, strict=True)]
    judged = [[draw(st.integers(0, 9)) > 0 for _ in range(rubric.n)] for _ in rubric.p]
    return [Example(weights, links, p, known) for p, known in zip(rubric.p.tolist(), judged, strict=True)]
