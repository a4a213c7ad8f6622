"""Recordings: the calls of a run in a file, one JSON object per line, for a replay without a model."""

import json
import logging
import os
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Annotated, Any, NamedTuple

from pydantic import Field

from jurygraph.errors import InputError
from jurygraph.messages import Problem
from jurygraph.models.request import Reply, Request
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Id
from jurygraph.sources.files import GZIP, ByteRange, TextFile
from jurygraph.sources.json_lines import raise_line_error, read_lines

log = logging.getLogger(__name__)

_CHANGED_LINE = Problem(("key",), "is not the digest of the request", "the line was changed; record the call again")
_START = b'{"key":'
"""Start of each recorded line: a file that begins otherwise is not a recording, and is never truncated."""

_MAX_LINE = 256 << 20  # most bytes of a line


class RecordedCall(FrozenModel):
    """One call. `key` is its request's digest; `cost` is in US dollars, None if unknown."""

    key: Id
    request: Request
    reply: Reply
    cost: Annotated[float, Field(strict=True, ge=0.0, allow_inf_nan=False)] | None = None


class Recording(NamedTuple):
    """The content of a file: calls by key, and the size in bytes of their lines. A torn line follows these."""

    calls: dict[str, RecordedCall]
    size: int
    torn: bool


def read_recording(path: str | Path) -> Recording:
    """Read a recording. Raises `InputError` with file and line if a line is not a call, or was changed afterwards.

    A last line without an end that is not valid JSON is torn: the writing process was killed.
    """
    calls: dict[str, RecordedCall] = {}
    size = 0
    with closing(TextFile(path)) as file:
        try:
            for line, call in read_lines(file, RecordedCall):
                if call.key != call.request.digest:
                    raise_line_error(file.name, line.number, _CHANGED_LINE)
                calls.setdefault(call.key, call)
                size = sum(line.place)
        except InputError:
            if not _is_torn(file.read(ByteRange(size, _MAX_LINE))):
                raise
            return Recording(calls, size, torn=True)
    return Recording(calls, size, torn=False)


def _is_torn(rest: bytes) -> bool:
    """Return True if the bytes after the last good line are one line that was not written to its end."""
    start = rest.lstrip()[: len(_START)]
    if b"\n" in rest.lstrip() or not _START.startswith(start):
        return False
    try:
        json.loads(rest)
    except ValueError:
        return True
    return False


class Recorder:
    """Append calls to a file, each once, and each at once.

    Secrets are redacted first; a request that contained one gets the digest of the redacted request. A torn last line
    is cut off, and a warning logged. Raises `InputError` if the file is not a recording or cannot be written.
    """

    def __init__(self, path: str | Path, redactor: Redactor) -> None:
        self._path = Path(path)
        self._redactor = redactor
        recording = read_recording(path) if self._path.exists() else Recording({}, 0, torn=False)
        self._keys = set(recording.calls)
        try:
            self._file = _open_for_append(self._path)
            _truncate_to_lines(self._file, self._path, recording.size)
        except OSError as error:
            raise self._write_error(error) from None
        if recording.torn:
            log.warning("%s: the last line was torn and is cut off; its call will be recorded again", path)

    def add(self, request: Request, reply: Reply, cost: float | None) -> None:
        """Write a call, unless it is there already."""
        redacted: Any = self._redactor.redact_json([request.model_dump(mode="json"), reply.model_dump(mode="json")])
        request, reply = Request.model_validate(redacted[0]), Reply.model_validate(redacted[1])
        call = RecordedCall(key=request.digest, request=request, reply=reply, cost=cost)
        if call.key in self._keys:
            return
        try:
            if self._file.closed:
                self._file = _open_for_append(self._path)
            self._file.write(call.model_dump_json().encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise self._write_error(error) from None
        self._keys.add(call.key)

    def close(self) -> None:
        """Close the file until the next call is added; may be called more than once."""
        with suppress(OSError):  # `add` has already reported a write error
            self._file.close()

    def _write_error(self, error: OSError) -> InputError:
        return InputError(f"{self._path}: cannot be written ({error}); record to a file that can")


def _open_for_append(path: Path) -> IO[bytes]:
    """Open the file to read and append. A new one is its owner's alone, because it contains prompts."""
    return open(path, "a+b", opener=lambda name, flags: os.open(name, flags, 0o600))


def _truncate_to_lines(file: IO[bytes], path: Path, size: int) -> None:
    file.seek(0)
    if file.read(len(GZIP)) == GZIP:
        file.close()
        raise InputError(f"{path}: is gzipped; unpack it, or record to another file")
    file.truncate(size)
    file.seek(max(0, size - 1))
    if file.read(1) not in (b"\n", b""):
        file.write(b"\n")
