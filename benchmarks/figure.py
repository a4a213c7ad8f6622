"""Figures of benchmarks, and the clock for CPU time."""

from collections.abc import Callable
from dataclasses import dataclass
from time import process_time_ns


@dataclass(frozen=True)
class Figure:
    """One measured figure.

    Attributes:
        name: what was measured.
        value: the measurement, in `unit`.
        unit: of `value` and `target`.
        target: what is asked for, in words ("at most 0.1"); "" where nothing is.
        met: whether it was met; None where nothing is asked for.
    """

    name: str
    value: float
    unit: str
    target: str = ""
    met: bool | None = None


def at_most(name: str, value: float, unit: str, limit: float) -> Figure:
    return Figure(name, value, unit, f"at most {limit:g}", value <= limit)


def at_least(name: str, value: float, unit: str, limit: float) -> Figure:
    return Figure(name, value, unit, f"at least {limit:g}", value >= limit)


def best_of(function: Callable[[], object], repeat: int, number: int) -> float:
    """Return the seconds of CPU per call: the best of `repeat` means over `number` calls, because noise only adds."""
    return min(_mean(function, number) for _ in range(repeat))


def _mean(function: Callable[[], object], number: int) -> float:
    start = process_time_ns()
    for _ in range(number):
        function()
    return (process_time_ns() - start) / number * 1e-9
