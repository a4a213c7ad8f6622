"""The SVG is valid for any texts."""

import re
from collections import Counter
from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from jurygraph.schema import Rubric
from jurygraph.studies.pictures.picture import Picture, Score, Scores, build_picture
from jurygraph.studies.pictures.svg import to_svg
from jurygraph.studies.pictures.text_width import escape_invisible
from tests.examples import at_most
from tests.steps import growth
from tests.studies.pictures.rubrics import pictures, rubric_of

SVG = "{http://www.w3.org/2000/svg}"
ALLOWED_TAGS = {"svg", "title", "desc", "rect", "g", "text", "path", "circle", "polygon"}


def titles(document: ElementTree.Element) -> Counter[str]:
    """Return the first line of each tooltip."""
    return Counter((title.text or "").partition("\n")[0] for title in document.findall(f".//{SVG}g/{SVG}title"))


@settings(max_examples=at_most(40))
@given(pictures())
def test_every_criterion_and_edge_occurs_once_for_any_text(picture: Picture) -> None:
    document = ElementTree.fromstring(to_svg(picture))
    ids = [node.criterion.id for node in picture.nodes]
    edges = [f"{ids[link.parent]} → {ids[link.child]}: {link.label}" for link in picture.links]
    assert titles(document) == Counter(map(escape_invisible, ids + edges))


@settings(max_examples=at_most(40))
@given(pictures())
def test_the_svg_has_no_scripts_or_links(picture: Picture) -> None:
    text = to_svg(picture)
    for element in ElementTree.fromstring(text).iter():
        assert element.tag.removeprefix(SVG) in ALLOWED_TAGS
        assert not any(name.startswith("on") or "href" in name for name in element.attrib)
    assert text == to_svg(picture)


def test_the_svg_has_a_title_and_a_description() -> None:
    document = ElementTree.fromstring(to_svg(build_picture("t<1>", rubric_of(2, [(0, 1)]))))
    assert document.get("role") == "img"
    assert document.findtext(f"{SVG}title") == "Rubric of task t<1>"
    assert document.findtext(f"{SVG}desc") == "2 criteria and 1 edges; parents stand above what needs them."


def test_the_svg_has_a_white_background() -> None:
    document = ElementTree.fromstring(to_svg(build_picture("t", rubric_of(2, []))))
    ground = document.find(f"{SVG}rect")
    assert ground is not None
    assert ground.get("fill") == "#ffffff"
    assert (ground.get("width"), ground.get("height")) == (document.get("width"), document.get("height"))


def outline_style(text: str, name: str) -> str:
    """Return shape, stroke width and dashes of a criterion's outline, without its colours and positions."""
    group = text[text.index(f"<title>{name}\n") :]
    found = re.search(r"<(rect|polygon) .*?/>", group)
    assert found is not None
    drawn = re.findall(r'stroke-(?:width|dasharray)="[^"]*"', found[0])
    return " ".join([found[1], *drawn])


def test_penalties_suppressed_and_unjudged_criteria_differ_in_more_than_colour() -> None:
    rubric = rubric_of(4, [])
    penalty = rubric.criteria[1].model_copy(update={"weight": -1.0})
    rubric = rubric.model_copy(update={"criteria": (rubric.criteria[0], penalty, *rubric.criteria[2:])})
    found = {"c0": Score(1, 1), "c1": Score(1, 1), "c2": Score(1, 0.5), "c3": Score(0, 0, "unjudged")}
    text = to_svg(build_picture("t", rubric, Scores("r", "gear", 1.0, found, {})))
    assert len({outline_style(text, name) for name in found}) == 4


def test_kinds_of_edges_differ_in_more_than_colour() -> None:
    drawn = set()
    for kind in ("weak", "strong", "activation"):
        text = to_svg(build_picture("t", rubric_of(2, [(0, 1)], kind)))
        edge = text[text.index("c0 → c1") :].partition("</g>")[0]
        drawn.add((*re.findall(r'stroke-(?:width|dasharray)="[^"]*"', edge), *re.findall(r"<(\w+) ", edge)))
    assert len(drawn) == 3


def test_an_edge_that_closes_a_cycle_has_its_head_at_the_box_above() -> None:
    found = dict.fromkeys(("c0", "c1"), Score(1, 1))
    text = to_svg(build_picture("t", rubric_of(2, [(0, 1), (1, 0)]), Scores("r", "flat", 1.0, found, {})))
    down, up = (text[text.index(f"<title>{ends}") :].partition("</path>")[0] for ends in ("c0 → c1", "c1 → c0"))
    starts = [float(re.search(r'd="M[\d.]+,([\d.]+)', edge)[1]) for edge in (down, up)]  # type: ignore[index]
    assert 'transform="rotate(180' not in down.partition("<title>c1 → c0")[0]
    assert up.partition("\n")[0].count('transform="rotate(180') == 1
    assert starts[1] > starts[0], "the line leaves room for its head"


def test_a_long_weight_stays_within_its_box() -> None:
    criterion = (
        rubric_of(1, []).criteria[0].model_copy(update={"weight": -0.12345678901234567, "role": "applicability"})
    )
    text = to_svg(build_picture("t", Rubric(criteria=(criterion,))))
    assert ">applicability, weight</text>" in text
    assert ">−0.12345678901234566</text>" in text


def test_reasons_are_shown_as_tooltips() -> None:
    rubric = rubric_of(2, [(0, 1)])
    edge = rubric.edges[0].model_copy(update={"reason": "no facts, no advice"})
    found = dict.fromkeys(("c0", "c1"), Score(1.0, 1.0, reason="it says so itself"))
    scores = Scores("r", "gear", 1.0, found, {("c0", "c1"): 0.2})
    text = to_svg(build_picture("t", rubric.model_copy(update={"edges": (edge,)}), scores))
    assert text.count("\nno facts, no advice</title>") == 1
    assert text.count("\nit says so itself</title>") == 2


def chain(criteria: int) -> list[tuple[int, int]]:
    return [(number, number + 1) for number in range(criteria - 1)]


def star(criteria: int) -> list[tuple[int, int]]:
    return [(0, number) for number in range(1, criteria)]


def one_edge(criteria: int) -> list[tuple[int, int]]:
    return [(0, criteria - 1)]


def chain_and_star(criteria: int) -> list[tuple[int, int]]:
    return [*chain(criteria), *star(criteria)[1:]]


def chain_and_long_edges(criteria: int) -> list[tuple[int, int]]:
    return [*chain(criteria), *((number, number + criteria // 2) for number in range(criteria // 2))]


@pytest.mark.landing
@pytest.mark.parametrize(
    ("edges_of", "most"),
    # rows hold some √n boxes, and a short edge passes a few of them: n√n at most
    [
        pytest.param(chain, 6, marks=pytest.mark.exhaustive),
        (star, 8),
        pytest.param(one_edge, 6, marks=pytest.mark.exhaustive),
        pytest.param(chain_and_star, 6, marks=pytest.mark.exhaustive),
        (chain_and_long_edges, 6),
    ],
)
def test_drawing_time_grows_less_than_quadratically(
    edges_of: Callable[[int], list[tuple[int, int]]], most: float
) -> None:
    def draw(criteria: int) -> Callable[[], object]:
        picture = build_picture("t", rubric_of(criteria, edges_of(criteria)))
        return lambda: to_svg(picture)

    assert growth(draw, 40) < most
