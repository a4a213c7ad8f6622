"""Which criteria lost most, in which response, and over which edge."""

from typing import Any

import pytest

from jurygraph.studies.credit.study import Loss, losses
from tests.studies.credit.reference import Example, Link, sheet_of

ALL = [True] * 3


def lost(*examples: Example, kappa: float = 1.0) -> tuple[Loss, ...]:
    return losses([sheet_of("t", examples)], kappa)


def example(*p: float, judged: Any = ALL, weights: Any = (1.0, 1.0, 2.0), links: Any = None) -> Example:
    return Example(weights, links or [Link(0, 2, "weak"), Link(1, 2, "strong")], p, judged)


def test_a_loss_is_the_share_of_the_reward_that_went() -> None:
    (found,) = lost(example(0.0, 1.0, 0.8), example(1.0, 1.0, 0.8))
    assert (found.task, found.criterion, found.weight, found.responses) == ("t", "c2", 2.0, 2)
    assert found.most == pytest.approx(0.5 * (0.8 - 0.8 * 0.6))
    assert found.mean_loss == pytest.approx(found.most / 2)
    assert found.max_loss_response == "t/0"


def test_the_parent_is_the_one_that_takes_most_over_all_responses() -> None:
    (found,) = lost(example(0.0, 1.0, 0.8), example(1.0, 0.0, 0.8))
    assert (found.parent, found.kind, found.retention) == ("c1", "strong", 0.2)
    (found,) = lost(example(0.0, 1.0, 0.8), example(0.0, 0.9, 0.8))
    assert (found.parent, found.kind, found.retention) == ("c0", "weak", 0.6)


def test_retention_is_the_one_at_kappa() -> None:
    (found,) = lost(example(0.0, 1.0, 0.8), kappa=2.0)
    assert found.retention == 0.36


def test_an_unjudged_parent_takes_from_a_gain_as_if_it_were_not_met_and_from_a_penalty_nothing() -> None:
    (found,) = lost(example(1.0, 1.0, 0.8, judged=(False, True, True)))
    assert (found.parent, found.mean_loss) == ("c0", pytest.approx(0.5 * 0.8 * 0.4))
    assert lost(example(0.0, 1.0, 0.8, judged=(False, True, True), weights=(1.0, 1.0, -2.0))) == ()


def test_a_criterion_that_nobody_judged_had_nothing_to_lose() -> None:
    (found,) = lost(example(0.0, 0.0, 1.0, judged=(True, True, False)), example(0.0, 1.0, 0.5))
    assert (found.responses, found.max_loss_response) == (1, "t/1")


def test_the_greatest_loss_comes_first_and_equal_ones_by_task_and_id() -> None:
    chain = [Link(0, 1, "weak"), Link(0, 2, "strong")]
    first = sheet_of("b", [example(0.0, 0.5, 0.5, weights=(1.0, 1.0, 1.0), links=chain)])
    second = sheet_of("a", [example(0.0, 0.5, 0.5, weights=(1.0, 1.0, 1.0), links=chain)])
    found = losses([first, second], 1.0)
    assert [(one.task, one.criterion) for one in found] == [("a", "c2"), ("b", "c2"), ("a", "c1"), ("b", "c1")]


def test_at_kappa_zero_nothing_is_lost() -> None:
    assert lost(example(0.0, 0.0, 0.8), kappa=0.0) == ()
