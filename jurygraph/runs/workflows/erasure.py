"""Erase texts from a run, its cache and its recording for good: the text, its salts and every copy there.

The erasure is recorded in the chain; the scores of verdicts, rewards and ids are kept, and the run still verifies.
"""

import json
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean
from jurygraph.models.cache import default_folder, erase_replies
from jurygraph.runs.run import Run
from jurygraph.runs.store.atomic_files import REPLACEMENT_NAMES
from jurygraph.runs.store.folder import discard_planning
from jurygraph.runs.store.ledger import MAX_TEXTS, Draft, Record, Text
from jurygraph.runs.store.packing import read_shared_lists, responses_shown
from jurygraph.runs.workflows.fragments import (
    MIN_SEARCHED_LENGTH,
    Fragments,
    encoded_forms,
    erase_calls,
)
from jurygraph.runs.writable_run import WritableRun
from jurygraph.safety.fence import MARK_LENGTH, SHORT_MARK_LENGTH, fence_parts
from jurygraph.schema.frozen_model import iter_strings

ErasureTarget = Literal["response", "task"]


class ErasureResult(NamedTuple):
    """The result of an erasure.

    `erased` counts its own texts that were erased, `erased_in_others` other texts that contained it. `replies` is the
    number of replies deleted from the cache, `calls` of calls deleted from the recording. `tasks` whose own text
    contains it are left and listed. `unreached` are messages about places that could not be searched or written.
    """

    erased: int
    erased_in_others: int
    tasks: list[str]
    replies: int
    calls: int
    unreached: list[str]


def erase(folder: Path, what: ErasureTarget, name: str, reason: str) -> ErasureResult:
    """Erase all texts of a response, or of a task and all responses to it.

    Raises `InputError` where there is no such response or task, or where another process writes or reads the run.
    """
    with WritableRun.open_existing(folder) as run:
        if run.header.base is not None:
            base = os.path.normpath(run.folder / run.header.base.folder)
            raise InputError(f"{run.folder}: contains no texts; erase {name!r} in {base}")
        run.ledger.require_alone()
        return _Erasure(run, what, name).erase(reason)


