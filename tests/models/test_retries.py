"""Retries: how often, after which wait, until when, and the fault that is raised in the end."""

import asyncio
import math
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.models.limits import (
    MAX_RETRY_AFTER_SECONDS,
    RetryPolicy,
    call_with_retries,
    retry_after,
)
from jurygraph.models.request import RESPONSE_CAUSED_FAULT_KINDS, RETRYABLE_FAULT_KINDS, Fault
from tests.rows import all_rows
from tests.virtual_time import now, run

FINAL = RESPONSE_CAUSED_FAULT_KINDS | {
    "too-large",
    "rejected",
    "unauthorised",
    "unknown-model",
    "unrecorded",
    "deadline",
    "budget",
}
policies = st.builds(RetryPolicy, st.integers(1, 8), st.floats(0, 5), st.floats(5, 60))
retried = st.sampled_from(sorted(RETRYABLE_FAULT_KINDS))


class Provider:
    """Return `done` after its faults; `sent` are the times of the requests."""

    def __init__(self, *faults: BaseException) -> None:
        self.faults = list(faults)
        self.sent: list[float] = []

    async def __call__(self) -> str:
        self.sent.append(now())
        if self.faults:
            raise self.faults.pop(0)
        return "done"

    @property
    def waits(self) -> list[float]:
        return [after - before for before, after in zip(self.sent, self.sent[1:], strict=False)]


async def fault_of(attempt: Awaitable[object]) -> Fault:
    with pytest.raises(Fault) as caught:
        await attempt
    return caught.value


class TestHowOften:
    @given(policies, retried)
    def test_a_lasting_fault_is_tried_as_often_as_the_policy_allows(
        self, policy: RetryPolicy, kind: str
    ) -> None:
        faults = [Fault(kind, f"planted {number}") for number in range(20)]
        provider = Provider(*faults)
        fault = run(fault_of(call_with_retries(provider, policy)))
        assert len(provider.sent) == policy.attempts
        assert fault is faults[policy.attempts - 1]

    @given(policies, st.sampled_from(sorted(FINAL)))
    def test_a_final_fault_is_not_retried(self, policy: RetryPolicy, kind: str) -> None:
        planted = Fault(kind, "planted", retry_after=1.0)
        provider = Provider(planted)
        fault = run(fault_of(call_with_retries(provider, policy)))
        assert fault is planted
        assert len(provider.sent) == 1

    def test_any_other_error_is_raised_at_once(self) -> None:
        provider = Provider(ValueError("a bug"))
        with pytest.raises(ValueError, match="a bug"):
            run(call_with_retries(provider, RetryPolicy()))
        assert len(provider.sent) == 1


class TestWaits:
    @given(policies, st.integers())
    def test_the_range_of_the_wait_doubles_up_to_the_longest(
        self, policy: RetryPolicy, seed: int
    ) -> None:
        random.seed(seed)
        provider = Provider(*(Fault("server", "500") for _ in range(20)))
        run(fault_of(call_with_retries(provider, policy)))
        for number, wait in enumerate(provider.waits):
            assert -1e-6 <= wait <= min(policy.first * 2**number, policy.longest) + 1e-6

    @given(policies, st.floats(0, 500), st.integers(1, 6))
    def test_retries_follow_retry_after_with_bounded_jitter(
        self, policy: RetryPolicy, retry_after: float, times: int
    ) -> None:
        waits = self.waits(policy, *(Fault("rate-limit", "429", retry_after) for _ in range(times)))
        for number, wait in enumerate(waits):
            assert (
                retry_after - 1e-6
                <= wait
                <= retry_after + min(policy.first * 2**number, policy.longest) + 1e-6
            )

    def test_a_burst_with_the_same_retry_after_is_spread_out(self) -> None:
        waits = [self.waits(RetryPolicy(), Fault("rate-limit", "429", 3.0)) for _ in range(20)]
        assert len({round(wait, 6) for (wait,) in waits}) == 20

    @pytest.mark.parametrize("before", [0, 1])
    @pytest.mark.parametrize("kind", ["rate-limit", "server"])
    def test_a_longer_retry_after_fails_at_once_and_names_the_wait(
        self, before: int, kind: str
    ) -> None:
        async def ended(provider: Provider) -> tuple[Fault, float]:
            return await fault_of(call_with_retries(provider, RetryPolicy(first=0.0))), now()

        provider = Provider(
            *[Fault("server", "500")] * before, Fault(kind, "try tomorrow", 999_999.0)
        )
        fault, at = run(ended(provider))
        assert (fault.kind, len(provider.sent), at) == (kind, before + 1, 0.0)
        said = (
            "the provider asks for a wait of 999999 s, more than the limit of 600 s: try tomorrow"
        )
        assert str(fault) == said

    def test_the_longest_wait_that_a_provider_may_ask_for_is_waited(self) -> None:
        longest = Fault("rate-limit", "429", MAX_RETRY_AFTER_SECONDS)
        assert self.waits(RetryPolicy(first=0.0), longest) == [MAX_RETRY_AFTER_SECONDS]
        last = run(fault_of(call_with_retries(Provider(longest), RetryPolicy(attempts=1))))
        assert str(last) == "429", "it failed because no attempt was left"

    @staticmethod
    def waits(policy: RetryPolicy, *faults: Fault) -> list[float]:
        async def ended(provider: Provider) -> None:
            await asyncio.gather(call_with_retries(provider, policy), return_exceptions=True)

        provider = Provider(*faults)
        run(ended(provider))
        return provider.waits


