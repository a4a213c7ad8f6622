"""Clocks that no test waits for: one that jumps to the next timer, and one that stands still until a test moves it."""

import asyncio
import contextlib
import selectors
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar
from weakref import WeakSet

T = TypeVar("T")
PATIENCE = 60.0  # real seconds without any event, after which a loop calls its test stuck


class SkippingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock starts at 0 and jumps to the next timer, where another loop would sleep until it."""

    skips_time = True  # read by tests/gate.py

    def __init__(self) -> None:
        self.clock = 0.0
        super().__init__(SkippingSelector(self))

    def time(self) -> float:
        return self.clock


class SkippingSelector(selectors.SelectSelector):
    def __init__(self, loop: SkippingLoop) -> None:
        super().__init__()
        self.loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "everybody waits for ever"
        self.loop.clock += max(timeout, 0.0)
        return super().select(0)


class HeldLoop(asyncio.SelectorEventLoop):
    """An event loop for real servers and threads; its clock, one for all such loops, stands still until `pass_time`.

    So a reply is in time on a machine that is busy, too, and whatever hangs is late as soon as the test says so.
    """

    skips_time = True  # read by tests/gate.py

    def __init__(self) -> None:
        super().__init__(HeldSelector())
        _HELD.loops.add(self)

    def time(self) -> float:
        return held_time()


class HeldSelector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is not None and timeout <= 0.0:
            return super().select(0)
        events = super().select(PATIENCE)
        assert events, "nothing happens any more"
        return events


class _HeldClock:
    def __init__(self) -> None:
        self.time = 0.0
        self.loops: WeakSet[HeldLoop] = WeakSet()
        self.lock = threading.Lock()


_HELD = _HeldClock()


def held_time() -> float:
    """Return what the clock of the held loops shows."""
    return _HELD.time


def pass_time(seconds: float) -> None:
    """Move the clock of the held loops, from any thread."""
    with _HELD.lock:
        _HELD.time += seconds
        loops = [loop for loop in _HELD.loops if not loop.is_closed()]
    for loop in loops:
        with contextlib.suppress(RuntimeError):  # it was closed meanwhile
            loop.call_soon_threadsafe(lambda: None)  # so that it looks at the clock


async def pass_time_later(seconds: float) -> None:
    """Move the clock of the held loops when all that can run now has run."""
    for _ in range(20):
        await asyncio.sleep(0)
    pass_time(seconds)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result; waiting takes no real time."""
    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        return runner.run(coroutine)


def run_held(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result; no time passes but by `pass_time`."""
    with asyncio.Runner(loop_factory=HeldLoop) as runner:
        return runner.run(coroutine)


def now() -> float:
    return asyncio.get_running_loop().time()
