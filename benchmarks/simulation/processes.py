"""Work in several processes."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

Argument = TypeVar("Argument")
Result = TypeVar("Result")
Report = Callable[[int], None]


def run_each(
    work: Callable[[Argument], Result],
    arguments: Sequence[Argument],
    jobs: int = 1,
    report: Report | None = None,
) -> list[Result]:
    """Return the results in order, and call `report` with 1 after each."""
    results = []
    is_alone = min(jobs, len(arguments)) < 2
    for result in map(work, arguments) if is_alone else _run_in_processes(work, arguments, jobs):
        results.append(result)
        if report is not None:
            report(1)
    return results


def _run_in_processes(
    work: Callable[[Argument], Result], given: Sequence[Argument], jobs: int
) -> Iterator[Result]:
    with ProcessPoolExecutor(min(jobs, len(given)), mp_context=get_context("spawn")) as workers:
        yield from workers.map(work, given, chunksize=max(1, len(given) // (16 * jobs)))
