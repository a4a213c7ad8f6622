"""The waits that a provider's headers ask for."""

import math
from datetime import UTC, datetime, timedelta, timezone

from jurygraph.models.limits import retry_after
from tests.rows import all_rows

NOW = datetime(2026, 11, 20, 17, 0, tzinfo=UTC)
EXHAUSTED = {
    "x-ratelimit-reset-requests": "21h36m0s",
    "x-ratelimit-remaining-requests": "900",
    "x-ratelimit-reset-tokens": "1s",
    "x-ratelimit-remaining-tokens": "0",
}


def reset(duration: str) -> dict[str, str]:
    return {"x-ratelimit-reset-requests": duration}


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
        # OpenAI's notation of resets
        (reset("1s"), 1.0),
        (reset("6m0s"), 360.0),
        (reset("20ms"), 0.02),
        (reset("1h2m3s"), 3723.0),
        (reset("7.66s"), 7.66),
        (reset("2m59.56s"), 179.56),
        (reset("1m20ms"), 60.02),
        *((reset(other), None) for other in ("", "1", "-1s", "6m 0s", "s", "1s soon")),
        # of several resets the later one counts, if its limit is used up or its remainder is not reported
        ({"x-ratelimit-reset-requests": "20ms", "x-ratelimit-reset-tokens": "6m0s"}, 360.0),
        (EXHAUSTED, 1.0),
        (EXHAUSTED | {"x-ratelimit-remaining-requests": "0"}, 77_760.0),
        (EXHAUSTED | {"x-ratelimit-remaining-requests": "many"}, 77_760.0),
        (EXHAUSTED | {"x-ratelimit-remaining-tokens": "0.0"}, 1.0),
        (EXHAUSTED | {"x-ratelimit-remaining-tokens": "17"}, None),
        # the more exact header comes first, and an unreadable one is passed over
        ({"x-ratelimit-reset-tokens": "6m0s", "Retry-After": "2", "retry-after-ms": "1500"}, 1.5),
        ({"x-ratelimit-reset-tokens": "6m0s", "Retry-After": "2"}, 2.0),
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


def test_resets_do_not_count_without_throttling() -> None:
    assert retry_after(EXHAUSTED, NOW, throttled=False) is None
    assert retry_after(EXHAUSTED | {"Retry-After": "2"}, NOW, throttled=False) == 2.0


@all_rows(
    "value", ["", "soon", "-1", "1e3", "nan", "inf", "0x10", "1_000", "٣", "1,5", "5 s", "Fri, 99 Foo 2026 17:00 GMT"]
)
def test_unreadable_or_negative_headers_are_ignored(value: str) -> None:
    assert retry_after({"Retry-After": value}, NOW) is None
    assert retry_after({"retry-after-ms": value}, NOW) is None
