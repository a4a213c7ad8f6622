"""The Mermaid text of a rubric is valid for any texts."""

import html
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph.cli.commands.draw import to_mermaid
from jurygraph.errors import GraphCycleError
from jurygraph.messages import escape_hidden_characters
from jurygraph.schema import Annotation, Criterion, Edge, Rubric
from tests.examples import at_most
from tests.rows import all_rows

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


def rubric_of(criteria: int, edges: list[tuple[int, int]], kind: Any = "strong") -> Rubric:
    """Return a rubric of criteria c0, c1, … with edges between them, by their numbers."""
    return Rubric(
        criteria=tuple(
            Criterion(id=f"c{i}", text=f"What c{i} asks for.", weight=1.0) for i in range(criteria)
        ),
        edges=tuple(
            Edge(parent=f"c{parent}", child=f"c{child}", kind=kind) for parent, child in edges
        ),
    )


@st.composite
def drawings(draw: st.DrawFn) -> tuple[str, Rubric]:
    """A task and its rubric, with acyclic edges in any order."""
    n = draw(st.integers(1, 6))
    names = draw(st.permutations(range(n)))
    acyclic = [(names[i], names[j]) for j in range(n) for i in range(j)]
    pairs = draw(st.lists(st.sampled_from(acyclic), unique=True, max_size=2 * n)) if acyclic else []
    ids = draw(st.lists(texts.filter(bool), min_size=n, max_size=n, unique=True))
    weights = draw(st.lists(st.sampled_from((1.0, -2.0, 0.5)), min_size=n, max_size=n))
    filled = st.lists(texts.filter(str.strip), min_size=n, max_size=n, unique_by=str.strip)
    criteria = [
        Criterion(id=i, text=t, weight=w)
        for i, t, w in zip(ids, draw(filled), weights, strict=True)
    ]
    edges = [
        Edge(parent=ids[a], child=ids[b], kind=draw(st.sampled_from(KINDS)), reason=draw(texts))
        for a, b in pairs
    ]
    return draw(texts), Rubric(criteria=tuple(criteria), edges=tuple(edges))


LABEL = r"(?:[\w ,.()\-]|<br/>|</?b>|#\d+;)*"
NAMES = r"n\d+(?:,n\d+)*"
LINES = (
    r"flowchart TD",
    rf'  subgraph rubric\["{LABEL}"\]',
    r"    direction TB",
    rf'    n\d+(?:\["{LABEL}"\]|\{{\{{"{LABEL}"\}}\}})',
    rf'    n\d+ (?:-\.->|==>|--o)\|"{LABEL}"\| n\d+',
    r"  end",
    r"  classDef [a-z]+ [a-z0-9#:, -]+",
    rf"  class {NAMES} [a-z]+",
)
"""All forms of a line. No label has a quote, a bracket, a colon, or any other sign that Mermaid reads."""


@settings(max_examples=at_most(60))
@given(drawings())
def test_every_line_has_a_known_form_and_every_criterion_and_edge_occurs_once(
    drawing: tuple[str, Rubric],
) -> None:
    rubric = drawing[1]
    text = to_mermaid(*drawing)
    assert text == to_mermaid(*drawing)
    for line in text.splitlines():
        assert any(re.fullmatch(one, line) for one in LINES), line
    nodes = re.findall(r"^    n(\d+)[\[{]", text, re.MULTILINE)
    assert nodes == [str(number) for number in range(1, len(rubric.criteria) + 1)]
    edges = re.findall(r"^    n(\d+) .*\| n(\d+)$", text, re.MULTILINE)
    number = {criterion.id: str(place) for place, criterion in enumerate(rubric.criteria, start=1)}
    assert edges == [(number[edge.parent], number[edge.child]) for edge in rubric.edges]


def test_a_label_decodes_to_the_original_text() -> None:
    rubric = rubric_of(1, [])
    for hostile in HOSTILE:
        criterion = rubric.criteria[0].model_copy(update={"text": hostile[:40]})
        text = to_mermaid("t", rubric.model_copy(update={"criteria": (criterion,)}))
        label = next(line for line in text.splitlines() if line.startswith("    n1"))
        label = label.removeprefix('    n1["<b>c0</b><br/>weight #43;1<br/>').removesuffix('"]')
        shown = html.unescape(label.replace("<br/>", "").replace("#", "&#")).replace("\u2060", "")
        assert shown.replace(" ", "") == escape_hidden_characters(
            " ".join(hostile[:40].split())
        ).replace("ﬂ", "fl").replace(" ", "")


def shown(rubric: Rubric) -> str:
    """Return the drawing with its codes resolved."""
    return html.unescape(to_mermaid("t", rubric).replace("#", "&#")).replace("\u2060", "")


@all_rows(
    "kind, retention, text",
    [
        ("weak", None, "weak .6"),
        ("strong", None, "strong .2"),
        ("activation", None, "activation 0"),
        ("weak", 0.75, "weak .75"),
    ],
)
def test_an_edge_has_its_kind_and_retention(kind: Any, retention: float | None, text: str) -> None:
    edge = Edge(parent="c0", child="c1", kind=kind, retention=retention)
    assert f'|"{text}"| n2' in shown(rubric_of(2, []).model_copy(update={"edges": (edge,)}))


def test_a_node_has_its_role_also_an_annotated_one_and_its_signed_weight() -> None:
    criteria = (
        Criterion(id="a", text="x", weight=-2.5, role="penalty"),
        Criterion(id="b", text="y", weight=3.0),
        Criterion(id="c", text="z", weight=123456789.123),
    )
    note = Annotation(domain="generic", candidates=0, roles={"a": "core", "b": "core"}, seen={})
    text = shown(Rubric(criteria=criteria, annotation=note))
    for line in (
        "penalty, weight −2.5<br/>x",
        "core, weight +3<br/>y",
        "</b><br/>weight +123456789.123<br/>z",
    ):
        assert line in text


def test_a_penalty_is_marked_by_shape_and_border_and_a_cycle_is_refused() -> None:
    rubric = rubric_of(2, [])
    penalty = rubric.criteria[0].model_copy(update={"weight": -1.0})
    text = to_mermaid("t", rubric.model_copy(update={"criteria": (penalty, rubric.criteria[1])}))
    assert '    n1{{"' in text
    assert '    n2["' in text
    assert "  class n1 penalty\n" in text
    with pytest.raises(GraphCycleError, match="c0"):
        to_mermaid("t", rubric_of(3, [(0, 1), (1, 0), (2, 0), (1, 2)]))
