"""Scores the groups of a server: what arrives together goes to the judges together, and what is done goes out at once.

A group may be scored alone, but to start the machine costs more than a rule-based reward does. So the groups that come
within some milliseconds share a run of it. Each has its own outcome: none waits for the judge of another one.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from typing import NamedTuple

from jurygraph.graphs.groups import Group
from jurygraph.jury import Jury
from jurygraph.schema import Trace
from jurygraph.server.settings import build_unavailable_error

log = logging.getLogger(__name__)


class _WaitingGroup(NamedTuple):
    group: Group
    traces_future: "asyncio.Future[list[Trace]]"


class GroupScorer:
    """Collects groups for `window` seconds, and scores them in one run of the machine."""

    def __init__(self, jury: Jury, window: float) -> None:
        self._jury = jury
        self._window = window
        self._collected: list[_WaitingGroup] = []
        self._batches: set[asyncio.Task[None]] = set()
        self.groups_in_work = 0

    async def score(self, group: Group) -> list[Trace]:
        """Return the traces of a group. Raises its error; the work goes on if the caller stops waiting."""
        loop = asyncio.get_running_loop()
        traces_future = loop.create_future()
        self._collected.append(_WaitingGroup(group, traces_future))
        self.groups_in_work += 1
        traces_future.add_done_callback(self._count_finished_group)
        if len(self._collected) == 1:
            loop.call_later(self._window, self._start_scoring_batch)
        return await asyncio.shield(traces_future)

    def _count_finished_group(self, traces_future: "asyncio.Future[list[Trace]]") -> None:
        self.groups_in_work -= 1
        if not traces_future.cancelled():
            traces_future.exception()  # nobody may wait for it any more

    def _start_scoring_batch(self) -> None:
        batch = self._collected
        self._collected = []
        task = asyncio.get_running_loop().create_task(self._score_batch(batch))
        self._batches.add(task)
        task.add_done_callback(self._batches.discard)

    async def _score_batch(self, batch: Sequence[_WaitingGroup]) -> None:
        unscored_error: Exception = build_unavailable_error(
            "the server ended before this was scored"
        )
        try:
            scoring = self._jury.ascore_as_finished(
                [waiting_group.group for waiting_group in batch]
            )
            async with aclosing(scoring) as results:
                async for finished in results:
                    for number, _, outcome in finished:
                        if isinstance(outcome, list):
                            batch[number].traces_future.set_result(outcome)
                        else:
                            batch[number].traces_future.set_exception(outcome)
        except Exception as error:  # noqa: BLE001 - raised to all who wait for a group of the batch
            unscored_error = error
        finally:
            for waiting_group in batch:
                if not waiting_group.traces_future.done():
                    waiting_group.traces_future.set_exception(unscored_error)

    async def close(self) -> None:
        """Cancel what is in work."""
        for task in self._batches:
            task.cancel()
        await asyncio.gather(*self._batches, return_exceptions=True)
