"""Many things under way at once, and what they give in the order in which they were begun."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from typing import TypeVar

T = TypeVar("T")


async def in_order(begun: "Iterable[asyncio.Task[T]]", at_once: int, ahead: int) -> AsyncGenerator[T, None]:
    """What tasks of the loop give, in order; `begun` begins one whenever it is asked for the next.

    One that is finished makes room for another, though what it gave waits until those before it are given: `ahead` may
    wait for each that is under way at once, and `begun` is read no further. An error is raised where its result would
    be given; those that are then under way are cancelled, as they are once this is closed.
    """
    waiting: deque[asyncio.Task[T]] = deque()
    room = asyncio.Semaphore(at_once - 1)
    try:
        for one in begun:
            waiting.append(one)
            one.add_done_callback(lambda _: room.release())
            await room.acquire()  # for the next one, before it is begun
            while waiting and (waiting[0].done() or len(waiting) >= at_once * (1 + ahead)):
                yield await waiting.popleft()
        while waiting:
            yield await waiting.popleft()
    finally:
        for left in waiting:
            left.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
