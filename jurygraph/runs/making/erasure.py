"""Taking a text out of a run for good: its words, their salts and every copy, so that what is left says nothing of it.

The record of the erasure joins the chain; verdicts' scores, rewards and ids stay, and the run still verifies.
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
from jurygraph.models.cache import default_folder, erase_replies
from jurygraph.runs.making.folder_search import find_copies, search_file
from jurygraph.runs.making.fragments import SHORTEST_SOUGHT, Fragments, forms_of, strings_of
from jurygraph.runs.making.recordings import erase_calls
from jurygraph.runs.run import Run
from jurygraph.runs.store.chain import MOST_TEXTS, Draft, Record, Text
from jurygraph.runs.store.folder import LEDGER, discard_planning, require, typed
from jurygraph.runs.store.packing import read_shared_lists, shown_in
from jurygraph.safety.fence import MARK, fence_around
from jurygraph.sources import nearest

What = Literal["response", "task"]


class Erased(NamedTuple):
    """What was erased: texts of the thing itself, texts of others in which it lay, and exports that held it.

    `replies` were deleted from the cache, `calls` from the recording. `tasks` in whose own words it lies too, and
    `files` that are no exports and hold it, are left and named. `unreached` says what could not be searched or written.
    """

    own: int
    elsewhere: int
    exports: list[Path]
    tasks: list[str]
    files: list[Path]
    replies: int
    calls: int
    unreached: list[str]


def erase(folder: Path, what: What, name: str, reason: str) -> Erased:
    """Erase everything written in a response, or in a task and all responses to it.

    Raises `InputError` where there is no such thing, or where another process writes or reads the run.
    """
    require(folder)
    run = Run.to_write(folder)
    if run is None:
        raise InputError(f"{folder}: holds no run yet, so there is nothing to erase; name a run that was scored")
    try:
        return _erased(run, what, name, reason)
    finally:
        run.close()


def _erased(run: Run, what: What, name: str, reason: str) -> Erased:
    ledger = run.ledger
    if run.header.base is not None:
        base = os.path.normpath(run.folder / run.header.base.folder)
        raise InputError(f"{run.folder}: holds no texts, they lie in {base}; erase {name!r} there")
    ledger.require_alone()
    own = {text.id: text.content for text in _own(run, what, name)}
    copies = _copies(run, own)
    tasks = {record.seq: record.key for record in ledger.records("task")} if copies else {}
    left = {one for one in copies if one // MOST_TEXTS in tasks and one not in own}
    known = {*own, *copies} - left
    fragments = _fragments(run, own, known)
    gone = sorted(known | _quoting(run, fragments))
    outside = _erased_outside(run, what, name, fragments, gone)  # first: then nobody knows what to look for
    discard_planning(run.folder)  # its texts too; what is still to be planned is asked again
    ledger.append(Draft("erasure", name, {"what": what, "reason": reason, "ids": gone}))
    ledger.erase(gone)
    ledger.commit()
    ledger.compact()
    return Erased(
        own=len(own),
        elsewhere=len(set(gone) - set(own)),
        tasks=sorted({tasks[one // MOST_TEXTS] for one in left}),
        **outside._asdict(),
    )


class _Outside(NamedTuple):
    """What was done and found outside the ledger; fields as in `Erased`."""

    exports: list[Path]
    files: list[Path]
    replies: int
    calls: int
    unreached: list[str]


def _quoting(run: Run, fragments: Fragments) -> set[int]:
    """The texts of calls and verdicts that quote what is erased, such as a reply about another response."""
    quoting = set()
    for text in run.ledger.stored_texts(1, run.ledger.count):
        if fragments.found_in(text.content):
            kind = run.ledger.at(text.id // MOST_TEXTS).kind
            if kind == "call" or (kind == "trace" and text.id % MOST_TEXTS != 0):
                quoting.add(text.id)
    return quoting


def _erased_outside(run: Run, what: What, name: str, fragments: Fragments, gone: Collection[int]) -> _Outside:
    """Erase from the recording, the cache and the exports in the run's folder, in this order."""
    unreached: list[str] = []
    keys = _keys_of_calls(run, [*gone, *_erased_before(run, name)])
    calls = _erased_calls(run, keys, fragments, unreached)
    replies = _erased_replies(keys, fragments, unreached)
    copies = find_copies(run, fragments)
    unreached += (f"{one.path}: {one.why}" for one in copies.unsearched)
    exports = [path for path in copies.exports if _removed(path, unreached)]
    files = [*copies.others, *_answering_recording(run, fragments, unreached)]
    unreached += _origin_that_holds(run, what, name)
    return _Outside(exports, files, replies, calls, unreached)


