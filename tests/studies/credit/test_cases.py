"""Leakage and preservation, as in GEAR, section 4.3."""

from typing import Any

import numpy as np
import pytest

from jurygraph.errors import GraphError
from jurygraph.studies import credit
from jurygraph.studies.credit import EdgeCases


def make_cases(**changed: Any) -> EdgeCases:
    """Four edges of two examples: violated, satisfied, and two whose child is not supported."""
    columns: dict[str, Any] = {
        "p_parent": [0.25, 0.5, 0.0, 1.0],
        "p_child": [0.5, 0.8, 0.25, 0.0],
        "share": [0.4, 0.2, 1.0, 1.0],
        "kind": ["weak", "activation", "weak", "strong"],
        "task": [0, 0, 1, 1],
    } | changed
    return EdgeCases(**columns)


def test_leakage_is_the_remaining_share_of_a_child_with_an_unsupported_parent() -> None:
    assert credit.leakage(make_cases(), [0.5, 0.8, 0.25, 0.0]) == pytest.approx(0.4 * 0.5)
    assert credit.leakage(make_cases(), [0.1, 0.8, 0.25, 0.0]) == pytest.approx(0.4 * 0.1)


def test_preservation_is_the_remaining_part_of_a_child_with_a_supported_parent() -> None:
    assert credit.preservation(make_cases(), [0.5, 0.8, 0.25, 0.0]) == 1.0
    assert credit.preservation(make_cases(), [0.5, 0.6, 0.25, 0.0]) == pytest.approx(0.75)


def test_without_a_case_the_result_is_none() -> None:
    assert credit.leakage(make_cases(), [0.5, 0.8, 0.25, 0.0], kinds=["strong"]) is None
    assert credit.preservation(make_cases(), [0.5, 0.8, 0.25, 0.0], kinds=["weak"]) is None


def test_a_score_at_the_threshold_is_supported() -> None:
    assert make_cases().mask("leakage").tolist() == [True, False, False, False]
    assert make_cases().mask("preservation").tolist() == [False, True, False, False]
    assert make_cases().mask("leakage", threshold=0.25).tolist() == [False, False, True, False]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"p_parent": [0.5, 0.5, np.nan, 0.5]}, r"p_parent\[2\] is nan"),
        ({"p_child": [0.5, 1.5, 0.5, 0.5]}, r"p_child\[1\] is 1.5"),
        ({"share": [-0.1, 0.5, 0.5, 0.5]}, r"share\[0\] is -0.1"),
        ({"share": [np.inf, 0.5, 0.5, 0.5]}, r"share\[0\] is inf"),
        ({"kind": ["weak", "weak", "weak", "causal"]}, "'causal' is not a kind of edge"),
        ({"task": [0, 0, 1, -1]}, r"task\[3\] is -1"),
        ({"share": [0.5]}, r"share has shape \(1,\) where \(4,\) is needed"),
    ],
)
def test_invalid_cases_are_refused_by_name(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        make_cases(**changed)


@pytest.mark.parametrize("scores", [[0.5, np.nan, 0.5, 0.5], [0.5, 2.0, 0.5, 0.5], [0.5]])
def test_invalid_scores_are_refused(scores: list[float]) -> None:
    for figure in (credit.leakage, credit.preservation):
        with pytest.raises(GraphError, match="scores"):
            figure(make_cases(), scores)
