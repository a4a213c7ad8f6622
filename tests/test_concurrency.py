"""Many things under way at once, and what they give in order."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing

import pytest

from jurygraph.concurrency import gather_in_order


class Work:
    """Numbers that take as many turns of the loop as they are told, and count who is under way."""

    def __init__(self, *turns: int) -> None:
        self.turns = turns
        self.begun = self.under_way = self.most = self.cancelled = 0

    def tasks(self) -> Iterator["asyncio.Task[int]"]:
        for number, turns in enumerate(self.turns):
            self.begun += 1
            yield asyncio.create_task(self.one(number, turns))

    async def one(self, number: int, turns: int) -> int:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            for _ in range(abs(turns)):
                await asyncio.sleep(0)
            if turns < 0:
                raise ValueError(f"{number} came to nothing")
            return number
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.under_way -= 1

    async def given(self, at_once: int, ahead: int = 8, most: int | None = None) -> list[int]:
        found: list[int] = []
        async with aclosing(gather_in_order(self.tasks(), at_once, ahead)) as given:
            async for one in given:
                found.append(one)
                if len(found) == most:
                    break
        return found


@pytest.mark.parametrize("at_once", [1, 2, 5, 50])
def test_they_come_in_order_however_long_each_takes_and_no_more_are_under_way(at_once: int) -> None:
    work = Work(*(7 * n % 11 for n in range(30)))
    assert asyncio.run(work.given(at_once)) == list(range(30))
    assert work.most <= at_once
    assert work.most == 1 or at_once > 1


def test_one_that_is_slow_holds_up_only_so_many_that_are_finished() -> None:
    work = Work(1000, *[0] * 100)

    async def ahead() -> int:
        given = gather_in_order(work.tasks(), 2, 3)
        await anext(given)
        begun = work.begun
        await given.aclose()
        return begun

    assert asyncio.run(ahead()) == 2 * (1 + 3)


def test_an_error_is_raised_in_its_turn_and_ends_the_others() -> None:
    work = Work(0, 0, -3, 0, 1000, 1000)
    with pytest.raises(ValueError, match="2 came to nothing"):
        asyncio.run(work.given(6))
    assert (work.cancelled, work.under_way) == (2, 0)


def test_running_work_is_cancelled_once_its_results_are_unneeded() -> None:
    work = Work(0, 1000, 1000)
    assert asyncio.run(work.given(3, most=1)) == [0]
    assert (work.cancelled, work.under_way) == (2, 0)
