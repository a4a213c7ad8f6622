"""Taking a text out of a run for good: its words, their salts and every copy, so that what is left says nothing of it.

The record of the erasure joins the chain; verdicts' scores, rewards and ids stay, and the run still verifies.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from jurygraph.errors import InputError
from jurygraph.runs.exported import exports_with
from jurygraph.runs.run import Run
from jurygraph.runs.store.chain import MOST_TEXTS, Draft, Record, Text
from jurygraph.runs.store.folder import discard_planning, require
from jurygraph.safety.fence import MARK, fence_around
from jurygraph.sources import nearest

What = Literal["response", "task"]

SHORTEST_SOUGHT = 20
"""A shorter text is not looked for elsewhere: that "42" also lies in another answer tells nothing."""


class Erased(NamedTuple):
    """What was erased: texts of the thing itself, texts of others in which it lay, and exports that held it.

    `tasks` in whose own words it lies too, and `files` in the folder that are no exports, are left and named.
    """

    own: int
    elsewhere: int
    exports: list[Path]
    tasks: list[str]
    files: list[Path]


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
    gone = sorted({*own, *copies} - left)
    exports, files = exports_with(run, _forms(text for content in own.values() for text in _strings(content)))
    discard_planning(run.folder)  # its texts too; what is still to be planned is asked again
    for path in exports:
        path.unlink()  # first: once the words are gone from the run, nobody knows what to look for
    ledger.append(Draft("erasure", name, {"what": what, "reason": reason, "ids": gone}))
    ledger.erase(gone)
    ledger.commit()
    ledger.compact()
    elsewhere = len(set(gone) - set(own))
    return Erased(len(own), elsewhere, exports, sorted({tasks[one // MOST_TEXTS] for one in left}), files)


def _copies(run: Run, own: Mapping[int, bytes]) -> set[int]:
    """The texts in which the words of a response lie; where that is another response, all that belongs to that too."""
    found = {text.id for form in _forms(_answers(run, own)) for text in run.ledger.containing(form)}
    for one in sorted(found):
        record = run.ledger.at(one // MOST_TEXTS)
        if record.kind == "trace" and one % MOST_TEXTS == 0:
            found |= {text.id for text in _of_response(run, record)}
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
    for trace in run.ledger.records("trace", after=group.seq, up_to=group.seq + group.content["size"]):
        shown = {v.get("text") for v in trace.content["verdicts"] if record.key in v.get("responses", ())}
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
    for shown in _as_json(behind):
        fence = re.compile(re.escape(before.encode()) + b"[0-9a-f]{%d}" % MARK + re.escape(shown))
        yield from (found for found in run.ledger.containing(shown) if fence.search(found.content))


def _answers(run: Run, own: Mapping[int, bytes]) -> Iterator[str]:
    """The texts of responses, which come first in the records of their traces."""
    for number, content in own.items():
        if number % MOST_TEXTS == 0 and run.ledger.at(number // MOST_TEXTS).kind == "trace":
            yield content.decode()


def _strings(content: bytes) -> Iterator[str]:
    """Everything that is written in a text, which may be JSON."""
    yield content.decode()
    try:
        yield from _leaves(json.loads(content))
    except ValueError:
        return


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)


def _forms(texts: Iterable[str]) -> set[bytes]:
    """Long texts as bytes: as they are, and as JSON has them."""
    forms = set()
    for text in texts:
        if len(text) >= SHORTEST_SOUGHT:
            forms |= {text.encode(), *_as_json(text)}
    return forms


def _as_json(text: str) -> set[bytes]:
    """A text as JSON has it."""
    return {json.dumps(text, ensure_ascii=plain)[1:-1].encode() for plain in (False, True)}