def _fragments(run: Run, own: Mapping[int, bytes], gone: Collection[int]) -> Fragments:
    """Fragments of what was written in the response or the task, but not of what others of the run wrote as well."""
    fragments = Fragments(string for number, content in own.items() for string in _words(run, number, content))
    if fragments:
        kept = set(gone)
        for kind in ("task", "trace"):
            texts = run.ledger.first_texts(kind)
            fragments.discard_those_in(text.content for text in texts if text.id not in kept)
    return fragments


def _words(run: Run, number: int, content: bytes) -> Iterator[str]:
    """What is written in a response, its data and labels, or in a task, given one of the texts of a run."""
    record, place = run.ledger.at(number // MOST_TEXTS), number % MOST_TEXTS
    if record.kind == "trace" and place == 0:
        yield content.decode()
    elif record.kind == "task" or (record.kind == "trace" and place == record.content.get("about")):
        yield from strings_of(json.loads(content))


def _erased_before(run: Run, name: str) -> Iterator[int]:
    """The texts that earlier erasures of the same response or task deleted."""
    for record in run.ledger.records("erasure"):
        if record.key == name:
            yield from record.content["ids"]


def _keys_of_calls(run: Run, texts: Iterable[int]) -> set[str]:
    """The keys of the calls to which texts belong, and of those that led to the traces and plans of which they are."""
    keys = set()
    for number in sorted(set(texts)):
        record = run.ledger.at(number // MOST_TEXTS)
        if record.kind == "call":
            keys.add(record.key)
        elif number % MOST_TEXTS == 0:
            keys |= {call["id"] for call in record.content.get("calls", ())}
    return keys


def _erased_calls(run: Run, keys: Collection[str], fragments: Fragments, unreached: list[str]) -> int:
    """Erase from the recording that the config names."""
    if run.config.calls.record is None or run.config.model == "none":
        return 0
    try:
        return erase_calls(Path(run.config.calls.record), keys, fragments)
    except InputError as error:
        unreached.append(f"calls.record: {error}")
        return 0


def _erased_replies(keys: Collection[str], fragments: Fragments, unreached: list[str]) -> int:
    """Erase from the cache that is in use now."""
    try:
        return erase_replies(default_folder(), keys, fragments.found_in)
    except InputError as error:
        unreached.append(str(error))
        return 0


def _removed(export: Path, unreached: list[str]) -> bool:
    try:
        export.unlink()
    except OSError as error:
        unreached.append(f"{export}: is an export that cannot be removed ({error.strerror}); remove it by hand")
        return False
    return True


def _answering_recording(run: Run, fragments: Fragments, unreached: list[str]) -> Iterator[Path]:
    """The recording from which a run was answered, where it holds a fragment."""
    kind, _, rest = run.config.model.partition(":")
    path = Path(rest.partition("#")[0])
    if kind == "replay" and fragments and path.is_file():
        holds, why = search_file(path, fragments)
        if holds:
            yield path
        elif why is not None:
            unreached.append(f"{path}: {why}")


def _origin_that_holds(run: Run, what: What, name: str) -> Iterator[str]:
    """The run from which this one was branched, where the same response or task is written in that."""
    branch = run.header.branch
    folder = Path(os.path.normpath(run.folder.resolve() / branch.folder)) if branch is not None else None
    if folder is None or not (folder / LEDGER).is_file():
        return
    try:
        with closing(Run.open(folder)) as origin:
            record = origin.ledger.find("trace" if what == "response" else "task", name)
            holds = record is not None and any(origin.ledger.stored_texts(record.seq, record.seq))
    except JurygraphError as error:
        yield f"the run that this one was branched from cannot be searched: {error}"
        return
    if holds:
        command = f"`jurygraph erase {typed(folder)} --{what} {shlex.quote(name)}`"
        yield f"{folder}, from which this run was branched; {command} erases it there"


def _copies(run: Run, own: Mapping[int, bytes]) -> set[int]:
    """The texts in which the words of a response lie; where that is another response, all that belongs to that too."""
    found = {text.id for form in _forms(_answers(run, own)) for text in run.ledger.containing(form)}
    for one in sorted(found):
        record = run.ledger.at(one // MOST_TEXTS)
        if record.kind == "trace" and one % MOST_TEXTS == 0:
            found |= {text.id for text in _of_response(run, record)}
        elif record.kind == "call":  # its reply may quote what its request holds
            found |= {text.id for text in run.ledger.stored_texts(record.seq, record.seq)}
    return found


def _own(run: Run, what: What, name: str) -> Iterator[Text]:
    """The texts of a response or task that are still there."""
    record = run.ledger.find("trace" if what == "response" else "task", name)
    if record is None:
        near = nearest(name, run.ledger.keys("trace" if what == "response" else "task"))
        raise InputError(f"{run.folder}: there is no {what} {name!r}; {near or f'name the id of a {what} of this run'}")
    yield from run.ledger.stored_texts(1, 1)  # what the files that were scored hash to
    if what == "response":
        yield from _of_response(run, record)
        return
    yield from run.ledger.stored_texts(record.seq, record.seq)
    yield from _of_calls(run, record)  # by which its profiles were read
    canary = run.ledger.find("canary", name)
    if canary is not None:
        yield from run.ledger.stored_texts(canary.seq, canary.seq)
        yield from _of_calls(run, canary)
    group = run.ledger.find("group", name)
    if group is not None:
        yield from run.ledger.stored_texts(group.seq, group.seq + group.content["size"])
        for trace in run.ledger.records("trace", after=group.seq, up_to=group.seq + group.content["size"]):
            yield from _of_calls(run, trace)


def _of_response(run: Run, record: Record) -> Iterator[Text]:
    """Its own, its group's digest, and what was said of others while it was shown beside them."""
    group = run.ledger.at(record.seq - record.content["group"])
    yield from run.ledger.stored_texts(group.seq, group.seq)
    shared = read_shared_lists(group.content)
    for trace in run.ledger.records("trace", after=group.seq, up_to=group.seq + group.content["size"]):
        shown = {v.get("text") for v in trace.content["verdicts"] if record.key in shown_in(v, shared)}
        for text in run.ledger.stored_texts(trace.seq, trace.seq):
            if trace.key == record.key or text.id % MOST_TEXTS in shown:
                yield text
    yield from _of_calls(run, record)


def _of_calls(run: Run, trace: Record) -> Iterator[Text]:
    """What was said to a model about a response, and what it said: also where that led to no verdict."""
    named = (run.ledger.find("call", call["id"]) for call in trace.content.get("calls", ()))
    asked = {record.seq for record in named if record is not None}
    for text in run.ledger.stored_texts(trace.seq, trace.seq):
        if text.id % MOST_TEXTS == 0:
            asked |= {found.id // MOST_TEXTS for found in _fencing(run, text.content.decode())}
    for seq in sorted(asked):
        if run.ledger.at(seq).kind == "call":
            yield from run.ledger.stored_texts(seq, seq)


def _fencing(run: Run, response: str) -> Iterator[Text]:
    """The texts in which a fence stands around a response, whatever its mark."""
    before, behind = fence_around(response, "response")
    for shown in forms_of(behind) - {behind.encode()}:
        fence = re.compile(re.escape(before.encode()) + b"[0-9a-f]{%d}" % MARK + re.escape(shown))
        yield from (found for found in run.ledger.containing(shown) if fence.search(found.content))


def _answers(run: Run, own: Mapping[int, bytes]) -> Iterator[str]:
    """The texts of responses, which come first in the records of their traces."""
    for number, content in own.items():
        if number % MOST_TEXTS == 0 and run.ledger.at(number // MOST_TEXTS).kind == "trace":
            yield content.decode()


def _forms(texts: Iterable[str]) -> set[bytes]:
    """Long texts as bytes: as they are, and as JSON has them."""
    return {form for text in texts if len(text) >= SHORTEST_SOUGHT for form in forms_of(text)}
