"""Run many tasks with bounded concurrency and yield their results in the order in which they were started."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from typing import TypeVar

T = TypeVar("T")


async def gather_in_order(
    tasks: "Iterable[asyncio.Task[T]]", max_concurrent: int, max_waiting: int
) -> AsyncGenerator[T, None]:
    """Yield the results of tasks in order; the iterable `tasks` starts a task each time its next item is taken.

    At most `max_concurrent` tasks run at once. A finished task makes room for another, and its result waits until those
    before
    it are yielded: up to `max_concurrent` * `max_waiting` finished results may wait, and `tasks` is read no further
    than that. The error of a task is raised in the place of its result. Tasks that are still running then, or when the
    generator is closed, are cancelled.
    """
    waiting: deque[asyncio.Task[T]] = deque()
    room = asyncio.Semaphore(max_concurrent - 1)
    try:
        for task in tasks:
            waiting.append(task)
            task.add_done_callback(lambda _: room.release())
            await room.acquire()  # wait for a free place before the next task is started
            while waiting and (waiting[0].done() or len(waiting) >= max_concurrent * (1 + max_waiting)):
                yield await waiting.popleft()
        while waiting:
            yield await waiting.popleft()
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
