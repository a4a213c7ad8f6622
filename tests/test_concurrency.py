"""Many things under way at once, and what they give, in order."""

import asyncio
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing

import pytest

from jurygraph.concurrency import gather_in_order, is_interrupt, new_event_loop


class Work:
    """Tasks that take given numbers of turns of the loop, with a count of those that run."""

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

    async def collect(
        self, at_once: int, count_started: int = 8, most: int | None = None
    ) -> list[int]:
        found: list[int] = []
        async with aclosing(gather_in_order(self.tasks(), at_once, count_started)) as collect:
            async for one in collect:
                found.append(one)
                if len(found) == most:
                    break
        return found


@pytest.mark.parametrize("at_once", [1, 2, 5, 50])
def test_results_come_in_order_with_bounded_concurrency(at_once: int) -> None:
    work = Work(*(7 * n % 11 for n in range(30)))
    assert asyncio.run(work.collect(at_once)) == list(range(30))
    assert work.most <= at_once
    assert work.most == 1 or at_once > 1


def test_a_slow_task_makes_a_bounded_number_of_results_wait() -> None:
    work = Work(1000, *[0] * 100)

    async def count_started() -> int:
        collect = gather_in_order(work.tasks(), 2, 3)
        await anext(collect)
        begun = work.begun
        await collect.aclose()
        return begun

    assert asyncio.run(count_started()) == 2 * (1 + 3)


def test_an_error_is_raised_in_order_and_cancels_the_rest() -> None:
    work = Work(0, 0, -3, 0, 1000, 1000)
    with pytest.raises(ValueError, match="2 came to nothing"):
        asyncio.run(work.collect(6))
    assert (work.cancelled, work.under_way) == (2, 0)


def test_running_work_is_cancelled_once_its_results_are_unneeded() -> None:
    work = Work(0, 1000, 1000)
    assert asyncio.run(work.collect(3, most=1)) == [0]
    assert (work.cancelled, work.under_way) == (2, 0)


def test_only_pythons_own_handler_raises_an_interrupt_and_in_the_main_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("signal.getsignal", lambda _: signal.default_int_handler)
    assert is_interrupt(KeyboardInterrupt())
    assert not is_interrupt(SystemExit())
    with ThreadPoolExecutor() as pool:
        assert not pool.submit(is_interrupt, KeyboardInterrupt()).result()
    monkeypatch.setattr("signal.getsignal", lambda _: lambda *_: None)
    assert not is_interrupt(KeyboardInterrupt())


def test_without_uvloop_the_loop_is_that_of_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    loop = new_event_loop()
    loop.close()
    assert type(loop).__module__.startswith("asyncio.")
