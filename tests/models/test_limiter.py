"""The limiter: when turns start, the effect of throttling, and that cancellation loses nothing."""

import asyncio
import heapq
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurygraph.models.limits import (
    BURST_SECONDS,
    MAX_RETRY_AFTER_SECONDS,
    THROTTLE_PAUSE_SECONDS,
    RequestLimiter,
)
from jurygraph.models.request import Fault
from tests.virtual_time import SkippingLoop, now, run

SECONDS = st.integers(0, 40).map(lambda tenths: tenths / 10)


async def start_time(limiter: RequestLimiter, tokens: int = 1, lasting: float = 0.0) -> float:
    """Return the time at which a turn was granted."""
    async with limiter.turn(tokens):
        began = now()
        await asyncio.sleep(lasting)
        return began


async def start_times(
    limiter: RequestLimiter, tokens: Sequence[int], lasting: float = 0.0
) -> list[float]:
    """Return the times at which concurrent turns were granted."""
    return await asyncio.gather(*(start_time(limiter, each, lasting) for each in tokens))


async def at_once(limiter: RequestLimiter, asking: int = 40) -> int:
    """Return the number of concurrent turns."""
    begun = await start_times(limiter, [1] * asking, lasting=1.0)
    return begun.count(min(begun))


async def throttle(
    limiter: RequestLimiter, requests: int = 1, retry_after: float | None = 0.0
) -> None:
    """Send a burst of requests, and refuse each."""
    sent = asyncio.Barrier(requests)

    async def one() -> None:
        async with limiter.turn(1) as turn:
            await sent.wait()
            limiter.report_fault(turn, Fault("rate-limit", "429", retry_after))

    await asyncio.gather(*(one() for _ in range(requests)))


async def serve_requests(limiter: RequestLimiter, requests: int) -> None:
    for _ in range(requests):
        async with limiter.turn(1) as turn:
            limiter.report_success(turn)


class TestTurns:
    @given(concurrency=st.integers(1, 5), lasting=st.lists(SECONDS, max_size=20))
    def test_turns_start_in_order_within_the_concurrency(
        self, concurrency: int, lasting: list[float]
    ) -> None:
        async def begun() -> list[float]:
            limiter = RequestLimiter(concurrency)
            return await asyncio.gather(*(start_time(limiter, lasting=each) for each in lasting))

        free, expected = [0.0] * concurrency, []
        for each in lasting:
            expected.append(heapq.heappop(free))
            heapq.heappush(free, expected[-1] + each)
        assert run(begun()) == pytest.approx(expected)

    @pytest.mark.parametrize(
        ("storing", "expected"), [(0.1, [0, 0, 1, 1.2]), (5.0, [0, 0, 1, 6.2])]
    )
    def test_a_reply_that_is_being_stored_leaves_its_turn_until_as_many_are_as_may_run(
        self, storing: float, expected: list[float]
    ) -> None:
        async def request(limiter: RequestLimiter, lasting: float) -> float:
            async with limiter.turn(1) as turn:
                began = now()
                await asyncio.sleep(lasting)
                limiter.release_turn(turn)
                await asyncio.sleep(storing)
                return began

        async def begun() -> list[float]:
            limiter = RequestLimiter(2)
            return await asyncio.gather(*(request(limiter, each) for each in (1, 1.2, 1, 1)))

        assert run(begun()) == expected


