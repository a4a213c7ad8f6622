"""Criteria that lost most, the response, and the edge that caused the loss."""

from typing import Any

import pytest

from jurygraph.studies.credit import losses
from tests.studies.credit.reference import Example, Link, sheet_of
from tests.studies.figures import Figures, read_figures

ALL = [True] * 3


def losses_of(*examples: Example, kappa: float = 1.0) -> list[Figures]:
    return read_figures(losses([sheet_of("t", examples)], kappa))


def example(
    *p: float, judged: Any = ALL, weights: Any = (1.0, 1.0, 2.0), links: Any = None
) -> Example:
    return Example(weights, links or [Link(0, 2, "weak"), Link(1, 2, "strong")], p, judged)


def test_a_loss_is_the_lost_share_of_the_reward() -> None:
    (found,) = losses_of(example(0.0, 1.0, 0.8), example(1.0, 1.0, 0.8))
    assert (found.task, found.criterion, found.responses) == ("t", "c2", 2)
    assert found.mean_loss == pytest.approx(0.5 * (0.8 - 0.8 * 0.6) / 2)


def test_the_parent_is_the_one_with_the_largest_mean_reduction() -> None:
    (found,) = losses_of(example(0.0, 1.0, 0.8), example(1.0, 0.0, 0.8))
    assert (found.parent, found.kind, found.retention) == ("c1", "strong", 0.2)
    (found,) = losses_of(example(0.0, 1.0, 0.8), example(0.0, 0.9, 0.8))
    assert (found.parent, found.kind, found.retention) == ("c0", "weak", 0.6)


def test_an_unjudged_parent_reduces_gains_but_not_penalties() -> None:
    (found,) = losses_of(example(1.0, 1.0, 0.8, judged=(False, True, True)))
    assert (found.parent, found.mean_loss) == ("c0", pytest.approx(0.5 * 0.8 * 0.4))
    assert (
        losses_of(example(0.0, 1.0, 0.8, judged=(False, True, True), weights=(1.0, 1.0, -2.0)))
        == []
    )


def test_an_unjudged_criterion_has_no_loss() -> None:
    (found,) = losses_of(example(0.0, 0.0, 1.0, judged=(True, True, False)), example(0.0, 1.0, 0.5))
    assert found.responses == 1


def test_losses_are_sorted_by_size_then_task_and_id() -> None:
    chain = [Link(0, 1, "weak"), Link(0, 2, "strong")]
    first = sheet_of("b", [example(0.0, 0.5, 0.5, weights=(1.0, 1.0, 1.0), links=chain)])
    second = sheet_of("a", [example(0.0, 0.5, 0.5, weights=(1.0, 1.0, 1.0), links=chain)])
    found = read_figures(losses([first, second], 1.0))
    assert [(one.task, one.criterion) for one in found] == [
        ("a", "c2"),
        ("b", "c2"),
        ("a", "c1"),
        ("b", "c1"),
    ]
