"""The schedule of many groups in one run of the score graph: when the next batch starts, and what has finished."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, takewhile
from typing import NamedTuple

from jurygraph.graphs.active_groups import ActiveGroups
from jurygraph.graphs.groups import Group, GroupOutcome, split_into_batches
from jurygraph.graphs.score_graph import run_score_graph
from jurygraph.graphs.time_limits import start_in_new_context

MAX_FINISHED_PER_ACTIVE_GROUP = 2
"""Number of finished results that may wait for an earlier one, for each that is in work: they take memory."""

AdmitGroupsCallback = Callable[
    [Sequence[Group], ActiveGroups], "Awaitable[Sequence[asyncio.Future[GroupOutcome]]]"
]


class FinishedGroup(NamedTuple):
    """A group that is out of the score graph, with its number among those that went in."""

    number: int
    group: Group
    outcome: GroupOutcome


@dataclass(kw_only=True)
class GroupScheduler:
    """Lets many groups into one run of the score graph: a batch of them starts while there is room.

    `admit_groups` lets a batch into the active groups, and returns the future outcome of each. A batch has `batch_size`
    responses. At most `target_response_count` are active at once, or as many as `target_group_count` have, but
    `max_responses` at most. `may_plan_by_model` is true where a model may plan a group. With `in_order`, groups that
    finish before others wait for these.
    """

    groups: Iterable[Group]
    admit_groups: AdmitGroupsCallback
    batch_size: int
    max_responses: int
    target_response_count: int
    target_group_count: int
    may_plan_by_model: bool
    langsmith: bool
    in_order: bool = False

    def __post_init__(self) -> None:
        self._batches = split_into_batches(
            enumerate(self.groups), self._batch_response_count, self.batch_size
        )
        self._active_groups = ActiveGroups()
        self._tasks: set[asyncio.Task[None]] = set()
        self._news_event = asyncio.Event()
        self._finished: dict[int, FinishedGroup] = {}
        self._next_number = 0
        self._active_number = 0
        self._active_responses = 0
        self._responses_waiting = 0

    def _batch_response_count(self, numbered: tuple[int, Group]) -> int:
        """Return a group's number of responses; a whole batch if a model plans it, for which others would wait."""
        _, group = numbered
        is_planned_by_model = group.plan is None and self.may_plan_by_model
        return self.batch_size if is_planned_by_model else _count_responses(group)

    async def run(self) -> AsyncGenerator[list[FinishedGroup], None]:
        """Yield the groups that finished since the last time, in the order of their numbers.

        Raises errors that are not those of a group. What is in work then, or when this is closed, is cancelled.
        """
        self._start_task(partial(run_score_graph, self._active_groups))
        try:
            while await self._admit_batches():
                await self._news_event.wait()
                self._news_event.clear()
                if finished := self._take_finished_groups():
                    yield finished
                for task in [task for task in self._tasks if task.done()]:
                    self._tasks.remove(task)
                    task.result()
            self._active_groups.close()
            await asyncio.gather(*self._tasks)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _take_finished_groups(self) -> list[FinishedGroup]:
        """Return the finished groups that wait for no other one."""
        numbers: Iterable[int] = sorted(self._finished)
        if self.in_order:
            numbers = takewhile(self._finished.__contains__, count(self._next_number))
        finished_groups = [self._finished.pop(number) for number in numbers]
        self._next_number += len(finished_groups)
        self._responses_waiting -= sum(_count_responses(item.group) for item in finished_groups)
        return finished_groups

    async def _admit_batches(self) -> bool:
        """Let batches of groups in while there is room; return whether any are in work, or finished."""
        while self._has_room_for_batch() and (batch := next(self._batches, None)) is not None:
            self._active_number += len(batch)
            self._active_responses += sum(_count_responses(group) for _, group in batch)
            self._start_task(partial(self._admit_batch, batch))
            await asyncio.sleep(0)  # the task begins before the next batch is read
        return self._active_responses > 0 or bool(self._finished)

    def _has_room_for_batch(self) -> bool:
        response_count_with_next = self._active_responses + self.batch_size
        response_count_with_waiting = response_count_with_next + self._responses_waiting
        is_within_max_responses = response_count_with_next <= self.max_responses
        is_below_target = (
            response_count_with_next <= self.target_response_count
            or self._active_number < self.target_group_count
        )
        can_hold_waiting = response_count_with_waiting <= self.max_responses * (
            1 + MAX_FINISHED_PER_ACTIVE_GROUP
        )
        return self._active_responses == 0 or (
            is_within_max_responses and is_below_target and can_hold_waiting
        )

    async def _admit_batch(self, batch: Sequence[tuple[int, Group]]) -> None:
        groups = [group for _, group in batch]
        outcome_futures = await self.admit_groups(groups, self._active_groups)
        for (number, group), outcome_future in zip(batch, outcome_futures, strict=True):
            outcome_future.add_done_callback(partial(self._finish_group, number, group))

    def _finish_group(
        self, number: int, group: Group, outcome_future: "asyncio.Future[GroupOutcome]"
    ) -> None:
        self._active_number -= 1
        self._active_responses -= _count_responses(group)
        if not outcome_future.cancelled():
            self._responses_waiting += _count_responses(group)  # until it is yielded
            self._finished[number] = FinishedGroup(number, group, outcome_future.result())
        self._news_event.set()

    def _start_task(self, work: Callable[[], Awaitable[None]]) -> None:
        task = start_in_new_context(work, self.langsmith)
        task.add_done_callback(lambda _: self._news_event.set())
        self._tasks.add(task)


def _count_responses(group: Group) -> int:
    return max(1, len(group.responses))  # one without any is in work until it is refused
