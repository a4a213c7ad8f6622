"""Store and find the calls of a run: one record each, with the request and the reply as texts outside the chain.

Calls that read profiles and annotate rubrics are stored together with the plans: all of them or none. Until these are
committed, each reply is durable in a separate ledger, so that a run that is stopped while planning does not repeat it.
"""

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from jurygraph.graphs.routing import required_material
from jurygraph.models.request import AnsweredCall, Reply, Request, encode_json
from jurygraph.runs.run import Run
from jurygraph.runs.store.folder import LEDGER, PLANNING, discard_planning
from jurygraph.runs.store.ledger import Draft, Ledger, Writer
from jurygraph.runs.store.packing import ERASED
from jurygraph.schema import Call, CallUse, RecordedVerdict, SurveyOutline, Trace


class CallStore:
    """A call sink over ledgers: a call is found in the first that has it, so that a killed run does not repeat it.

    New calls are stored by `writer`, in the first ledger; without it, none is stored. Calls found in the other ledgers,
    such as that of a branch's origin, are not copied: a repeated request gets the same reply.
    """

    def __init__(self, *ledgers: Ledger, writer: "Writer | _Transaction | None" = None) -> None:
        self._ledgers = ledgers
        self._writer = writer
        self.hidden: frozenset[str] = frozenset()
        """Ids of calls that are not found, because their replies came too late to count."""

    def find(self, key: str) -> AnsweredCall | None:
        """Return the call whose request has this digest; None where it has no reply, or where its texts were erased."""
        if key in self.hidden:
            return None
        for ledger, keys in zip(self._ledgers, self._keys, strict=True):
            record = ledger.find("call", key) if hash(key) in keys else None
            if record is not None and (reply := ledger.texts_of(record).get(1)) is not None:
                return AnsweredCall(Reply.model_validate_json(reply), Call.model_validate(record.content["call"]))
        return None

    async def store(self, request: Request, answered: AnsweredCall) -> None:
        """Store a call; it is durable (survives a power cut) when this returns."""
        if self._writer is not None:
            self._keys[0].add(hash(answered.call.id))
            await self._writer.append_durably([_draft(request, answered.call, answered.reply)])

    def store_unanswered(self, request: Request, call: Call) -> None:
        """Store a call without a reply, unless the request is stored already; `find` does not find it."""
        if self._writer is not None and hash(call.id) not in self._keys[0]:
            self._writer.append([_draft(request, call)])

    @cached_property
    def _keys(self) -> list[set[int]]:
        """Hashes of the digests of all calls: most requests are new, and a lookup in the file costs more."""
        return [set(map(hash, ledger.keys("call"))) for ledger in self._ledgers]


def _draft(request: Request, call: Call, *reply: Reply) -> Draft:
    texts = [encode_json(request.to_dict()), *(one.model_dump_json().encode() for one in reply)]
    return Draft("call", call.id, {"call": call.model_dump(mode="json")}, texts)


