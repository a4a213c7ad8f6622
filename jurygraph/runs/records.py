"""A file of traces, one a line, each naming the SHA-256 of the line before it.

`previous` of a record is the SHA-256 of the bytes of the record before it, its line end left out; that of the first
is null. So the last line's SHA-256, the head, stands for the whole file.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from jurygraph.errors import TraceMismatch
from jurygraph.runs.summary import Summary
from jurygraph.schema import Trace

UNSEEN = "\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f"
"""Characters, as a regex class, that a terminal or a reader of lines may act on and a person cannot see."""

_UNSEEN = re.compile(f"[{UNSEEN}]")

Groups = Sequence[tuple[str, frozenset[str]]]
"""The id of each task, and the ids of its responses."""


class Record(NamedTuple):
    """A trace, its line without the line end, and the offset at which the next one starts."""

    trace: Trace
    line: bytes
    end: int


class TornLine(Exception):
    """The last line is not whole: a run was killed while it wrote."""


@dataclass
class Recovered:
    """How far a file of records is whole: so many groups, bytes, and the SHA-256 of the last record in them."""

    groups: int = 0
    size: int = 0
    head: str | None = None
    summary: Summary = field(default_factory=Summary)


class RecordWriter:
    """Appends traces to a file of records, after the part of it that is whole."""

    def __init__(self, path: Path, after: Recovered) -> None:
        self._head = after.head
        self._file = path.open("ab")
        self._file.truncate(after.size)

    def append(self, traces: Sequence[Trace]) -> None:
        """Write a group of traces; all of it has left this process when the call returns."""
        lines = []
        for trace in traces:
            line = line_of(trace.model_copy(update={"previous": self._head}))
            self._head = hashlib.sha256(line).hexdigest()
            lines.append(line + b"\n")
        self._file.write(b"".join(lines))
        self._file.flush()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def line_of(trace: Trace) -> bytes:
    """A trace as one line of JSON, without its end. Unseen characters stand as escapes, so that it can be printed."""
    text = trace.model_dump_json()
    return _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], text).encode()


def read_records(path: Path) -> Iterator[Record]:
    """Every whole record.

    Raises `TraceMismatch` where a record is not what was written, and `TornLine` at the end if the last is not whole.
    """
    end, head, size = 0, None, path.stat().st_size
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            end += len(line)
            content = line.removesuffix(b"\n")
            trace = None if content is line else _trace(content)
            if trace is None and end >= size:
                raise TornLine
            if trace is None:
                raise TraceMismatch(f"{path}, line {number}: is no trace; it has been changed")
            if trace.previous != head:
                wrong = "does not follow the line before it; one of them has been changed or lost"
                raise TraceMismatch(f"{path}, line {number}: {wrong}")
            yield Record(trace, content, end)
            head = hashlib.sha256(content).hexdigest()


def recover(path: Path, groups: Groups) -> Recovered:
    """How much of a file can be kept: a torn line, and a group that is not whole, are to be written again."""
    kept = Recovered()
    with suppress(TornLine):
        for group in _whole_groups(path, groups):
            kept.groups += 1
            kept.size, kept.head = group[-1].end, hashlib.sha256(group[-1].line).hexdigest()
            for record in group:
                kept.summary.add(record.trace)
    return kept


def _whole_groups(path: Path, groups: Groups) -> Iterator[list[Record]]:
    records = read_records(path)
    for task_id, responses in groups:
        group = list(islice(records, len(responses)))
        if len(group) < len(responses):
            return
        if {(r.trace.task_id, r.trace.response_id) for r in group} != {(task_id, name) for name in responses}:
            raise TraceMismatch(f"{path}: the traces of task {task_id!r} are not those of its responses")
        yield group


def _trace(content: bytes) -> Trace | None:
    try:
        return Trace.model_validate_json(content)
    except ValidationError:
        return None
