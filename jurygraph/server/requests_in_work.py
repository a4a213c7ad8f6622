"""Requests by their key or their content: what is sent again is joined, and not judged twice.

Trainers send a request again after a timeout, also while the first is in work. A request with an `Idempotency-Key` is
the one that had the key before. Without a key, it is one with the same body that is in work, or whose reply nobody
took.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

from jurygraph.messages import quote
from jurygraph.server.settings import Refusal

MOST_KEPT = 4096
LARGEST_KEPT = 64 << 20
"""Replies that are kept for a request that comes again, and the bytes of them."""


class HttpAnswer(NamedTuple):
    """A reply as HTTP has it: its status, its body in JSON and the seconds after which to come again, if that helps."""

    status: int
    body: bytes
    retry_after: int | None = None


@dataclass(eq=False, kw_only=True)
class RequestInWork:
    """A request, the clients that wait for its reply, and whether one of them got it."""

    digest: str
    has_key: bool = False
    waiting: int = 0
    is_delivered: bool = False
    work: "asyncio.Task[HttpAnswer] | None" = field(default=None, repr=False)

    @property
    def is_abandoned(self) -> bool:
        """True where nobody waits for the reply, and nobody got it."""
        return not self.waiting and not self.is_delivered


class RequestsInWork:
    """The requests that are in work, and finished ones that may come again."""

    def __init__(self) -> None:
        self._requests: OrderedDict[str, RequestInWork] = OrderedDict()
        self._kept: OrderedDict[str, int] = OrderedDict()
        self._kept_bytes = 0
        self.unfinished: set[asyncio.Task[HttpAnswer]] = set()

    def open(
        self,
        path: str,
        key: str | None,
        body: bytes,
        start: Callable[[RequestInWork], Coroutine[Any, Any, HttpAnswer]],
        is_member: bool,
    ) -> RequestInWork:
        """Return the request that this one repeats, else a new one that `start` works on.

        A member of a cohort without a key is not compared by its body: two members may be equal. Raises `Refusal` with
        status 409 for a key that came with another body.
        """
        digest = sha256(body).hexdigest()
        name = f"{path} key {key}" if key is not None else f"{path} body {digest}"
        if key is None and is_member:
            return self._start(RequestInWork(digest=digest), start)
        request = self._requests.get(name)
        if request is None:
            request = RequestInWork(digest=digest, has_key=key is not None)
            self._requests[name] = request
            self._start(request, start)
            assert request.work is not None
            request.work.add_done_callback(lambda work: self._keep(name, request, work))
        elif request.digest != digest:
            problem = f"Idempotency-Key {quote(str(key))} came with another body before"
            raise Refusal(409, f"{problem}; give each request a key of its own")
        return request

    def _start(
        self,
        request: RequestInWork,
        start: Callable[[RequestInWork], Coroutine[Any, Any, HttpAnswer]],
    ) -> RequestInWork:
        request.work = asyncio.get_running_loop().create_task(start(request))
        self.unfinished.add(request.work)
        request.work.add_done_callback(self.unfinished.discard)
        return request

    def _keep(self, name: str, request: RequestInWork, work: "asyncio.Task[HttpAnswer]") -> None:
        """Keep the reply of a request with a key, or one that nobody waits for; forget one that was refused."""
        is_good = not work.cancelled() and work.exception() is None and work.result().status == 200
        is_wanted = request.has_key or not request.waiting
        if not is_good or not is_wanted:
            self._requests.pop(name, None)
            return
        self._kept[name] = len(work.result().body)
        self._kept_bytes += self._kept[name]
        while len(self._kept) > MOST_KEPT or self._kept_bytes > LARGEST_KEPT:
            self._forget(next(iter(self._kept)))

    def _forget(self, name: str) -> None:
        self._requests.pop(name, None)
        self._kept_bytes -= self._kept.pop(name, 0)

    def note_delivered(self, path: str, request: RequestInWork) -> None:
        """Forget a reply without a key that a client has got: the same body is another request from here on."""
        request.is_delivered = True
        name = f"{path} body {request.digest}"
        if not request.has_key and self._requests.get(name) is request:
            self._forget(name)
