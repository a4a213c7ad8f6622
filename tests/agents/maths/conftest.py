"""Comparisons without worker processes, except in tests that are marked `landing` or `exhaustive`."""

import json
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

import pytest

from jurygraph.agents import worker_pool
from jurygraph.agents.maths.comparison import _compare_request

BOMBS = ("9^{9^{9^{9}}}", "(10^9)!", "(" * 3000 + "1" + ")" * 3000)
"""Answers whose comparison does not end."""
DEADLY = "2+2"
"""An answer that ends its worker."""


class InProcessChannel:
    """Takes the place of a worker: a bomb is at its time limit once `time_is_over`, which it is unless a test waits."""

    time_is_over = threading.Event()
    bombs_begun = threading.Semaphore(0)

    def __init__(self, work: worker_pool.Work[Any], time_limit: float) -> None:
        self.ready = self.is_closed = False
        self._requests: deque[dict[str, str]] = deque()

    def send(self, data: bytes, seconds: float) -> None:
        self._requests += map(json.loads, data.splitlines())

    def receive(self, seconds: float) -> Mapping[str, Any]:
        if not self.ready:
            return {"ready": True}
        request = self._requests.popleft()
        if request["answer"] in BOMBS:
            self.bombs_begun.release()
            self.time_is_over.wait()
            raise ConnectionError if self.is_closed else TimeoutError
        if request["answer"] == DEADLY:
            raise ConnectionError
        return {"result": _compare_request(request)}

    def kill(self) -> None:
        self.is_closed = True
        self.time_is_over.set()

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture(autouse=True)
def channels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    InProcessChannel.time_is_over.set()
    InProcessChannel.bombs_begun = threading.Semaphore(0)
    if not any(request.node.get_closest_marker(mark) for mark in ("landing", "exhaustive")):
        monkeypatch.setattr(worker_pool, "Channel", InProcessChannel)
