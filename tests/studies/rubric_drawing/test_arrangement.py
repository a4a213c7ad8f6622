"""Texts in a drawing."""

from dataclasses import replace

import pytest

from jurygraph.errors import GraphCycleError
from jurygraph.schema import Annotation, Criterion, Edge, Rubric
from jurygraph.studies.rubric_drawing import Node, Score, Scores, arrange_rubric
from tests.studies.rubric_drawing.rubrics import rubric_of


def labels(rubric: Rubric, scores: Scores | None = None) -> list[str]:
    return [link.label for link in arrange_rubric("t", rubric, scores).links]


def scores(aggregation: str, retention: float = 0.3) -> Scores:
    return Scores("r", aggregation, 2.0, dict.fromkeys(("c0", "c1"), Score(1.0, 0.5)), {("c0", "c1"): retention})


@pytest.mark.parametrize(
    ("kind", "text"), [("weak", "weak .6"), ("strong", "strong .2"), ("activation", "activation 0")]
)
def test_an_edge_label_has_its_kind_and_retention(kind: str, text: str) -> None:
    assert labels(rubric_of(2, [(0, 1)], kind)) == [text]


def test_an_edge_label_has_the_retention_of_the_edge_itself() -> None:
    rubric = rubric_of(2, [])
    edge = Edge(parent="c0", child="c1", kind="weak", retention=0.75)
    assert labels(rubric.model_copy(update={"edges": (edge,)})) == ["weak .75"]


def test_an_edge_label_with_a_run_has_the_effect_in_that_run() -> None:
    rubric = rubric_of(2, [(0, 1)])
    assert labels(rubric, scores("gear")) == ["strong .3"]
    assert labels(rubric, scores("gear", 1.0)) == ["strong 1"]
    assert labels(rubric, scores("flat")) == ["strong, not used"]
    assert labels(rubric, scores("hard-local")) == ["strong, gate"]


def test_the_title_has_the_aggregation_of_the_run() -> None:
    assert arrange_rubric("t", rubric_of(2, []), scores("gear")).title == "Rubric of task t, response r (gear, κ = 2)"
    assert arrange_rubric("t", rubric_of(2, []), scores("flat")).title == "Rubric of task t, response r (flat)"


@pytest.mark.parametrize(
    ("score", "text"),
    [
        (Score(0.5, 0.5), ["p 0.50 → q 0.50"]),
        (Score(0.83, 0.17), ["p 0.83 → q 0.17", "▼ suppressed"]),
        (Score(1.0, 0.9991), ["p 1.0000 → q 0.9991", "▼ suppressed"]),
        (Score(0.0, 0.0, "unjudged", judged=False), ["p – (counts 0.00) → q 0.00", "? unjudged"]),
        (Score(1.0, 0.2, "partly judged"), ["p 1.00 → q 0.20", "▼ suppressed", "? partly judged"]),
    ],
)
def test_a_node_has_its_scores_and_marks(score: Score, text: list[str]) -> None:
    assert Node(Criterion(id="a", text="x", weight=1.0), None, score).results == text


def test_a_node_has_its_role_and_signed_weight() -> None:
    penalty = Criterion(id="a", text="x", weight=-2.5, role="penalty")
    assert Node(penalty, penalty.role, None).role_and_weight == "penalty, weight −2.5"
    assert Node(Criterion(id="a", text="x", weight=3.0), None, None).role_and_weight == "weight +3"
    precise = Criterion(id="a", text="x", weight=123456789.123)
    assert Node(precise, None, None).role_and_weight == "weight +123456789.123"


def test_an_annotated_role_is_used_if_the_criterion_has_none() -> None:
    own_role = Criterion(id="a", text="x", weight=1.0, role="additional")
    no_role = Criterion(id="b", text="y", weight=1.0)
    note = Annotation(domain="generic", candidates=0, roles={"a": "core", "b": "core"}, seen={})
    drawing = arrange_rubric("t", Rubric(criteria=(own_role, no_role), annotation=note))
    assert [node.role for node in drawing.nodes] == ["additional", "core"]


def test_the_title_mentions_a_failed_reward() -> None:
    failed = replace(scores("flat"), failed=True)
    assert (
        arrange_rubric("t", rubric_of(2, []), failed).title == "Rubric of task t, response r (flat; its reward failed)"
    )


def test_cycles_are_drawn_for_a_run_that_does_not_use_edges() -> None:
    pairs = [(0, 1), (1, 0), (2, 0), (1, 2)]
    found = Scores("r", "flat", 1.0, dict.fromkeys(("c0", "c1", "c2"), Score(1, 1)), {})
    drawing = arrange_rubric("t", rubric_of(3, pairs), found)
    assert [(link.parent, link.child) for link in drawing.links] == pairs


def test_cycles_are_refused_without_a_response() -> None:
    with pytest.raises(GraphCycleError, match="c0"):
        arrange_rubric("t", rubric_of(3, [(0, 1), (1, 2), (2, 0)]))