class _Transaction:
    """Appends at once to a ledger whose transaction is committed later, with the plans that the calls belong to."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def append(self, drafts: Sequence[Draft]) -> None:
        self._ledger.append(*drafts)

    async def append_durably(self, drafts: Sequence[Draft]) -> None:
        self.append(drafts)


class PlanningCalls(CallStore):
    """A call sink that stores calls in the transaction of a run's plans and, until its end, in a separate file.

    The file is written only if `is_durable`: a jury with a cache has its replies there. Calls that an earlier session
    left in it are copied to the run once they are requested. The file is kept until `discard`.
    """

    def __init__(self, run: Run, *others: Ledger, is_durable: bool) -> None:
        super().__init__(run.ledger, *others, writer=_Transaction(run.ledger))
        self._run = run
        self._is_durable = is_durable
        self._file_ledger: Ledger | None = None
        if (run.folder / PLANNING).exists():
            self._open_file()

    def _open_file(self) -> None:
        self._file_ledger = Ledger.create(self._run.folder / PLANNING)
        self._file_writer = Writer(self._file_ledger)
        self._file_calls = CallStore(self._file_ledger, writer=self._file_writer)

    def find(self, key: str) -> AnsweredCall | None:
        """Return the call whose request has this digest; a call from the file is copied to the run's ledger."""
        call = super().find(key)
        if call is None and self._file_ledger is not None and (call := self._file_calls.find(key)) is not None:
            record = self._file_ledger.require("call", key)
            body = {"call": record.content["call"]}
            texts = self._file_ledger.stored_texts(record.seq, record.seq)
            self._run.ledger.append(Draft("call", key, body, [text.content for text in texts]))
            self._keys[0].add(hash(key))
        return call

    async def store(self, request: Request, answered: AnsweredCall) -> None:
        """Store a call; it is durable when this returns, in the file or in the jury's cache."""
        if self._is_durable:
            if self._file_ledger is None:
                self._open_file()
            await self._file_calls.store(request, answered)
        await super().store(request, answered)

    def close(self) -> int:
        """Close the file and keep it; return the number of calls in it, for the next session."""
        if self._file_ledger is None:
            return 0
        stored = self._file_ledger.count_records("call")
        self._file_writer.close()
        self._file_ledger.close_as_plain_file()
        self._file_ledger = None
        return stored

    def discard(self) -> None:
        """Remove the file: the run has everything that was needed from it."""
        self.close()
        discard_planning(self._run.folder)


class RecordedCall(NamedTuple):
    """A call behind a verdict, with its purpose. Instead of a text that is not there, there is the reason."""

    purpose: str
    call: Call
    request: dict[str, Any] | str
    reply: dict[str, Any] | str


def read_calls(run: Run, trace: Trace, verdicts: Sequence[RecordedVerdict]) -> list[RecordedCall]:
    """Return the calls behind verdicts of a trace, in order: those for material first, repairs after the first try.

    Raises `TraceMismatch` if a stored text is not the one that was written.
    """
    by_id = {call.id: call for call in trace.calls}
    calls: dict[str, RecordedCall] = {}
    for use in _named_uses(run.survey_outline_of(trace.task_id), trace, verdicts):
        if use.id in by_id:
            calls.setdefault(use.id, RecordedCall(use.purpose, by_id[use.id], *_read_texts(run.source, by_id[use.id])))
    return list(calls.values())


def _named_uses(outline: SurveyOutline, trace: Trace, verdicts: Sequence[RecordedVerdict]) -> Iterator[CallUse]:
    """Yield the calls that the material of the verdicts' question and the verdicts name, with their purposes."""
    needs = {derivation.gives: derivation.needs for derivation in outline.derivations}
    names = [n for q in outline.questions if q.id == verdicts[0].question for n in required_material(q)]
    for name in names:  # the list grows by what each material is made from
        names += (each for each in needs.get(name, ()) if each not in names)
    made = {material.name: material.calls for material in trace.material}
    for name in reversed(names):
        yield from made.get(name, ())
    for verdict in verdicts:
        yield from verdict.named_calls


def _read_texts(run: Run, call: Call) -> tuple[Any, Any]:
    """Return the request and the reply of a call, from the run or the one from which it was branched."""
    request, reply = _find_texts(run, call)
    return request, reply if call.fault is None else "none"  # one that came too late does not count


def _find_texts(run: Run, call: Call) -> tuple[Any, Any]:
    if run.ledger.find("call", call.id) is not None:
        texts = run.ledger.texts_of(run.ledger.require("call", call.id))
        request, reply = (json.loads(texts[place]) if place in texts else ERASED for place in (0, 1))
        return request, reply
    if run.header.branch is None:
        return (f"not recorded in {run.folder}",) * 2
    folder = run.folder_of(run.header.branch)
    if not (folder / LEDGER).is_file():
        return (f"in the run {folder}, from which {run.folder} was branched, and which is not there",) * 2
    with Run.open(folder) as origin:
        return _find_texts(origin.source, call)
