"""Exact inference against one pass (GEAR, Table 6 and B.2), and which kinds of edges count."""

from dataclasses import replace

import numpy as np
import pytest

from jurygraph.aggregation import gear
from jurygraph.studies.credit import compare_inferences, report
from tests.aggregation.reference import eq_9, eq_12
from tests.studies.credit.reference import Example, Link, sheet_of, sheets_of
from tests.studies.figures import figures_of

DIAMOND = [(0, 1), (0, 2), (1, 3), (2, 3)]


def diamond(*p: float) -> Example:
    links = [Link(*ends, "strong") for ends in DIAMOND]
    return Example([1.0, 2.0, 1.0, -1.0], links, p, [True] * 4)


def test_one_pass_is_compared_with_the_enumeration_of_all_states() -> None:
    examples = [
        diamond(0.5, 0.9, 0.9, 0.9),
        diamond(0.9, 0.8, 0.1, 0.7),
        diamond(1.0, 1.0, 1.0, 1.0),
    ]
    exact = np.array([eq_9(example.p, DIAMOND, [0.2] * 4) for example in examples])
    one_pass = np.array([eq_12(example.p, DIAMOND, [0.2] * 4) for example in examples])
    weights = np.array(examples[0].weights)
    rewards = exact @ weights / 4.0, one_pass @ weights / 4.0
    found = compare_inferences([sheet_of("t", examples)], 1.0)
    assert (found["pairs"], found["criteria"], found["too_large"]) == (3, 4.0, 0)
    assert found["marginal_error"] == pytest.approx(np.abs(exact - one_pass).mean(), abs=1e-15)
    assert found["reward_error"] == pytest.approx(np.abs(np.subtract(*rewards)).mean(), abs=1e-15)
    assert found["correlation"] == pytest.approx(np.corrcoef(*rewards)[0, 1], abs=1e-12)


def test_a_graph_that_cannot_be_enumerated_is_left_out_and_counted() -> None:
    n = gear.MAX_ENUMERATED_CHILDREN + 2
    chain = [Link(child - 1, child, "weak") for child in range(1, n)]
    found = report(sheets_of([[Example([1.0] * n, chain, [0.5] * n, [True] * n)]]))
    inference = found.figures["inference"]
    assert (inference["pairs"], inference["too_large"], inference["reward_error"]) == (0, 1, None)
    assert any("exact against one pass: 1 responses" in note for note in found.notes)


def test_random_graphs_that_cannot_be_enumerated_are_inferred_in_one_pass() -> None:
    """Twenty criteria have a parent, and rewiring gives one to more of them."""
    links = [Link(parent, 3 + child, "weak") for child in range(20) for parent in range(3)]
    sheet = sheet_of("t", [Example([1.0] * 23, links, [0.5] * 23, [True] * 23)])
    sheets = sheets_of([])
    sheets.sheets.append(replace(sheet, exact="always"))
    assert report(sheets).figures["ablations"]["random"]["mean"]["reward"] > 0.0


def test_prerequisites_are_counted_without_activations_as_by_the_authors_script() -> None:
    links = [Link(0, 1, "weak"), Link(0, 2, "strong"), Link(0, 3, "activation")]
    example = Example([1.0, 1.0, 2.0, -3.0], links, [0.2, 0.6, 0.8, 1.0], [True] * 4)
    flat = figures_of(report(sheets_of([[example]]))).methods.flat
    assert flat.prerequisites.leakage.value == pytest.approx((0.6 / 4 + 2 * 0.8 / 4) / 2)
    assert flat.leakage.value == pytest.approx((0.6 / 4 + 2 * 0.8 / 4 + 3 * 1.0 / 4) / 3)
