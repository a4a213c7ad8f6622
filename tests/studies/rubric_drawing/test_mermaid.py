"""The Mermaid text is valid for any texts."""

import html
import re

from hypothesis import given, settings

from jurygraph.safety.text_folding import escape_hidden
from jurygraph.schema import Rubric
from jurygraph.studies.rubric_drawing import RubricDrawing, Score, Scores, arrange_rubric, to_mermaid
from tests.examples import at_most
from tests.studies.rubric_drawing.rubrics import HOSTILE, drawings, rubric_of

LABEL = r"(?:[\w ,.()\-]|<br/>|</?b>|#\d+;|→|▼|\?)*"
NAMES = r"[nk]\d+(?:,[nk]\d+)*"
LINES = (
    r"flowchart TD",
    rf'  subgraph (?:rubric|legend)\["{LABEL}"\]',
    r"    direction TB",
    rf'    [nk]\d+(?:\["{LABEL}"\]|\{{\{{"{LABEL}"\}}\}})',
    rf'    [nk]\d+ (?:-\.->|==>|--o)\|"{LABEL}"\| [nk]\d+',
    r"  end",
    r"  classDef [a-z]+ [a-z0-9#:, -]+",
    rf"  class {NAMES} [a-z]+",
)
"""All forms of a line. No label has a quote, a bracket, a colon, or any other sign that Mermaid reads."""


@settings(max_examples=at_most(60))
@given(drawings())
def test_every_line_has_a_known_form_for_any_text(drawing: RubricDrawing) -> None:
    for line in to_mermaid(drawing).splitlines():
        assert any(re.fullmatch(one, line) for one in LINES), line


@settings(max_examples=at_most(40))
@given(drawings())
def test_every_criterion_and_edge_occurs_once(drawing: RubricDrawing) -> None:
    text = to_mermaid(drawing)
    assert text == to_mermaid(drawing)
    nodes = re.findall(r"^    n(\d+)[\[{]", text, re.MULTILINE)
    assert nodes == [str(number) for number in range(1, len(drawing.nodes) + 1)]
    edges = re.findall(r"^    n(\d+) .*\| n(\d+)$", text, re.MULTILINE)
    assert edges == [(str(link.parent + 1), str(link.child + 1)) for link in drawing.links]


def test_a_label_decodes_to_the_original_text() -> None:
    rubric = rubric_of(1, [])
    for hostile in HOSTILE:
        criterion = rubric.criteria[0].model_copy(update={"text": hostile[:40]})
        text = to_mermaid(arrange_rubric("t", rubric.model_copy(update={"criteria": (criterion,)})))
        label = next(line for line in text.splitlines() if line.startswith("    n1"))
        label = label.removeprefix('    n1["<b>c0</b><br/>weight #43;1<br/>').removesuffix('"]')
        shown = html.unescape(label.replace("<br/>", "").replace("#", "&#")).replace("\u2060", "")
        assert shown.replace(" ", "") == escape_hidden(" ".join(hostile[:40].split())).replace("ﬂ", "fl").replace(
            " ", ""
        )


def test_a_backslash_before_n_does_not_break_the_line() -> None:
    criterion = rubric_of(1, []).criteria[0].model_copy(update={"text": r"x \neq 0"})
    text = to_mermaid(arrange_rubric("t", Rubric(criteria=(criterion,))))
    assert "x #92;#8288;neq 0" in text  # Mermaid breaks a line at "\n" even where the backslash is encoded


def test_penalties_suppressed_and_unjudged_criteria_are_marked_by_shape_and_border() -> None:
    rubric = rubric_of(3, [])
    penalty = rubric.criteria[0].model_copy(update={"weight": -1.0})
    found = {"c0": Score(1, 1), "c1": Score(1, 0.5), "c2": Score(0, 0, "unjudged")}
    rubric = rubric.model_copy(update={"criteria": (penalty, *rubric.criteria[1:])})
    text = to_mermaid(arrange_rubric("t", rubric, Scores("r", "gear", 1.0, found, {})))
    assert '    n1{{"' in text
    assert '    n2["' in text
    for marked in ("class k4,n1 penalty", "class k6,n2 suppressed", "class k7,n3 missing"):
        assert f"  {marked}\n" in text
    assert "<b>#9660; suppressed</b>" in text
    assert "<b>#63; unjudged</b>" in text


def test_each_kind_of_edge_has_its_own_arrow() -> None:
    arrows = {"weak": "-.->", "strong": "==>", "activation": "--o"}
    for kind, arrow in arrows.items():
        assert f'    n1 {arrow}|"{kind} ' in to_mermaid(arrange_rubric("t", rubric_of(2, [(0, 1)], kind)))
