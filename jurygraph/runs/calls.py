"""Store and find the calls of a run: one record each, with the request and the reply as texts outside the chain."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from functools import cached_property
from typing import Protocol

from pydantic_core import to_json

from jurygraph.models.request import AnsweredCall, Reply, Request
from jurygraph.runs.store.chain import Draft
from jurygraph.runs.store.digests import Digests
from jurygraph.runs.store.ledger import Ledger
from jurygraph.schema import Call


class RecordWriter(Protocol):
    """A writer that appends records to a ledger, and returns a future that is done once they are durable."""

    def append(self, drafts: Sequence[Draft]) -> "Future[None]":
        """Append the records together."""


class CallStore:
    """A call sink that stores calls in a run's ledger, so that a killed run does not repeat them when it is resumed.

    Without a writer it can only find calls.
    """

    def __init__(self, ledger: Ledger, writer: RecordWriter | None = None) -> None:
        self._ledger = ledger
        self._writer = writer

    def find(self, key: str) -> AnsweredCall | None:
        """Return the call whose request has this digest; None where there is none, or where its texts were erased."""
        if key not in self._keys:
            return None
        record = self._ledger.find("call", key)
        if record is None:
            return None
        content = record.content
        reply = self._ledger.texts({record.seq: content["texts"]})[record.seq].get(1)
        if reply is None:
            return None
        return AnsweredCall(Reply.model_validate_json(reply), Call.model_validate(content["call"]))

    async def store(self, request: Request, answered: AnsweredCall) -> None:
        """Store a call; it is durable (survives a power cut) when this returns."""
        body = {"call": answered.call.model_dump(mode="json")}
        texts = [to_json(request.to_dict()), answered.reply.model_dump_json().encode()]
        await asyncio.wrap_future(self._append(Draft("call", answered.call.id, body, texts)))

    def copy(self, key: str, source: Ledger) -> None:
        """Append a call from another ledger, which must hold the call and both of its texts."""
        record = source.find("call", key)
        assert record is not None, "it was found there"
        texts = source.texts({record.seq: record.content["texts"]})[record.seq]
        self._append(Draft("call", key, {"call": record.content["call"]}, [texts[0], texts[1]]))

    def _append(self, draft: Draft) -> "Future[None]":
        assert self._writer is not None, "a run that is only read makes no calls"
        appended = self._writer.append([draft])
        self._keys.add(draft.key)
        return appended

    @cached_property
    def _keys(self) -> Digests:
        """Digests of all calls, kept in memory: most requests are new, and a lookup in the file costs more."""
        return Digests(self._ledger.keys("call"))


class ReadOnlyCalls:
    """A call sink that finds the calls of runs and stores none."""

    def __init__(self, *ledgers: Ledger) -> None:
        self._calls = [CallStore(ledger) for ledger in ledgers]

    def find(self, key: str) -> AnsweredCall | None:
        """Return the call whose request has this digest, from the first run that has it."""
        return next((call for calls in self._calls if (call := calls.find(key)) is not None), None)

    async def store(self, request: Request, answered: AnsweredCall) -> None:
        """Do nothing."""


class LayeredCalls(ReadOnlyCalls):
    """A call sink that stores calls in `own`, and finds them also in `others`, such as the run's branch origin.

    Calls found in `others` are not copied. A request that repeats the request of a carried-over verdict thus gets the
    same reply.
    """

    def __init__(self, own: CallStore, *others: Ledger) -> None:
        super().__init__(*others)
        self._own_calls = own
        self._calls.insert(0, own)

    async def store(self, request: Request, answered: AnsweredCall) -> None:
        await self._own_calls.store(request, answered)
