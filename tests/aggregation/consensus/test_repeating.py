"""Independent runs over processes."""

import math

import pytest

from jurygraph.aggregation.consensus.resampling import run_each
from jurygraph.errors import PlanError


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_have_the_order_of_the_arguments_and_each_is_reported(jobs: int) -> None:
    reports: list[int] = []
    assert run_each(math.factorial, [3, 0, 5, 1], jobs, reports.append) == [6, 1, 120, 1]
    assert reports == [1, 1, 1, 1]


def test_less_than_one_job_is_refused() -> None:
    with pytest.raises(PlanError, match=r"^jobs is 0: at least 1 is needed"):
        run_each(math.factorial, [1], 0)
