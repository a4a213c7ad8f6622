"""Erase texts from a run for good: the text, its salts and every copy, so that nothing left reveals it.

The erasure is recorded in the chain; the scores of verdicts, rewards and ids are kept, and the run still verifies.
"""

import json
import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Literal, NamedTuple

from jurygraph.errors import InputError, JurygraphError
from jurygraph.messages import did_you_mean
from jurygraph.models.cache import default_folder, erase_replies
from jurygraph.runs.run import Run
from jurygraph.runs.store.chain import MAX_TEXTS, Draft, Record, Text
from jurygraph.runs.store.folder import LEDGER, discard_planning, require_run, shell_quote
from jurygraph.runs.store.packing import read_shared_lists, responses_shown
from jurygraph.runs.workflows.folder_search import (
    MIN_SEARCHED_LENGTH,
    Fragments,
    encoded_forms,
    erase_calls,
    find_copies,
    iter_strings,
    search_file,
)
from jurygraph.runs.writable_run import WritableRun
from jurygraph.safety.fence import MARK_LENGTH, fence_parts

ErasureTarget = Literal["response", "task"]


class ErasureResult(NamedTuple):
    """The result of an erasure.

    `erased` counts its own texts that were erased, `erased_in_others` other texts that contained it; `exports`
    were deleted. `replies` is the number of replies deleted from the cache, `calls` of calls deleted from the
    recording. `tasks` whose own text contains it, and `files` that contain it and are no exports, are left and listed.
    `unreached` are messages about places that could not be searched or written.
    """

    erased: int
    erased_in_others: int
    exports: list[Path]
    tasks: list[str]
    files: list[Path]
    replies: int
    calls: int
    unreached: list[str]


def erase(folder: Path, what: ErasureTarget, name: str, reason: str) -> ErasureResult:
    """Erase all texts of a response, or of a task and all responses to it.

    Raises `InputError` where there is no such response or task, or where another process writes or reads the run.
    """
    require_run(folder)
    run = WritableRun.open_for_writing(folder)
    if run is None:
        raise InputError(f"{folder}: contains no run yet, so there is nothing to erase; name a scored run")
    try:
        return _erase_from_run(run, what, name, reason)
    finally:
        run.close()


