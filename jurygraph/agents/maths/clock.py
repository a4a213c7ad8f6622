"""Read a time of day: "3:30 pm", "15:30", "3 p.m.", "noon"."""

import re
from fractions import Fraction
from typing import NamedTuple

_TIME = re.compile(
    r"(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9]))?)?(?P<word> ?o'?clock)?"
    r"(?: ?(?P<half>[aApP])\.? ?[mM]\.?)?",
    re.ASCII,
)
_NAMED = {"noon": 43200, "12 noon": 43200, "midnight": 0, "12 midnight": 0}
_HALF_DAY = 43_200


class Clock(NamedTuple):
    """A time of day in seconds; `has_half` if it is known to be before or after noon, `hour` as it is written."""

    seconds: int
    has_half: bool
    hour: int


def read_clock(text: str) -> Clock | None:
    """Read a text as a time of day; None for anything else, such as "18 pm" or "18". "3:30" has no half of the day."""
    if text.lower() in _NAMED:
        return Clock(_NAMED[text.lower()], True, 12)
    match = _TIME.fullmatch(text)
    if match is None or not (match["minute"] or match["half"] or match["word"]):
        return None
    hour = int(match["hour"])
    is_twelve_hours = bool(match["half"] or match["word"])
    if hour > (12 if is_twelve_hours else 23) or (is_twelve_hours and hour == 0):
        return None
    half = (match["half"] or "").lower()
    counted = (hour % 12 + 12 * (half == "p")) if half else hour
    seconds = counted * 3600 + int(match["minute"] or 0) * 60 + int(match["second"] or 0)
    return Clock(seconds, bool(half) or hour > 12 or hour == 0, hour)


def are_equal_clocks(a: Clock, b: Clock) -> bool:
    """Return true if two times are equal; one without its half of the day equals both."""
    difference = a.seconds - b.seconds
    return difference == 0 if a.has_half and b.has_half else difference % _HALF_DAY == 0


def is_hour(clock: Clock, value: Fraction) -> bool:
    """Return true if a number is the written hour of a time without minutes: 3 for "3 pm"."""
    return clock.seconds % 3600 == 0 and value == clock.hour
