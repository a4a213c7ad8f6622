"""Where calls are kept for good: the run store, or nowhere."""

from typing import NamedTuple, Protocol

from jurygraph.models.asking import Reply, Request
from jurygraph.schema import Call


class Answered(NamedTuple):
    """A reply, and the call that brought it."""

    reply: Reply
    call: Call


class CallSink(Protocol):
    """Keeps calls, so that a run which goes on asks nothing again."""

    def find(self, key: str) -> Answered | None:
        """The call whose request has this digest, where it was kept."""

    async def keep(self, request: Request, answered: Answered) -> None:
        """Keep a call; it is there for good when this returns."""


class Nowhere:
    """Keeps nothing: for a jury that is used from Python without a run."""

    def find(self, key: str) -> Answered | None:
        return None

    async def keep(self, request: Request, answered: Answered) -> None:
        return None
