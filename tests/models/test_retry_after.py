"""The waits that a provider's headers ask for."""

import math
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.models.retries import retry_after
from tests.rows import all_rows

NOW = datetime(2026, 11, 20, 17, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": " 0 "}, 0.0),
        ({"Retry-After": "1.5"}, 1.5),
        ({"Retry-After": "2."}, 2.0),
        ({"Retry-After": ".5"}, 0.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "12.5"}, 0.0125),
    ],
)
def test_a_number_is_in_seconds_or_where_the_name_says_so_in_milliseconds(
    headers: dict[str, str], seconds: float
) -> None:
    assert retry_after(headers, NOW) == seconds


@pytest.mark.parametrize(
    "date", ["Fri, 20 Nov 2026 17:00:30 GMT", "Friday, 20-Nov-26 17:00:30 GMT", "Fri Nov 20 17:00:30 2026"]
)
def test_a_date_may_be_in_each_of_the_three_formats_of_http(date: str) -> None:
    assert retry_after({"Retry-After": date}, NOW) == 30.0


def test_a_date_is_compared_with_a_clock_of_another_zone() -> None:
    tokyo = NOW.astimezone(timezone(timedelta(hours=9)))
    assert retry_after({"Retry-After": "Fri, 20 Nov 2026 17:00:30 GMT"}, tokyo) == 30.0


@pytest.mark.parametrize("date", ["Fri, 20 Nov 2026 16:59:59 GMT", "Sunday, 06-Nov-94 08:49:37 GMT"])
def test_a_past_date_means_no_wait(date: str) -> None:
    assert retry_after({"Retry-After": date}, NOW) == 0.0


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("20ms", 0.02),
        ("1h2m3s", 3723.0),
        ("7.66s", 7.66),
        ("2m59.56s", 179.56),
        ("1m20ms", 60.02),
    ],
)
def test_a_reset_is_in_the_notation_of_openai(duration: str, seconds: float) -> None:
    assert retry_after({"x-ratelimit-reset-requests": duration}, NOW) == pytest.approx(seconds)


def test_of_two_resets_the_later_counts() -> None:
    headers = {"x-ratelimit-reset-requests": "20ms", "x-ratelimit-reset-tokens": "6m0s"}
    assert retry_after(headers, NOW) == 360.0


EXHAUSTED = {
    "x-ratelimit-reset-requests": "21h36m0s",
    "x-ratelimit-remaining-requests": "900",
    "x-ratelimit-reset-tokens": "1s",
    "x-ratelimit-remaining-tokens": "0",
}


@pytest.mark.parametrize(
    ("changed", "seconds"),
    [
        ({}, 1.0),
        ({"x-ratelimit-remaining-requests": "0"}, 77_760.0),
        ({"x-ratelimit-remaining-requests": "many"}, 77_760.0),
        ({"x-ratelimit-remaining-tokens": "0.0"}, 1.0),
        ({"x-ratelimit-remaining-tokens": "17"}, None),
    ],
)
def test_a_reset_time_counts_if_no_quota_is_left_or_reported(changed: dict[str, str], seconds: float | None) -> None:
    assert retry_after(EXHAUSTED | changed, NOW) == seconds


def test_resets_do_not_count_without_throttling() -> None:
    assert retry_after(EXHAUSTED, NOW, throttled=False) is None
    assert retry_after(EXHAUSTED | {"Retry-After": "2"}, NOW, throttled=False) == 2.0


def test_more_exact_matches_come_first() -> None:
    headers = {"x-ratelimit-reset-tokens": "6m0s", "Retry-After": "2", "retry-after-ms": "1500"}
    assert retry_after(headers, NOW) == 1.5
    del headers["retry-after-ms"]
    assert retry_after(headers, NOW) == 2.0


def test_an_unreadable_header_falls_back_to_the_next() -> None:
    assert retry_after({"retry-after-ms": "soon", "Retry-After": "2"}, NOW) == 2.0
    assert retry_after({"Retry-After": "soon", "x-ratelimit-reset-tokens": "3s"}, NOW) == 3.0


@all_rows(
    "value", ["", "soon", "-1", "1e3", "nan", "inf", "0x10", "1_000", "٣", "1,5", "5 s", "Fri, 99 Foo 2026 17:00 GMT"]
)
def test_unreadable_or_negative_headers_are_ignored(value: str) -> None:
    assert retry_after({"Retry-After": value}, NOW) is None
    assert retry_after({"retry-after-ms": value}, NOW) is None


@pytest.mark.parametrize("value", ["", "1", "-1s", "6m 0s", "s", "1s soon"])
def test_a_reset_in_another_notation_is_ignored(value: str) -> None:
    assert retry_after({"x-ratelimit-reset-requests": value}, NOW) is None


def test_without_headers_there_is_no_wait() -> None:
    assert retry_after({}, NOW) is None
    assert retry_after({"Content-Type": "application/json"}, NOW) is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("999999", 999_999.0), ("9" * 400, math.inf), ("Sat, 20 Nov 2027 17:00:00 GMT", 365 * 86_400.0)],
)
def test_every_wait_is_logged(value: str, seconds: float) -> None:
    assert retry_after({"Retry-After": value}, NOW) == seconds


@given(st.integers(0, 86_400))
def test_every_notation_gives_the_same_wait(seconds: int) -> None:
    at = NOW + timedelta(seconds=seconds)
    duration = f"{seconds // 3600}h{seconds % 3600 // 60}m{seconds % 60}s"
    for headers in (
        {"Retry-After": str(seconds)},
        {"RETRY-AFTER-MS": str(seconds * 1000)},
        {"retry-after": format_datetime(at, usegmt=True)},
        {"Retry-After": at.strftime("%a %b %d %H:%M:%S %Y")},
        {"X-RateLimit-Reset-Tokens": duration},
    ):
        assert retry_after(headers, NOW) == seconds


_PIECES = st.sampled_from(
    [
        "Fri,",
        "Friday,",
        "20",
        "Nov",
        "06-Nov-94",
        "2026",
        "17:00:30",
        "GMT",
        "+9999999999",
        "-",
        ":",
        "(",
        "9" * 30,
        "٣",
    ]
)


@given(
    st.sampled_from(["Retry-After", "retry-after-ms", "x-ratelimit-reset-requests"]),
    st.text() | st.lists(_PIECES).map(" ".join) | st.text("0123456789.-+hdms: "),
)
def test_the_wait_is_never_negative(name: str, value: str) -> None:
    wait = retry_after({name: value}, NOW)
    assert wait is None or wait >= 0.0
