"""The Mermaid text is valid for any texts."""

import html
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings

from jurygraph.errors import GraphCycleError
from jurygraph.messages import escape_hidden
from jurygraph.schema import Annotation, Criterion, Edge, Rubric
from jurygraph.studies.rubric_drawing import Score, Scores, to_mermaid
from tests.examples import at_most
from tests.studies.rubric_drawing.rubrics import HOSTILE, drawings, rubric_of

LABEL = r"(?:[\w ,.()\-]|<br/>|</?b>|#\d+;|→|▼|\?)*"
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
def test_every_line_has_a_known_form_for_any_text(drawing: tuple[str, Rubric, Scores | None]) -> None:
    for line in to_mermaid(*drawing).splitlines():
        assert any(re.fullmatch(one, line) for one in LINES), line


@settings(max_examples=at_most(40))
@given(drawings())
def test_every_criterion_and_edge_occurs_once(drawing: tuple[str, Rubric, Scores | None]) -> None:
    rubric = drawing[1]
    text = to_mermaid(*drawing)
    assert text == to_mermaid(*drawing)
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
        assert shown.replace(" ", "") == escape_hidden(" ".join(hostile[:40].split())).replace("ﬂ", "fl").replace(
            " ", ""
        )


def test_penalties_suppressed_and_unjudged_criteria_are_marked_by_shape_and_border() -> None:
    rubric = rubric_of(3, [])
    penalty = rubric.criteria[0].model_copy(update={"weight": -1.0})
    found = {"c0": Score(1, 1), "c1": Score(1, 0.5), "c2": Score(0, 0, "unjudged")}
    rubric = rubric.model_copy(update={"criteria": (penalty, *rubric.criteria[1:])})
    text = to_mermaid("t", rubric, Scores("r", "gear", 1.0, found, {}))
    assert '    n1{{"' in text
    assert '    n2["' in text
    for marked in ("class n1 penalty", "class n2 suppressed", "class n3 missing"):
        assert f"  {marked}\n" in text
    assert "<b>#9660; suppressed</b>" in text
    assert "<b>#63; unjudged</b>" in text


def shown(rubric: Rubric, scores: Scores | None = None) -> str:
    """Return the drawing with its codes resolved."""
    return html.unescape(to_mermaid("t", rubric, scores).replace("#", "&#")).replace("\u2060", "")


def scored(aggregation: str, retention: float = 0.3, **fields: Any) -> Scores:
    by_criterion: Mapping[str, Score] = dict.fromkeys(("c0", "c1", "c2"), Score(1.0, 0.5))
    return Scores("r", aggregation, 2.0, by_criterion, {("c0", "c1"): retention}, **fields)


@pytest.mark.parametrize(
    ("kind", "retention", "scores", "text"),
    [
        ("weak", None, None, "weak .6"),
        ("strong", None, None, "strong .2"),
        ("activation", None, None, "activation 0"),
        ("weak", 0.75, None, "weak .75"),
        ("strong", None, scored("gear"), "strong .3"),
        ("strong", None, scored("gear", 1.0), "strong 1"),
        ("strong", None, scored("flat"), "strong, not used"),
        ("strong", None, scored("hard-local"), "strong, gate"),
    ],
)
def test_an_edge_has_its_kind_and_retention_or_its_effect_in_the_run(
    kind: Any, retention: float | None, scores: Scores | None, text: str
) -> None:
    edge = Edge(parent="c0", child="c1", kind=kind, retention=retention)
    assert f'|"{text}"| n2' in shown(rubric_of(2, []).model_copy(update={"edges": (edge,)}), scores)


def test_a_node_has_its_role_also_an_annotated_one_and_its_signed_weight() -> None:
    criteria = (
        Criterion(id="a", text="x", weight=-2.5, role="penalty"),
        Criterion(id="b", text="y", weight=3.0),
        Criterion(id="c", text="z", weight=123456789.123),
    )
    note = Annotation(domain="generic", candidates=0, roles={"a": "core", "b": "core"}, seen={})
    text = shown(Rubric(criteria=criteria, annotation=note))
    for line in ("penalty, weight −2.5<br/>x", "core, weight +3<br/>y", "</b><br/>weight +123456789.123<br/>z"):
        assert line in text


def test_cycles_are_drawn_only_for_a_run_that_does_not_use_edges() -> None:
    cycle = rubric_of(3, [(0, 1), (1, 0), (2, 0), (1, 2)])
    assert to_mermaid("t", cycle, scored("flat")).count(" ==>|") == 4
    with pytest.raises(GraphCycleError, match="c0"):
        to_mermaid("t", cycle)
