"""Independent runs over processes."""

import math
import os
from contextlib import nullcontext

import pytest

from jurygraph.aggregation.consensus.resampling import _current_folder_not_importable, run_each
from jurygraph.errors import PlanError


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_have_the_order_of_the_arguments_and_each_is_reported(jobs: int) -> None:
    reports: list[int] = []
    assert run_each(math.factorial, [3, 0, 5, 1], jobs, reports.append) == [6, 1, 120, 1]
    assert reports == [1, 1, 1, 1]


@pytest.mark.parametrize("before", [None, "0"])
@pytest.mark.parametrize("fails", [False, True])
def test_the_import_setting_of_processes_is_restored(
    before: str | None, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    if before is not None:
        monkeypatch.setenv("PYTHONSAFEPATH", before)
    with nullcontext() if not fails else pytest.raises(ZeroDivisionError), _current_folder_not_importable():
        assert os.environ["PYTHONSAFEPATH"] == "1"
        assert 1 // int(not fails) == 1
    assert os.environ.get("PYTHONSAFEPATH") == before


def test_less_than_one_job_is_refused() -> None:
    with pytest.raises(PlanError, match=r"^jobs is 0: at least 1 is needed"):
        run_each(math.factorial, [1], 0)
