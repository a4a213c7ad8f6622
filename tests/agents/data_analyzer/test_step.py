"""What a step refuses, and how it knows its groups."""

from typing import Any

import numpy as np
import pytest

from jurygraph.agents.data_analyzer import Step
from jurygraph.errors import InputError


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rewards": []}, "rewards have no row"),
        ({"rewards": 1.0}, "rewards have no row"),
        ({"rewards": ["a"]}, "rewards are not all numbers"),
        ({"rewards": [1.0, np.inf]}, "rewards has an infinite value"),
        ({"rewards": [1.0, 2.0], "components": {"format": [1.0]}}, "component 'format' has shape"),
        ({"rewards": [1.0, 2.0], "lengths": [1.0, -2.0]}, "lengths has a value outside"),
        ({"rewards": [1.0, 2.0], "repetition": [1.0, 1.1]}, "repetition has a value outside"),
        ({"rewards": [1.0, 2.0], "groups": ["a"]}, "give one id for each of 2 rows"),
    ],
)
def test_what_cannot_be_a_step_is_refused_by_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Step(**given)


def test_rows_are_found_by_their_groups_in_whatever_order_they_come() -> None:
    step = Step([1.0, 2.0, 3.0, 4.0, 5.0], groups=["b", "a", "b", "c", "a"])
    assert step.groups is not None
    order, starts, sizes = step.groups
    assert order.tolist() == [1, 4, 0, 2, 3]
    assert starts.tolist() == [0, 2, 4]
    assert sizes.tolist() == [2, 2, 1]


def test_without_ids_there_are_no_groups() -> None:
    assert Step([1.0]).groups is None
