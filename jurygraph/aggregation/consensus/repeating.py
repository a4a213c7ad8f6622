"""The same function on many resamples or simulations, in one process or several."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from jurygraph.errors import PlanError

Argument = TypeVar("Argument")
Result = TypeVar("Result")
Report = Callable[[int], None]


def run_each(
    work: Callable[[Argument], Result], arguments: Sequence[Argument], jobs: int = 1, report: Report | None = None
) -> list[Result]:
    """Return the results of `work` in the order of `arguments`.

    `report` is called with 1 after each result. Raises PlanError if `jobs` is less than 1.
    """
    if jobs < 1:
        raise PlanError(f"jobs is {jobs}: at least 1 is needed")
    results = []
    for result in map(work, arguments) if min(jobs, len(arguments)) < 2 else _run_in_processes(work, arguments, jobs):
        results.append(result)
        if report is not None:
            report(1)
    return results


def _run_in_processes(work: Callable[[Argument], Result], given: Sequence[Argument], jobs: int) -> Iterator[Result]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with (
        _current_folder_not_importable(),
        ProcessPoolExecutor(min(jobs, len(given)), mp_context=get_context("spawn")) as workers,
    ):
        yield from workers.map(work, given, chunksize=max(1, len(given) // (16 * jobs)))


@contextmanager
def _current_folder_not_importable() -> Iterator[None]:
    """Start processes that import nothing from the current folder: each would run a `pickle.py` found there."""
    previous = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if previous is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = previous


_SAFE_PATH = "PYTHONSAFEPATH"