class TestBudgets:
    @given(
        st.integers(1, 5000),
        st.lists(st.tuples(st.integers(0, 400), SECONDS), min_size=1, max_size=15),
    )
    def test_a_turn_starts_exactly_when_the_tokens_allow_it(
        self, per_minute: int, asked: list[tuple[int, float]]
    ) -> None:
        async def one(limiter: RequestLimiter, tokens: int) -> float:
            async with limiter.turn(tokens):
                return now()

        async def begun() -> tuple[list[float], list[float]]:
            limiter, arrivals, turns = RequestLimiter(100, tokens_per_minute=per_minute), [], []
            for tokens, pause in asked:
                arrivals.append(now())
                turns.append(asyncio.create_task(one(limiter, tokens)))
                await asyncio.sleep(pause)
            return arrivals, await asyncio.gather(*turns)

        arrivals, begun_at = run(begun())
        costs = [tokens * 60 / per_minute for tokens, _ in asked]
        for j, at in enumerate(begun_at):
            # No stretch of turns, from any one to this one, may cost more than its time and the burst, or this alone.
            paid = [
                begun_at[i] + sum(costs[i:j]) - max(BURST_SECONDS - costs[j], 0) for i in range(j)
            ]
            assert at == pytest.approx(max([arrivals[j], *begun_at[:j], *paid]), abs=1e-6)

    def test_an_oversized_request_starts_and_later_ones_wait_for_its_debt(self) -> None:
        assert run(
            start_times(RequestLimiter(9, tokens_per_minute=600), [6000, 0, 20])
        ) == pytest.approx([0, 598, 600])

    @pytest.mark.parametrize(("used", "next_at"), [(0, 0.0), (50, 4.0), (100, 9.0), (150, 14.0)])
    def test_actual_tokens_replace_the_estimate(self, used: int, next_at: float) -> None:
        async def begun() -> float:
            limiter = RequestLimiter(9, tokens_per_minute=600)
            async with limiter.turn(100) as turn:
                waiting = asyncio.create_task(start_time(limiter, 10))
                await asyncio.sleep(0)
                limiter.charge_tokens(turn, 170)
                limiter.charge_tokens(turn, used)  # the last word counts
                return await waiting

        assert run(begun()) == pytest.approx(next_at)


