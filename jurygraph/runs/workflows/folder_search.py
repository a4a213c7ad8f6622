"""Find copies of a run's texts in other files of its folder, searching in chunks with bounded time and memory."""

import codecs
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from gzip import GzipFile
from pathlib import Path
from typing import IO, Any, NamedTuple

from jurygraph.runs.run import Run
from jurygraph.runs.store.folder import RUN_FILES
from jurygraph.runs.workflows.fragments import Fragments

MAX_SEARCHED_BYTES = 64 << 20
"""Limit on the bytes of a file that are searched, packed and unpacked."""

_CHUNK = 1 << 18
_MAX_FIRST_LINE = 4 << 20
_MAX_DIRECTORY = 1 << 20
_GZIP = b"\x1f\x8b"
_ZIP_END, _ZIP_END_SIZE, _MAX_COMMENT = b"PK\x05\x06", 22, 1 << 16
_READ_MEMBERS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_UNREADABLE = (EOFError, OSError, zlib.error, zipfile.BadZipFile, struct.error, ValueError, RuntimeError)


class UnsearchedFile(NamedTuple):
    """A file that may contain a text, and the reason why it could not be searched."""

    path: Path
    reason: str


class Copies(NamedTuple):
    """Exports of a run, other files that contain its texts, and files that could not be searched completely."""

    exports: list[Path]
    other_files: list[Path]
    unsearched: list[UnsearchedFile]


class _NotSearchable(Exception):
    """Raised with the reason why a file, or a part of it, cannot be searched completely."""


def find_copies(run: Run, fragments: Fragments) -> Copies:
    """Return exports of a run below its folder, and other files there that contain one of the fragments.

    Traces as JSON lines and audit bundles of this run are recognized by their first lines; they are assumed to contain
    all of the run's texts. Files that are not UTF-8, plain or packed by gzip or zip, are not searched completely.
    """
    copies = Copies([], [], [])
    for path in _files_below(run.folder, copies.unsearched):
        if path.parent == run.folder and path.name in RUN_FILES:
            continue
        if not path.is_symlink() and any(_is_export(run, line) for line in _first_lines(path)):
            copies.exports.append(path)
            continue
        is_found, reason = search_file(path, fragments) if fragments else (False, None)
        if is_found:
            copies.other_files.append(path)
        elif reason is not None:
            copies.unsearched.append(UnsearchedFile(path, reason))
    return copies


def search_file(path: Path, fragments: Fragments) -> tuple[bool, str | None]:
    """Return whether a file contains a fragment and, if none was found, the reason why it may still contain one."""
    try:
        with path.open("rb") as file:
            return _search_packed(file, fragments), None
    except _NotSearchable as reason:
        return False, str(reason)
    except _UNREADABLE as error:
        return False, f"cannot be read ({getattr(error, 'strerror', None) or error or type(error).__name__})"


def _search_packed(file: IO[bytes], fragments: Fragments) -> bool:
    """Search a file and, where it is not text, its unpacked content. Raises `_NotSearchable`."""
    is_found, is_text, remaining = _search(file, fragments, MAX_SEARCHED_BYTES)
    if is_found or is_text:
        return is_found
    for stream in _unpack(file):
        is_found, is_text, remaining = _search(stream, fragments, remaining)
        if is_found:
            return True
        if not is_text:
            break
    if not is_text:
        raise _NotSearchable("is not UTF-8 text, so it cannot be searched")
    return False


def _search(stream: IO[bytes] | GzipFile, fragments: Fragments, limit: int) -> tuple[bool, bool, int]:
    """Search a stream; return whether a fragment is found, whether it is text, and how many bytes of `limit` remain."""
    decoder: Any = codecs.getincrementaldecoder("utf-8")()
    is_text, tail = True, b""
    while piece := stream.read(_CHUNK):
        limit -= len(piece)
        if limit < 0:
            raise _NotSearchable(f"contains more than {MAX_SEARCHED_BYTES >> 20} MiB; the rest was not searched")
        if fragments.is_found_in(tail + piece):
            return True, is_text, limit
        tail = (tail + piece)[-fragments.overlap :]
        is_text = is_text and _continues_text(decoder, piece)
    return False, is_text and _continues_text(decoder, b"", final=True), limit


def _continues_text(decoder: Any, piece: bytes, final: bool = False) -> bool:
    try:
        decoder.decode(piece, final)
    except UnicodeDecodeError:
        return False
    return b"\0" not in piece


def _files_below(folder: Path, unsearched: list[UnsearchedFile]) -> Iterator[Path]:
    """Yield every regular file below a folder, sorted by path; unread folders are added to `unsearched`."""

    def report(error: OSError) -> None:
        unsearched.append(UnsearchedFile(Path(error.filename), f"cannot be read ({error.strerror})"))

    paths: list[Path] = []
    for parent, folders, files in os.walk(folder, onerror=report):
        paths += (path for name in files if (path := Path(parent, name)).is_file())
        linked = (path for name in folders if (path := Path(parent, name)).is_symlink())
        unsearched += (UnsearchedFile(path, "is a link to a folder, which is not searched") for path in linked)
    yield from sorted(paths)


def _unpack(file: IO[bytes]) -> Iterator[IO[bytes] | GzipFile]:
    """Yield the unpacked content of a gzip or zip file. Raises `_NotSearchable` where it cannot be unpacked."""
    file.seek(0)
    start = file.read(4)
    file.seek(0)
    if start.startswith(_GZIP):
        with GzipFile(fileobj=file) as unpacked:
            yield unpacked
    elif start.startswith(b"PK"):
        yield from _members(file)


def _members(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Yield the members of a zip file; its directory is read only where it is small."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _ZIP_END_SIZE - _MAX_COMMENT))
    end = file.read()
    place = end.rfind(_ZIP_END)
    if place < 0 or struct.unpack_from("<I", end, place + 12)[0] > _MAX_DIRECTORY:
        raise _NotSearchable("is a zip file with too many members, or a damaged one, and is not searched")
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            if entry.compress_type not in _READ_MEMBERS or entry.flag_bits & 1:
                raise _NotSearchable(f"contains {entry.filename!r}, which is encrypted or packed in another way")
            with archive.open(entry) as member:
                yield member


def _first_lines(path: Path) -> Iterator[bytes]:
    """Yield the first lines of a file and of its unpacked content, as far as they can be read."""
    with suppress(_NotSearchable, *_UNREADABLE), path.open("rb") as file:
        yield file.readline(_MAX_FIRST_LINE)
        for stream in _unpack(file):
            yield stream.readline(_MAX_FIRST_LINE)


def _is_export(run: Run, line: bytes) -> bool:
    """Return whether a line is the first of this run's traces, or of the records of its bundle."""
    try:
        first = json.loads(line)
    except (ValueError, RecursionError):
        return False
    if not isinstance(first, dict):
        return False
    if first.get("kind") == "run":
        return first.get("key") == run.id
    name = first.get("response_id")
    return isinstance(name, str) and "reward" in first and run.ledger.find("trace", name) is not None