class _Erasure:
    def __init__(self, run: Run, what: ErasureTarget, name: str) -> None:
        self._run = run
        self._ledger = run.ledger
        self._what: ErasureTarget = what
        self._name = name
        self._unreached: list[str] = []
        self._own = {text.id: text.content for text in self._own_texts()}

    def erase(self, reason: str) -> ErasureResult:
        """Erase the texts, in the run and outside, and record it."""
        ledger = self._ledger
        own = self._own
        copies = self._find_copies()
        tasks = {record.seq: record.key for record in ledger.records("task")} if copies else {}
        kept = {text_id for text_id in copies if text_id // MAX_TEXTS in tasks and text_id not in own}
        known = {*own, *copies} - kept
        fragments = self._build_fragments(known)
        erased = sorted(known | self._quoting_texts(fragments))
        # before the ledger: once its texts are erased, the fragments to search for cannot be rebuilt
        result = self._erase_outside(fragments, erased, sorted({tasks[text_id // MAX_TEXTS] for text_id in kept}))
        discard_planning(self._run.folder)  # it holds texts too; tasks that are still to be planned repeat their calls
        for leftover in self._run.folder.glob(REPLACEMENT_NAMES):
            leftover.unlink()
        ledger.append(Draft("erasure", self._name, {"what": self._what, "reason": reason, "ids": erased}))
        ledger.erase(erased)
        ledger.commit()
        ledger.compact()
        return result

    def _own_texts(self) -> Iterator[Text]:
        ledger = self._ledger
        what = self._what
        name = self._name
        kind = "trace" if what == "response" else "task"
        record = ledger.find(kind, name)
        if record is None:
            hint = did_you_mean(name, ledger.keys(kind)) or f"name the id of a {what} of this run"
            raise InputError(f"{self._run.folder}: there is no {what} {name!r}; {hint}")
        yield from ledger.stored_texts(1, 1)  # the digests of the scored files
        if what == "response":
            yield from self._response_texts(record)
            return
        for owner in (record, ledger.find("canary", name)):
            if owner is not None:
                yield from ledger.stored_texts(owner.seq, owner.seq)
                yield from self._call_texts(owner)  # those of a task read its profiles
        group = ledger.find("group", name)
        if group is not None:
            last = group.seq + group.content["size"]
            yield from ledger.stored_texts(group.seq, last)
            for trace in ledger.records("trace", after=group.seq, up_to=last):
                yield from self._call_texts(trace)

    def _response_texts(self, record: Record) -> Iterator[Text]:
        """Yield a response's own texts, its group's digest, and the texts of verdicts on others that showed it."""
        ledger = self._ledger
        group = ledger.record_at(record.seq - record.content["group"])
        yield from ledger.stored_texts(group.seq, group.seq)
        shared_lists = read_shared_lists(group.content)
        for trace in ledger.records("trace", after=group.seq, up_to=group.seq + group.content["size"]):
            verdicts = trace.content["verdicts"]
            showing = {
                verdict.get("text") for verdict in verdicts if record.key in responses_shown(verdict, shared_lists)
            }
            for text in ledger.stored_texts(trace.seq, trace.seq):
                if trace.key == record.key or text.id % MAX_TEXTS in showing:
                    yield text
        yield from self._call_texts(record)

    def _call_texts(self, record: Record) -> Iterator[Text]:
        """Yield the requests and replies about a response, including those that led to no verdict."""
        ids = [call["id"] for call in record.content.get("calls", ())]
        calls = {call.seq for name in ids for call in self._ledger.find_all("call", name)}
        for text in self._ledger.stored_texts(record.seq, record.seq):
            if text.id % MAX_TEXTS == 0:
                calls |= self._fencing_records(text.content.decode())
        for seq in sorted(calls):
            if self._ledger.record_at(seq).kind == "call":
                yield from self._ledger.stored_texts(seq, seq)

    def _fencing_records(self, response: str) -> set[int]:
        """Return the records whose texts contain a response inside a fence with any mark."""
        before_mark, after_mark = fence_parts(response, "response")
        found = set()
        for after_form in encoded_forms(after_mark) - {after_mark.encode()}:
            mark = b"[0-9a-f]{%d,%d}" % (SHORT_MARK_LENGTH, MARK_LENGTH)
            fence = re.compile(re.escape(before_mark.encode()) + mark + re.escape(after_form))
            texts = self._ledger.texts_containing(after_form)
            found |= {text.id // MAX_TEXTS for text in texts if fence.search(text.content)}
        return found

    def _find_copies(self) -> set[int]:
        """Return the texts that contain the text of a response that is long enough to search for, plain or escaped.

        If such a text is another response, all texts that belong to that response are included.
        """
        ledger = self._ledger
        text_ids: set[int] = set()
        for number, content in self._own.items():
            is_response = number % MAX_TEXTS == 0 and ledger.record_at(number // MAX_TEXTS).kind == "trace"
            if is_response and len(response := content.decode()) >= MIN_SEARCHED_LENGTH:
                text_ids |= {text.id for form in encoded_forms(response) for text in ledger.texts_containing(form)}
        for text_id in sorted(text_ids):
            record = ledger.record_at(text_id // MAX_TEXTS)
            if record.kind == "trace" and text_id % MAX_TEXTS == 0:
                text_ids |= {text.id for text in self._response_texts(record)}
            elif record.kind == "call":  # its reply may quote its request
                text_ids |= {text.id for text in ledger.stored_texts(record.seq, record.seq)}
        return text_ids

    def _build_fragments(self, erased: Collection[int]) -> Fragments:
        """Return fragments of the own texts, without those that other texts contain as well."""
        own = self._own.items()
        fragments = Fragments(string for number, content in own for string in self._strings_in_text(number, content))
        if fragments:
            for kind in ("task", "trace"):
                texts = self._ledger.first_texts(kind)
                fragments.discard_fragments_in(text.content for text in texts if text.id not in erased)
        return fragments

    def _strings_in_text(self, number: int, content: bytes) -> Iterator[str]:
        """Yield the strings of one of the run's texts, if it is a response, its data and the like, or a task."""
        record = self._ledger.record_at(number // MAX_TEXTS)
        place = number % MAX_TEXTS
        if record.kind == "trace" and place == 0:
            yield content.decode()
        elif record.kind == "task" or (record.kind == "trace" and place == record.content.get("about")):
            yield from iter_strings(json.loads(content))

    def _quoting_texts(self, fragments: Fragments) -> set[int]:
        """Return the texts of calls and verdicts that quote erased text, such as a reply about another response."""
        quoting = set()
        for text in self._ledger.stored_texts(1, self._ledger.count):
            if fragments.is_found_in(text.content):
                kind = self._ledger.record_at(text.id // MAX_TEXTS).kind
                if kind == "call" or (kind == "trace" and text.id % MAX_TEXTS != 0):
                    quoting.add(text.id)
        return quoting

    def _erase_outside(self, fragments: Fragments, erased: Collection[int], tasks: list[str]) -> ErasureResult:
        """Erase from the recording and the cache, in this order."""
        others = len(set(erased) - self._own.keys())
        config = self._run.config
        keys = self._call_keys(erased)
        calls = replies = 0
        if config.calls.record is not None and config.model != "none":
            try:
                calls = erase_calls(Path(config.calls.record), keys, fragments)
            except InputError as error:
                self._unreached.append(f"calls.record: {error}")
        try:
            replies = erase_replies(default_folder(), keys, fragments.is_found_in)
        except InputError as error:
            self._unreached.append(str(error))
        return ErasureResult(len(self._own), others, tasks, replies, calls, self._unreached)

    def _call_keys(self, erased: Collection[int]) -> set[str]:
        """Return the keys of the calls that erased texts belong to, or that led to the texts' traces and plans.

        Texts that earlier erasures of the same response or task deleted are included.
        """
        earlier = (record for record in self._ledger.records("erasure") if record.key == self._name)
        keys = set()
        for number in sorted({*erased, *(number for record in earlier for number in record.content["ids"])}):
            record = self._ledger.record_at(number // MAX_TEXTS)
            if record.kind == "call":
                keys.add(record.key)
            elif number % MAX_TEXTS == 0:
                keys |= {call["id"] for call in record.content.get("calls", ())}
        return keys
