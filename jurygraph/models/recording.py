"""A recording: the calls of a run in a file, one a line as JSON, so that they can be replayed without a model."""

import json
import logging
import os
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Annotated, Any, NamedTuple

from pydantic import Field

from jurygraph.errors import InputError
from jurygraph.models.asking import Reply, Request
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import Noun
from jurygraph.schema.noun import Id
from jurygraph.sources.complaint import Complaint
from jurygraph.sources.files import Place, TextFile
from jurygraph.sources.formats import GZIP
from jurygraph.sources.json_lines import read_lines, refuse

log = logging.getLogger(__name__)

_CHANGED = Complaint(("key",), "is not the digest of the request", "the line was changed; record the call again")
_START = b'{"key":'
"""How each line begins that we write: a file that begins otherwise is somebody's, and nothing is cut off it."""

_LONGEST = 256 << 20  # bytes of a line that a file may have


class Recorded(Noun):
    """One call. `key` is its request's digest; `cost` is in US dollars, None where it is unknown."""

    key: Id
    request: Request
    reply: Reply
    cost: Annotated[float, Field(strict=True, ge=0.0, allow_inf_nan=False)] | None = None


class Recording(NamedTuple):
    """What a file holds: calls by their keys, and the size in bytes of their lines. What is torn follows these."""

    calls: dict[str, Recorded]
    size: int
    torn: bool


def recorded(path: str | Path) -> Recording:
    """What a file holds. Raises `InputError` naming file and line where one is no call, or was changed afterwards.

    A last line that has no end and is no whole JSON is torn: whoever wrote it was killed.
    """
    calls: dict[str, Recorded] = {}
    size = 0
    with closing(TextFile(path)) as file:
        try:
            for line, call in read_lines(file, Recorded):
                if call.key != call.request.digest:
                    refuse(file.name, line.number, _CHANGED)
                calls.setdefault(call.key, call)
                size = sum(line.place)
        except InputError:
            if not _is_torn(file.read(Place(size, _LONGEST))):
                raise
            return Recording(calls, size, torn=True)
    return Recording(calls, size, torn=False)


def _is_torn(rest: bytes) -> bool:
    """Whether what follows the last good line is one line that was not written to its end."""
    start = rest.lstrip()[: len(_START)]
    if b"\n" in rest.lstrip() or not _START.startswith(start):
        return False
    try:
        json.loads(rest)
    except ValueError:
        return True
    return False


class Recorder:
    """Writes calls to a file behind those that it holds, each once, and each at once.

    Secrets are struck out before; a request that held one gets the digest of what is left. A torn last line is cut off,
    and a warning logged. Raises `InputError` where the file is no recording or cannot be written.
    """

    def __init__(self, path: str | Path, redactor: Redactor) -> None:
        self._path = Path(path)
        self._redactor = redactor
        held = recorded(path) if self._path.exists() else Recording({}, 0, torn=False)
        self._keys = set(held.calls)
        try:
            self._file = _opened(self._path)
            _ready(self._file, self._path, held.size)
        except OSError as error:
            raise self._unwritable(error) from None
        if held.torn:
            log.warning("%s: the last line was torn and is cut off; its call will be recorded again", path)

    def add(self, request: Request, reply: Reply, cost: float | None) -> None:
        """Write a call down, unless it is there already."""
        call = self._redacted(request, reply, cost)
        if call.key in self._keys:
            return
        try:
            if self._file.closed:
                self._file = _opened(self._path)
            self._file.write(call.model_dump_json().encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise self._unwritable(error) from None
        self._keys.add(call.key)

    def close(self) -> None:
        """Let go of the file until something is added; may be called more than once."""
        with suppress(OSError):  # what could not be written was told by `add`
            self._file.close()

    def _redacted(self, request: Request, reply: Reply, cost: float | None) -> Recorded:
        left: Any = self._redactor.value([request.model_dump(mode="json"), reply.model_dump(mode="json")])
        asked = Request.model_validate(left[0])
        return Recorded(key=asked.digest, request=asked, reply=Reply.model_validate(left[1]), cost=cost)

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(f"{self._path}: cannot be written ({error}); record to a file that can")


def _opened(path: Path) -> IO[bytes]:
    """The file, to be read and written at its end; a new one is for its owner alone, for prompts stand in it."""
    return open(path, "a+b", opener=lambda name, flags: os.open(name, flags, 0o600))


def _ready(file: IO[bytes], path: Path, size: int) -> None:
    """Have a file end with its last whole line."""
    file.seek(0)
    if file.read(len(GZIP)) == GZIP:
        file.close()
        raise InputError(f"{path}: is gzipped; unpack it, or record to another file")
    file.truncate(size)
    file.seek(max(0, size - 1))
    if file.read(1) not in (b"\n", b""):
        file.write(b"\n")
