"""The calls of a run: each a record of its own, with the request and the reply as texts beside the chain."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from functools import cached_property
from typing import Protocol

from pydantic_core import to_json

from jurygraph.models.asking import Reply, Request
from jurygraph.models.sink import Answered
from jurygraph.runs.store.chain import Draft
from jurygraph.runs.store.digests import Digests
from jurygraph.runs.store.ledger import Ledger
from jurygraph.schema import Call


class Appending(Protocol):
    """Appends records to a ledger, and says when they are as durable as it makes them."""

    def append(self, drafts: Sequence[Draft]) -> "Future[None]":
        """Append them together."""


class Calls:
    """Keeps calls in a run's ledger, where a killed run finds them again: what is there is not asked again.

    Without a writer it only finds.
    """

    def __init__(self, ledger: Ledger, writer: Appending | None = None) -> None:
        self._ledger = ledger
        self._writer = writer

    def find(self, key: str) -> Answered | None:
        """The call whose request has this digest; None where there is none, or its texts were erased."""
        if key not in self._keys:
            return None
        record = self._ledger.find("call", key)
        if record is None:
            return None
        content = record.content
        reply = self._ledger.texts({record.seq: content["texts"]})[record.seq].get(1)
        if reply is None:
            return None
        return Answered(Reply.model_validate_json(reply), Call.model_validate(content["call"]))

    async def keep(self, request: Request, answered: Answered) -> None:
        """Keep a call; it would survive a power cut when this returns."""
        body = {"call": answered.call.model_dump(mode="json")}
        texts = [to_json(request.plain()), answered.reply.model_dump_json().encode()]
        await asyncio.wrap_future(self._append(Draft("call", answered.call.id, body, texts)))

    def copy(self, key: str, source: Ledger) -> None:
        """Append a call of another ledger, which holds both its texts."""
        record = source.find("call", key)
        assert record is not None, "it was found there"
        texts = source.texts({record.seq: record.content["texts"]})[record.seq]
        self._append(Draft("call", key, {"call": record.content["call"]}, [texts[0], texts[1]]))

    def _append(self, draft: Draft) -> "Future[None]":
        assert self._writer is not None, "a run that is only read asks nothing new"
        appended = self._writer.append([draft])
        self._keys.add(draft.key)
        return appended

    @cached_property
    def _keys(self) -> Digests:
        """Of all calls: most questions are new, and a look into the file costs more than a look into this."""
        return Digests(self._ledger.keys("call"))


class Found:
    """Finds the calls of runs, and keeps none."""

    def __init__(self, *ledgers: Ledger) -> None:
        self._calls = [Calls(ledger) for ledger in ledgers]

    def find(self, key: str) -> Answered | None:
        """The call whose request has this digest, in the first run that has it."""
        return next((found for calls in self._calls if (found := calls.find(key)) is not None), None)

    async def keep(self, request: Request, answered: Answered) -> None:
        """Nothing is kept."""


class CallsBeside(Found):
    """Keeps calls as `own` does. A call of `others`, such as a run that this one is branched from, is found there and
    stays there: who asks the same as a verdict that was carried over is told the same."""

    def __init__(self, own: Calls, *others: Ledger) -> None:
        super().__init__(*others)
        self._own = own
        self._calls.insert(0, own)

    async def keep(self, request: Request, answered: Answered) -> None:
        await self._own.keep(request, answered)
