"""Requests by their key or their content: what is sent again is joined, and not judged twice.

Trainers send a request again after a timeout, also while the first is in work. A request with an `Idempotency-Key` is
the one that had the key before. Without a key, it is one with the same body that is in work, or whose reply nobody
took; but a member of a cohort is another one as long as a client waits for its equal, since a policy may well give the
same answer twice.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

from jurygraph.messages import quote
from jurygraph.server.settings import RequestRefusedError

MAX_KEPT_REPLIES = 4096
MAX_KEPT_REPLY_BYTES = 64 << 20
"""Replies that are kept for a request that comes again, and the bytes of them."""


class HttpAnswer(NamedTuple):
    """A reply as HTTP has it: its status, its body in JSON and the seconds after which to come again, if that helps."""

    status: int
    body: bytes
    retry_after: int | None = None


@dataclass(eq=False, kw_only=True)
class HttpRequestInWork:
    """A request by its key or its body, and the number of clients that wait for its reply."""

    name: str
    digest: str
    has_idempotency_key: bool
    work: "asyncio.Task[HttpAnswer]" = field(repr=False)
    waiting_client_count: int = 0


class RequestsInWork:
    """The requests that are in work, and finished ones that may come again."""

    def __init__(self) -> None:
        self._requests: dict[str, list[HttpRequestInWork]] = {}
        self._kept: OrderedDict[HttpRequestInWork, int] = OrderedDict()
        self._kept_bytes = 0
        self.unfinished: set[asyncio.Task[HttpAnswer]] = set()

    def open(
        self,
        path: str,
        key: str | None,
        body: bytes,
        start: Callable[[], Coroutine[Any, Any, HttpAnswer]],
        waits_for_cohort: bool,
    ) -> HttpRequestInWork:
        """Return the request that this one repeats, else a new one that `start` works on.

        Two members of a cohort may be equal, so that one without a key repeats only what no client waits for. Raises
        `RequestRefusedError` with status 409 for a key that came with another body.
        """
        digest = sha256(body).hexdigest()
        name = f"{path} key {key}" if key is not None else f"{path} body {digest}"
        for request in self._requests.get(name, ()):
            if request.digest != digest:
                raise RequestRefusedError(
                    409,
                    f"Idempotency-Key {quote(str(key))} came with another body before; "
                    "give each request a key of its own",
                )
            if key is not None or not waits_for_cohort or not request.waiting_client_count:
                return request
        work = asyncio.get_running_loop().create_task(start())
        request = HttpRequestInWork(
            name=name, digest=digest, has_idempotency_key=key is not None, work=work
        )
        self._requests.setdefault(name, []).append(request)
        self.unfinished.add(work)
        work.add_done_callback(self.unfinished.discard)
        work.add_done_callback(lambda work: self._keep_or_forget_reply(request))
        return request

    def _keep_or_forget_reply(self, request: HttpRequestInWork) -> None:
        """Keep the reply of a request with a key, or one that nobody waits for; forget one that was refused."""
        work = request.work
        is_request_answered = (
            not work.cancelled() and work.exception() is None and work.result().status == 200
        )
        is_reply_wanted = request.has_idempotency_key or not request.waiting_client_count
        if not is_request_answered or not is_reply_wanted:
            self._forget_request(request)
            return
        self._kept[request] = len(work.result().body)
        self._kept_bytes += self._kept[request]
        while len(self._kept) > MAX_KEPT_REPLIES or self._kept_bytes > MAX_KEPT_REPLY_BYTES:
            self._forget_request(next(iter(self._kept)))

    def _forget_request(self, request: HttpRequestInWork) -> None:
        requests = self._requests.get(request.name, [])
        if request in requests:
            requests.remove(request)
        if not requests:
            self._requests.pop(request.name, None)
        self._kept_bytes -= self._kept.pop(request, 0)

    def forget_delivered_reply(self, request: HttpRequestInWork) -> None:
        """Forget a reply without a key that a client has got: the same body is another request from here on."""
        if not request.has_idempotency_key:
            self._forget_request(request)