class TestDeadline:
    @pytest.mark.parametrize("until", [9.9, 10.0, -5.0])
    def test_a_wait_beyond_the_deadline_is_not_begun(self, until: float) -> None:
        async def ended(request: Callable[[], Awaitable[str]]) -> tuple[Fault, float]:
            return await fault_of(call_with_retries(request, RetryPolicy(first=0.0), until)), now()

        planted = Fault("rate-limit", "slow down, please", retry_after=10.0)
        provider = Provider(planted)
        fault, at = run(ended(provider))
        assert (fault.kind, fault.kind in RETRYABLE_FAULT_KINDS, len(provider.sent), at) == (
            "deadline",
            False,
            1,
            0.0,
        )
        assert "rate-limit: slow down, please" in str(fault)
        assert fault.__cause__ is planted


class TestCancellation:
    def test_cancellation_while_waiting_ends_the_retries(self) -> None:
        async def cancelled(provider: Provider) -> float:
            asking = asyncio.create_task(call_with_retries(provider, RetryPolicy()))
            await asyncio.sleep(1.0)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            return now()

        provider = Provider(Fault("server", "503", retry_after=100.0))
        assert run(cancelled(provider)) == 1.0
        assert len(provider.sent) == 1


# The waits that a provider's headers ask for

NOW = datetime(2026, 11, 20, 17, 0, tzinfo=UTC)


@all_rows(
    ("headers", "seconds"),
    [
        # numbers
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": " 0 "}, 0.0),
        ({"Retry-After": "1.5"}, 1.5),
        ({"Retry-After": "2."}, 2.0),
        ({"Retry-After": ".5"}, 0.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "12.5"}, 0.0125),
        ({"Retry-After": "9" * 400}, math.inf),
        # the three formats of dates in HTTP, and dates that have passed
        ({"Retry-After": "Fri, 20 Nov 2026 17:00:30 GMT"}, 30.0),
        ({"Retry-After": "Friday, 20-Nov-26 17:00:30 GMT"}, 30.0),
        ({"Retry-After": "Fri Nov 20 17:00:30 2026"}, 30.0),
        ({"Retry-After": "Sat, 20 Nov 2027 17:00:00 GMT"}, 365 * 86_400.0),
        ({"Retry-After": "Fri, 20 Nov 2026 16:59:59 GMT"}, 0.0),
        ({"Retry-After": "Sunday, 06-Nov-94 08:49:37 GMT"}, 0.0),
        # the more exact header comes first, and an unreadable one is passed over
        ({"x-ratelimit-reset-tokens": "6m0s", "Retry-After": "2", "retry-after-ms": "1500"}, 1.5),
        ({"x-ratelimit-reset-tokens": "6m0s"}, None),
        ({"retry-after-ms": "soon", "Retry-After": "2"}, 2.0),
        ({}, None),
        ({"Content-Type": "application/json"}, None),
    ],
)
def test_the_wait_is_read_in_every_notation(headers: dict[str, str], seconds: float | None) -> None:
    found = retry_after(headers, NOW)
    assert found == seconds or abs(found - seconds) < 1e-9
    tokyo = NOW.astimezone(timezone(timedelta(hours=9)))
    assert retry_after(headers, tokyo) == found


@all_rows(
    "value",
    [
        "",
        "soon",
        "-1",
        "1e3",
        "nan",
        "inf",
        "0x10",
        "1_000",
        "٣",
        "1,5",
        "5 s",
        "Fri, 99 Foo 2026 17:00 GMT",
    ],
)
def test_unreadable_or_negative_headers_are_ignored(value: str) -> None:
    assert retry_after({"Retry-After": value}, NOW) is None
    assert retry_after({"retry-after-ms": value}, NOW) is None