class TestThrottling:
    @pytest.mark.parametrize(
        ("asked", "held"),
        [
            (MAX_RETRY_AFTER_SECONDS, MAX_RETRY_AFTER_SECONDS),
            (MAX_RETRY_AFTER_SECONDS + 1.0, THROTTLE_PAUSE_SECONDS),
            (999_999.0, THROTTLE_PAUSE_SECONDS),
        ],
    )
    def test_a_retry_after_beyond_the_longest_wait_holds_nothing(
        self, asked: float, held: float
    ) -> None:
        async def begun() -> float:
            limiter = RequestLimiter(8)
            await throttle(limiter, retry_after=asked)
            return await start_time(limiter)

        assert run(begun()) == held

    @pytest.mark.parametrize(("bursts", "left"), [(0, 8), (1, 4), (2, 2), (3, 1), (4, 1)])
    def test_each_burst_of_429s_halves_concurrency_once_down_to_one(
        self, bursts: int, left: int
    ) -> None:
        async def allowed() -> int:
            limiter = RequestLimiter(8)
            for burst in range(bursts):
                await throttle(limiter, requests=max(1, 8 // 2**burst))
            return await at_once(limiter)

        assert run(allowed()) == left

    def test_a_late_429_neither_halves_nor_holds_again(self) -> None:
        async def allowed() -> tuple[float, int]:
            limiter = RequestLimiter(8)
            async with limiter.turn(1) as late:
                await throttle(limiter)
                await asyncio.sleep(5.0)
                limiter.report_fault(late, Fault("rate-limit", "429"))
            return await start_time(limiter), await at_once(limiter)

        assert run(allowed()) == (5.0, 4)

    @pytest.mark.parametrize(
        ("waits", "logged"), [((10.0,), 0), ((11.0,), 1), ((60.0, 65.0), 1), ((60.0, 71.0), 2)]
    )
    def test_a_long_hold_is_logged_once_unless_the_next_one_ends_much_later(
        self, waits: Sequence[float], logged: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def hold() -> None:
            limiter = RequestLimiter(8)
            async with limiter.turn(1) as first, limiter.turn(1) as second:
                for turn, seconds in zip((first, second), waits, strict=False):
                    limiter.report_fault(turn, Fault("rate-limit", "429", seconds))

        run(hold())
        assert [record.getMessage() for record in caplog.records] == [
            f"pausing for {seconds:.0f} s: rate limited by the model server (429)"
            for seconds in waits[:logged]
        ]

    @pytest.mark.parametrize(
        ("served", "allowed"), [(3, 4), (4, 5), (8, 5), (9, 6), (22, 8), (200, 8)]
    )
    def test_each_round_of_successes_adds_one_turn_up_to_the_limit(
        self, served: int, allowed: int
    ) -> None:
        async def after() -> int:
            limiter = RequestLimiter(8)
            await throttle(limiter)
            await serve_requests(limiter, served)
            return await at_once(limiter)

        assert run(after()) == allowed


class TestCancellation:
    def test_a_cancelled_wait_is_not_charged_and_lets_the_next_start(self) -> None:
        async def begun() -> list[float]:
            limiter = RequestLimiter(9, tokens_per_minute=600)
            await start_time(limiter, 600)
            large = asyncio.create_task(start_time(limiter, 600))  # at 60 s
            small = [asyncio.create_task(start_time(limiter, 10)) for _ in range(2)]
            await asyncio.sleep(1.0)
            large.cancel()
            return await asyncio.gather(*small)

        assert run(begun()) == pytest.approx([59, 60])

    @pytest.mark.landing
    @settings(max_examples=25)
    @given(
        st.randoms(use_true_random=False), st.integers(1, 5), st.sampled_from([None, 600.0, 3000.0])
    )
    def test_cancellation_never_loses_a_slot(
        self, chance: random.Random, concurrency: int, per_minute: float | None
    ) -> None:
        async def stressed() -> int:
            limiter = RequestLimiter(concurrency, per_minute, per_minute and per_minute * 10)
            return await stress(limiter, concurrency, chance, turns=60, longest=0.5)

        assert run(stressed()) == concurrency


async def stress(
    limiter: RequestLimiter, concurrency: int, chance: random.Random, turns: int, longest: float
) -> int:
    """Run turns that fail, are refused or cancelled at any moment; return the concurrency afterwards."""
    running = 0

    async def one() -> None:
        nonlocal running
        async with limiter.turn(chance.randrange(30)) as turn:
            running += 1
            assert running <= concurrency
            try:
                await asyncio.sleep(chance.choice([0.0, chance.random() * longest]))
                limiter.charge_tokens(turn, chance.randrange(30))
                throttled = Fault("rate-limit", "429", 0.0)
                limiter.report_fault(
                    turn, throttled
                ) if chance.random() < 0.1 else limiter.report_success(turn)
                assert chance.random() < 0.9
            finally:
                running -= 1

    tasks = []
    for _ in range(turns):
        tasks.append(asyncio.create_task(one()))
        if chance.random() < 0.5:
            await asyncio.sleep(chance.choice([0.0, chance.random() * longest]))
        if chance.random() < 0.4:
            chance.choice(tasks).cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        assert result is None or isinstance(result, AssertionError | asyncio.CancelledError)
    assert running == 0
    await serve_requests(limiter, concurrency**2)  # back to full width
    return await holding(limiter)


async def holding(limiter: RequestLimiter) -> int:
    """Return the number of turns that can be held at the same time."""
    held = 0

    async def hold() -> None:
        nonlocal held
        async with limiter.turn(0):
            held += 1
            await asyncio.sleep(3600.0)

    tasks = [asyncio.create_task(hold()) for _ in range(10)]
    await asyncio.sleep(60.0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return held


class TestLoops:
    def test_turns_of_an_abandoned_loop_block_nothing(self) -> None:
        limiter = RequestLimiter(1)
        loop = SkippingLoop()
        loop.set_exception_handler(lambda _, context: None)  # it tells of the tasks that never end
        left = [loop.create_task(start_time(limiter, lasting=60.0)) for _ in range(3)]
        loop.run_until_complete(asyncio.sleep(1.0))
        loop.close()
        assert run(start_times(limiter, [1] * 5)) == [0.0] * 5
        assert not any(task.done() for task in left)
