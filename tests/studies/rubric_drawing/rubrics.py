"""Random rubrics and drawings, with hostile texts."""

from typing import Any

from hypothesis import strategies as st

from jurygraph.schema import Criterion, Edge, Rubric
from jurygraph.studies.rubric_drawing import Score, Scores

KINDS = ("weak", "strong", "activation")
HOSTILE = (
    '"]; click n1 "javascript:alert(1)"',
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "end\nsubgraph x\n%%{init: {}}%%",
    "`**md** _x_` fa:fa-car $$x^2$$",
    "style n1:#34;fill:#fff; classDef x:#f00;",
    r"$\neq$ C:\new\readme",
    "ﬂ°°60¶ß #quot; &lt;b&gt; ]]> <!-- \u202e\x00\x1b[31m",
    "回答应当引用适用的法律条文，并且说明为什么该条文适用于当事人所述的事实。",
)
texts = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=80))
units = st.floats(0.0, 1.0, allow_subnormal=False)


def rubric_of(criteria: int, edges: list[tuple[int, int]], kind: Any = "strong") -> Rubric:
    """Return a rubric of criteria c0, c1, … with edges between them, by their numbers."""
    return Rubric(
        criteria=tuple(Criterion(id=f"c{i}", text=f"What c{i} asks for.", weight=1.0) for i in range(criteria)),
        edges=tuple(Edge(parent=f"c{parent}", child=f"c{child}", kind=kind) for parent, child in edges),
    )


@st.composite
def graphs(draw: st.DrawFn, most: int = 24) -> tuple[int, list[tuple[int, int]]]:
    """A number of nodes, and acyclic edges between them, in any order."""
    n = draw(st.integers(1, most))
    names = draw(st.permutations(range(n)))
    pairs = [(names[i], names[j]) for j in range(n) for i in range(j)]
    return n, draw(st.lists(st.sampled_from(pairs), unique=True, max_size=2 * n)) if pairs else []


@st.composite
def drawings(draw: st.DrawFn) -> tuple[str, Rubric, Scores | None]:
    """What is drawn: a task, its rubric, and the scores of a response, if there is one."""
    n, pairs = draw(graphs(most=6))
    ids = draw(st.lists(texts.filter(bool), min_size=n, max_size=n, unique=True))
    weights = draw(st.lists(st.sampled_from((1.0, -2.0, 0.5)), min_size=n, max_size=n))
    filled = st.lists(texts.filter(str.strip), min_size=n, max_size=n, unique_by=str.strip)
    criteria = [Criterion(id=i, text=t, weight=w) for i, t, w in zip(ids, draw(filled), weights, strict=True)]
    edges = [Edge(parent=ids[a], child=ids[b], kind=draw(st.sampled_from(KINDS)), reason=draw(texts)) for a, b in pairs]
    scores = None
    if draw(st.booleans()):
        found = {}
        for name in ids:
            local, share = draw(units), draw(units)
            missing = draw(st.sampled_from(("", "unjudged")))
            found[name] = Score(local, local * share, missing)
        retention = {(edge.parent, edge.child): draw(units) for edge in edges}
        scores = Scores(draw(texts), "gear", 1.0, found, retention)
    return draw(texts), Rubric(criteria=tuple(criteria), edges=tuple(edges)), scores
