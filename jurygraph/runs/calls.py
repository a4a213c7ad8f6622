"""Store and find the calls of a run: one record each, with the request and the reply as texts outside the chain."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import cached_property

from pydantic_core import to_json

from jurygraph.models.request import AnsweredCall, Reply, Request
from jurygraph.runs.store.chain import Draft
from jurygraph.runs.store.digests import Digests
from jurygraph.runs.store.ledger import Ledger
from jurygraph.schema import Call

Append = Callable[[Sequence[Draft]], "Future[None]"]
"""A function that appends records together, and returns a future that is done once they are durable."""


class CallStore:
    """A call sink over ledgers: a call is found in the first that has it, so that a killed run does not repeat it.

    New calls are stored with `append`, which appends to the first ledger; without it, none is stored. Calls found in
    the other ledgers, such as that of the run's branch origin, are not copied: a request that repeats the request of a
    carried-over verdict thus gets the same reply.
    """

    def __init__(self, *ledgers: Ledger, append: Append | None = None) -> None:
        self._ledgers = ledgers
        self._append = append

    def find(self, key: str) -> AnsweredCall | None:
        """Return the call whose request has this digest; None where there is none, or where its texts were erased."""
        for ledger, keys in zip(self._ledgers, self._keys, strict=True):
            record = ledger.find("call", key) if key in keys else None
            if record is not None:
                content = record.content
                reply = ledger.texts({record.seq: content["texts"]})[record.seq].get(1)
                if reply is not None:
                    return AnsweredCall(Reply.model_validate_json(reply), Call.model_validate(content["call"]))
        return None

    async def store(self, request: Request, answered: AnsweredCall) -> None:
        """Store a call; it is durable (survives a power cut) when this returns."""
        if self._append is None:
            return
        body = {"call": answered.call.model_dump(mode="json")}
        texts = [to_json(request.to_dict()), answered.reply.model_dump_json().encode()]
        appended = self._append([Draft("call", answered.call.id, body, texts)])
        self._keys[0].add(answered.call.id)
        await asyncio.wrap_future(appended)

    @cached_property
    def _keys(self) -> list[Digests]:
        """Digests of all calls, kept in memory: most requests are new, and a lookup in the file costs more."""
        return [Digests(ledger.keys("call")) for ledger in self._ledgers]
