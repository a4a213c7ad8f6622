"""The interface of permanent storage for calls, such as the run store."""

from typing import NamedTuple, Protocol

from jurygraph.models.request import Reply, Request
from jurygraph.schema import Call


class AnsweredCall(NamedTuple):
    """A reply, and its call."""

    reply: Reply
    call: Call


class CallSink(Protocol):
    """Store calls, so that a resumed run repeats no request."""

    def find(self, key: str) -> AnsweredCall | None:
        """Return the stored call whose request has this digest, if there is one."""

    async def store(self, request: Request, answered: AnsweredCall) -> None:
        """Store a call; it is durable when this returns."""
