"""Independent runs over processes."""

import math

import pytest

from jurygraph.aggregation.consensus.repeating import every
from jurygraph.errors import PlanError


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_stand_in_the_order_of_what_is_given_and_each_is_reported(jobs: int) -> None:
    told: list[int] = []
    assert every(math.factorial, [3, 0, 5, 1], jobs, told.append) == [6, 1, 120, 1]
    assert told == [1, 1, 1, 1]


def test_many_more_than_there_are_processes_come_in_their_order_too() -> None:
    assert every(math.factorial, list(range(70)), 2) == [math.factorial(number) for number in range(70)]


def test_no_jobs_are_refused() -> None:
    with pytest.raises(PlanError, match="jobs is 0: at least 1 is needed"):
        every(math.factorial, [1], 0)
