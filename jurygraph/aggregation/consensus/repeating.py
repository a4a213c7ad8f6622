"""The same work on many resamples, in one process or several."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from numpy.typing import NDArray

from jurygraph.aggregation._inputs import FloatArray
from jurygraph.errors import PlanError

Report = Callable[[int], None]
Given = TypeVar("Given", bound=NDArray[Any])


def every(
    work: Callable[[Given], FloatArray], given: Sequence[Given], jobs: int, report: Report | None
) -> list[FloatArray]:
    """The results of independent work, in the order of what is given. `report` is called with 1 after each."""
    if jobs < 1:
        raise PlanError(f"jobs is {jobs}: at least 1 is needed")
    found = []
    for one in map(work, given) if min(jobs, len(given)) == 1 else _side_by_side(work, given, jobs):
        found.append(one)
        if report is not None:
            report(1)
    return found


def _side_by_side(work: Callable[[Given], FloatArray], given: Sequence[Given], jobs: int) -> Iterator[FloatArray]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(min(jobs, len(given)), mp_context=get_context("spawn")) as workers:
        yield from workers.map(work, given, chunksize=max(1, len(given) // (8 * jobs)))
