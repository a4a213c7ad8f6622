"""The same work on many resamples or simulations, in one process or several."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from jurygraph.errors import PlanError

Given = TypeVar("Given")
Found = TypeVar("Found")
Report = Callable[[int], None]


def every(
    work: Callable[[Given], Found], given: Sequence[Given], jobs: int = 1, report: Report | None = None
) -> list[Found]:
    """What `work` finds, in the order of what is given. `report` is called with 1 after each; PlanError if no jobs."""
    if jobs < 1:
        raise PlanError(f"jobs is {jobs}: at least 1 is needed")
    found = []
    for one in map(work, given) if min(jobs, len(given)) < 2 else _side_by_side(work, given, jobs):
        found.append(one)
        if report is not None:
            report(1)
    return found


def _side_by_side(work: Callable[[Given], Found], given: Sequence[Given], jobs: int) -> Iterator[Found]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with (
        _current_folder_not_importable(),
        ProcessPoolExecutor(min(jobs, len(given)), mp_context=get_context("spawn")) as workers,
    ):
        yield from workers.map(work, given, chunksize=max(1, len(given) // (16 * jobs)))


@contextmanager
def _current_folder_not_importable() -> Iterator[None]:
    """Start processes that import nothing from the current folder: a `pickle.py` there would be run by each."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


_SAFE_PATH = "PYTHONSAFEPATH"