def _erase_from_run(run: Run, what: ErasureTarget, name: str, reason: str) -> ErasureResult:
    ledger = run.ledger
    if run.header.base is not None:
        base = os.path.normpath(run.folder / run.header.base.folder)
        raise InputError(f"{run.folder}: contains no texts; erase {name!r} in {base}")
    ledger.require_alone()
    own = {text.id: text.content for text in _own_texts(run, what, name)}
    copies = _find_copies(run, own)
    tasks = {record.seq: record.key for record in ledger.records("task")} if copies else {}
    kept = {text_id for text_id in copies if text_id // MAX_TEXTS in tasks and text_id not in own}
    known = {*own, *copies} - kept
    fragments = _build_fragments(run, own, known)
    erased = sorted(known | _quoting_texts(run, fragments))
    # before the ledger: once its texts are erased, the fragments to search for cannot be rebuilt
    outside = _erase_outside(run, what, name, fragments, erased)
    discard_planning(run.folder)  # it holds texts too; tasks that are still to be planned repeat their calls
    ledger.append(Draft("erasure", name, {"what": what, "reason": reason, "ids": erased}))
    ledger.erase(erased)
    ledger.commit()
    ledger.compact()
    return ErasureResult(
        erased=len(own),
        erased_in_others=len(set(erased) - set(own)),
        tasks=sorted({tasks[text_id // MAX_TEXTS] for text_id in kept}),
        **outside._asdict(),
    )


class _OutsideResult(NamedTuple):
    """The part of the result outside the ledger; the fields are those of `Erased`."""

    exports: list[Path]
    files: list[Path]
    replies: int
    calls: int
    unreached: list[str]


def _quoting_texts(run: Run, fragments: Fragments) -> set[int]:
    """Return the texts of calls and verdicts that quote erased text, such as a reply about another response."""
    quoting = set()
    for text in run.ledger.stored_texts(1, run.ledger.count):
        if fragments.is_found_in(text.content):
            kind = run.ledger.record_at(text.id // MAX_TEXTS).kind
            if kind == "call" or (kind == "trace" and text.id % MAX_TEXTS != 0):
                quoting.add(text.id)
    return quoting


def _erase_outside(
    run: Run, what: ErasureTarget, name: str, fragments: Fragments, erased: Collection[int]
) -> _OutsideResult:
    """Erase from the recording, the cache, and the exports in the run's folder, in this order."""
    unreached: list[str] = []
    keys = _call_keys(run, [*erased, *_earlier_erasures(run, name)])
    calls = _erase_recorded_calls(run, keys, fragments, unreached)
    replies = _erase_cached_replies(keys, fragments, unreached)
    copies = find_copies(run, fragments)
    unreached += (f"{unsearched.path}: {unsearched.reason}" for unsearched in copies.unsearched)
    exports = [path for path in copies.exports if _remove_export(path, unreached)]
    files = [*copies.other_files, *_replayed_recording(run, fragments, unreached)]
    unreached += _describe_origin(run, what, name)
    return _OutsideResult(exports, files, replies, calls, unreached)


def _build_fragments(run: Run, own: Mapping[int, bytes], erased: Collection[int]) -> Fragments:
    """Return fragments of the texts of the response or task, without those that other texts contain as well."""
    fragments = Fragments(
        string for number, content in own.items() for string in _strings_in_text(run, number, content)
    )
    if fragments:
        skipped = set(erased)
        for kind in ("task", "trace"):
            texts = run.ledger.first_texts(kind)
            fragments.discard_fragments_in(text.content for text in texts if text.id not in skipped)
    return fragments


def _strings_in_text(run: Run, number: int, content: bytes) -> Iterator[str]:
    """Yield the strings of one of the run's texts, if it is a response, its data and labels, or a task."""
    record, place = run.ledger.record_at(number // MAX_TEXTS), number % MAX_TEXTS
    if record.kind == "trace" and place == 0:
        yield content.decode()
    elif record.kind == "task" or (record.kind == "trace" and place == record.content.get("about")):
        yield from iter_strings(json.loads(content))


def _earlier_erasures(run: Run, name: str) -> Iterator[int]:
    """Yield the texts that earlier erasures of the same response or task deleted."""
    for record in run.ledger.records("erasure"):
        if record.key == name:
            yield from record.content["ids"]


def _call_keys(run: Run, texts: Iterable[int]) -> set[str]:
    """Return the keys of the calls that texts belong to, and of the calls that led to the texts' traces and plans."""
    keys = set()
    for number in sorted(set(texts)):
        record = run.ledger.record_at(number // MAX_TEXTS)
        if record.kind == "call":
            keys.add(record.key)
        elif number % MAX_TEXTS == 0:
            keys |= {call["id"] for call in record.content.get("calls", ())}
    return keys


def _erase_recorded_calls(run: Run, keys: Collection[str], fragments: Fragments, unreached: list[str]) -> int:
    """Erase calls from the recording that the config names; return their number."""
    if run.config.calls.record is None or run.config.model == "none":
        return 0
    try:
        return erase_calls(Path(run.config.calls.record), keys, fragments)
    except InputError as error:
        unreached.append(f"calls.record: {error}")
        return 0


def _erase_cached_replies(keys: Collection[str], fragments: Fragments, unreached: list[str]) -> int:
    """Erase replies from the current cache; return their number."""
    try:
        return erase_replies(default_folder(), keys, fragments.is_found_in)
    except InputError as error:
        unreached.append(str(error))
        return 0


def _remove_export(export: Path, unreached: list[str]) -> bool:
    try:
        export.unlink()
    except OSError as error:
        unreached.append(f"{export}: is an export that cannot be removed ({error.strerror}); remove it by hand")
        return False
    return True


def _replayed_recording(run: Run, fragments: Fragments, unreached: list[str]) -> Iterator[Path]:
    """Yield the recording from which the run was replayed, if it contains a fragment."""
    kind, _, rest = run.config.model.partition(":")
    path = Path(rest.partition("#")[0])
    if kind == "replay" and fragments and path.is_file():
        holds, why = search_file(path, fragments)
        if holds:
            yield path
        elif why is not None:
            unreached.append(f"{path}: {why}")


def _describe_origin(run: Run, what: ErasureTarget, name: str) -> Iterator[str]:
    """Yield a message about the run from which this one was branched, if it holds the same response or task."""
    branch = run.header.branch
    folder = Path(os.path.normpath(run.folder.resolve() / branch.folder)) if branch is not None else None
    if folder is None or not (folder / LEDGER).is_file():
        return
    try:
        with closing(Run.open(folder)) as origin:
            record = origin.ledger.find("trace" if what == "response" else "task", name)
            is_present = record is not None and any(origin.ledger.stored_texts(record.seq, record.seq))
    except JurygraphError as error:
        yield f"the run that this one was branched from cannot be searched: {error}"
        return
    if is_present:
        command = f"`jurygraph erase {shell_quote(folder)} --{what} {shlex.quote(name)}`"
        yield f"{folder}, from which this run was branched; {command} erases it there"


def _find_copies(run: Run, own: Mapping[int, bytes]) -> set[int]:
    """Return the texts that contain the text of a response; for another response also all texts that belong to it."""
    text_ids = {
        text.id for form in _searchable_forms(_response_strings(run, own)) for text in run.ledger.texts_containing(form)
    }
    for text_id in sorted(text_ids):
        record = run.ledger.record_at(text_id // MAX_TEXTS)
        if record.kind == "trace" and text_id % MAX_TEXTS == 0:
            text_ids |= {text.id for text in _response_texts(run, record)}
        elif record.kind == "call":  # its reply may quote its request
            text_ids |= {text.id for text in run.ledger.stored_texts(record.seq, record.seq)}
    return text_ids


def _own_texts(run: Run, what: ErasureTarget, name: str) -> Iterator[Text]:
    """Yield the texts of a response or task that still exist."""
    record = run.ledger.find("trace" if what == "response" else "task", name)
    if record is None:
        hint = did_you_mean(name, run.ledger.keys("trace" if what == "response" else "task"))
        raise InputError(f"{run.folder}: there is no {what} {name!r}; {hint or f'name the id of a {what} of this run'}")
    yield from run.ledger.stored_texts(1, 1)  # the digests of the scored files
    if what == "response":
        yield from _response_texts(run, record)
        return
    yield from run.ledger.stored_texts(record.seq, record.seq)
    yield from _call_texts(run, record)  # the calls that read its profiles
    canary = run.ledger.find("canary", name)
    if canary is not None:
        yield from run.ledger.stored_texts(canary.seq, canary.seq)
        yield from _call_texts(run, canary)
    group = run.ledger.find("group", name)
    if group is not None:
        yield from run.ledger.stored_texts(group.seq, group.seq + group.content["size"])
        for trace in run.ledger.records("trace", after=group.seq, up_to=group.seq + group.content["size"]):
            yield from _call_texts(run, trace)


def _response_texts(run: Run, record: Record) -> Iterator[Text]:
    """Yield a response's own texts, its group's digest, and the texts of verdicts on others that showed it."""
    group = run.ledger.record_at(record.seq - record.content["group"])
    yield from run.ledger.stored_texts(group.seq, group.seq)
    shared = read_shared_lists(group.content)
    for trace in run.ledger.records("trace", after=group.seq, up_to=group.seq + group.content["size"]):
        text_indexes = {v.get("text") for v in trace.content["verdicts"] if record.key in responses_shown(v, shared)}
        for text in run.ledger.stored_texts(trace.seq, trace.seq):
            if trace.key == record.key or text.id % MAX_TEXTS in text_indexes:
                yield text
    yield from _call_texts(run, record)


def _call_texts(run: Run, trace: Record) -> Iterator[Text]:
    """Yield the requests and replies about a response, including those that led to no verdict."""
    records = (run.ledger.find("call", call["id"]) for call in trace.content.get("calls", ()))
    calls = {record.seq for record in records if record is not None}
    for text in run.ledger.stored_texts(trace.seq, trace.seq):
        if text.id % MAX_TEXTS == 0:
            calls |= {fenced.id // MAX_TEXTS for fenced in _fenced_texts(run, text.content.decode())}
    for seq in sorted(calls):
        if run.ledger.record_at(seq).kind == "call":
            yield from run.ledger.stored_texts(seq, seq)


def _fenced_texts(run: Run, response: str) -> Iterator[Text]:
    """Yield the texts that contain a response inside a fence with any mark."""
    before_mark, after_mark = fence_parts(response, "response")
    for after_form in encoded_forms(after_mark) - {after_mark.encode()}:
        fence = re.compile(re.escape(before_mark.encode()) + b"[0-9a-f]{%d}" % MARK_LENGTH + re.escape(after_form))
        yield from (text for text in run.ledger.texts_containing(after_form) if fence.search(text.content))


def _response_strings(run: Run, own: Mapping[int, bytes]) -> Iterator[str]:
    """Yield the texts of responses, which come first in the records of their traces."""
    for number, content in own.items():
        if number % MAX_TEXTS == 0 and run.ledger.record_at(number // MAX_TEXTS).kind == "trace":
            yield content.decode()


def _searchable_forms(texts: Iterable[str]) -> set[bytes]:
    """Return texts that are long enough to search for, as plain and JSON-escaped bytes."""
    return {form for text in texts if len(text) >= MIN_SEARCHED_LENGTH for form in encoded_forms(text)}
