"""Validation of a step, and its groups."""

from typing import Any

import numpy as np
import pytest

from jurygraph.agents.data_analyzer import TrainingStep
from jurygraph.errors import InputError
from tests.rows import all_rows


@all_rows(
    ("columns", "message"),
    [
        ({"rewards": []}, "rewards have no row"),
        ({"rewards": 1.0}, "rewards have no row"),
        ({"rewards": ["a"]}, "rewards are not all numbers"),
        ({"rewards": [1.0, np.inf]}, "rewards has a value beyond"),
        ({"rewards": [1.0, 2.0], "components": {"format": [1.0]}}, "component 'format' has shape"),
        ({"rewards": [1.0, 2.0], "lengths": [1.0, -2.0]}, "lengths has a value below 0"),
        ({"rewards": [1.0, -1e101]}, r"rewards has a value beyond ±1e\+100"),
        ({"rewards": [1.0], "lengths": [1e300]}, "lengths has a value beyond"),
        ({"rewards": [1.0], "components": {"format": [1e101]}}, "component 'format' has a value beyond"),
        ({"rewards": [1.0, 2.0], "groups": [None, "a"]}, "groups are not all strings or all numbers"),
        ({"rewards": [1.0, 2.0], "groups": ["a"]}, "give one id for each of 2 rows"),
    ],
)
def test_an_invalid_step_is_refused_by_name(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TrainingStep(**columns)


def test_rows_are_grouped_in_any_order() -> None:
    step = TrainingStep([1.0, 2.0, 3.0, 4.0, 5.0], groups=["b", "a", "b", "c", "a"])
    assert step.groups is not None
    order, starts, sizes = step.groups
    assert order.tolist() == [1, 4, 0, 2, 3]
    assert starts.tolist() == [0, 2, 4]
    assert sizes.tolist() == [2, 2, 1]
