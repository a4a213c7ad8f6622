"""What goes wrong between a question and its reply, named once for every backend.

kind          cause           again   what happened
timeout       infrastructure  yes     no whole reply in time
connection    infrastructure  yes     refused, reset, cut off, or no such host
rate-limit    infrastructure  yes     429, or a provider's word for it; `retry_after` where it said when
server        infrastructure  yes     5xx
unreadable    infrastructure  yes     the provider's own envelope is not what it should be
too-large     infrastructure  no      more bytes than any reply has
rejected      infrastructure  no      any other 4xx: the request is wrong, and stays so
unauthorised  infrastructure  no      401, 402, 403: the key is missing or wrong, or has no money left
unknown-model infrastructure  no      404: no such model or path
unrecorded    infrastructure  no      a replay does not hold this request
outage        infrastructure  no      the server did not answer for as long as `calls.outage.wait` allows
deadline      infrastructure  no      the group's time is over
budget        infrastructure  no      the run's limit of cost or calls is reached
overflowed    response        no      more tokens than the model takes in
refused       response        no      the provider's filter, or the model itself, would not answer
truncated     response        no      the reply ended at its limit of tokens
empty         response        no      the reply has no text
malformed     response        no      the reply is not what was asked for, after repair too
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import TypeVar

from jurygraph.errors import ModelError
from jurygraph.schema import Cause, Failure

T = TypeVar("T")

RETRIED = frozenset({"timeout", "connection", "rate-limit", "server", "unreadable"})
BY_RESPONSE = frozenset({"overflowed", "refused", "truncated", "empty", "malformed"})
"""What the response that is judged may have provoked."""

OUT_OF_FUNDS = frozenset({"insufficient_quota", "insufficient_balance", "billing_hard_limit_reached"})
"""What providers say beside a 429, or another 4xx, that no waiting mends."""

BROKEN_OFF = ("abort", "error")
"""Why a reply ended, in the words of SGLang, vLLM and OpenRouter, where the server and not the model ended it."""

_BY_STATUS = {
    401: "unauthorised",
    402: "unauthorised",
    403: "unauthorised",
    404: "unknown-model",
    408: "timeout",
    409: "server",
    425: "server",
    429: "rate-limit",
    504: "timeout",
}
_LONGEST_MESSAGE = 500


def kind_of_status(status: int) -> str:
    """The kind of fault that an HTTP status of 400 and more is, whatever is said beside it."""
    return _BY_STATUS.get(status, "server" if status >= 500 else "rejected")


def too_late() -> "Fault":
    """What a question meets once the time for its group is over."""
    return Fault("deadline", "the time for this group of responses is over; raise calls.deadline")


async def wait_for_turn(turn: asyncio.Future[T], until: float | None, withdraw: Callable[[], None]) -> T:
    """Return what a turn brings, and call `withdraw` where nobody waits for it any longer.

    Raises `Fault` of kind `deadline` where `until`, a time of the running loop, comes first.
    """
    try:
        async with asyncio.timeout_at(until):
            return await turn
    except TimeoutError:
        withdraw()
        raise too_late() from None
    except asyncio.CancelledError:
        withdraw()
        raise


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error and those that led to it, the last first, hidden ones too; each once, though they lead in a circle."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or one.__context__


class Fault(ModelError):
    """A request that came to nothing. `retry_after` is in seconds, where the provider said it.

    `attempts` is how many requests were sent, once that is known; `call` the id of the call whose reply was at fault.
    """

    def __init__(self, kind: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after
        self.attempts = 1
        self.call: str | None = None

    @property
    def cause(self) -> Cause:
        """Whether the response may have provoked it."""
        return "response" if self.kind in BY_RESPONSE else "infrastructure"

    @property
    def again(self) -> bool:
        """Whether the same request may do better."""
        return self.kind in RETRIED

    @property
    def failure(self) -> Failure:
        """As a verdict tells it."""
        return Failure(cause=self.cause, kind=self.kind, message=str(self)[:_LONGEST_MESSAGE])
