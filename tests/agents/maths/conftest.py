"""Comparisons without worker processes, except in tests that are marked `landing` or `exhaustive`."""

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pytest
from pebble import ProcessExpired

from jurygraph.agents.maths.comparison import compare_answers

BOMBS = ("9^{9^{9^{9}}}", "(10^9)!", "(" * 3000 + "1" + ")" * 3000)
"""Answers whose comparison does not end: they are at their time limit at once."""
HANGING = "1+1"
"""An answer that is compared until the pool is closed."""
DEADLY = "2+2"
"""An answer that ends its worker."""
UNSTARTED = "3+3"
"""An answer for which no worker starts."""


class InProcess:
    """Takes the place of pebble's pool."""

    opened = 0

    def __init__(self, *_: object) -> None:
        self.active = True
        InProcess.opened += 1

    def schedule(
        self, function: Callable[..., Any], args: tuple[str, str, str], timeout: float
    ) -> Future[Any]:
        future: Future[Any] = Future()
        answer = args[0]
        if answer in BOMBS:
            future.set_exception(TimeoutError())
        elif answer == DEADLY:
            future.set_exception(ProcessExpired("Abnormal termination", 6))
        elif answer == UNSTARTED:
            self.active = False
            future.set_exception(BrokenProcessPool("All workers expired"))
        elif answer != HANGING:
            try:
                future.set_result(("done", compare_answers(*args)))
            except (ValueError, RecursionError) as error:
                future.set_result(("failed", type(error).__name__, ""))
        return future

    def stop(self) -> None:
        self.active = False

    def join(self) -> None:
        pass


@pytest.fixture(autouse=True)
def processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type[InProcess]:
    InProcess.opened = 0
    if not any(request.node.get_closest_marker(mark) for mark in ("landing", "exhaustive")):
        monkeypatch.setattr("pebble.ProcessPool", InProcess)
    return InProcess
