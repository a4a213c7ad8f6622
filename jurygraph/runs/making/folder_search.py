"""Copies of a run's texts in other files of its folder, searched piece by piece in bounded time and memory."""

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

from jurygraph.runs.making.fragments import Fragments
from jurygraph.runs.run import Run
from jurygraph.runs.store.folder import OWN

MOST_SEARCHED = 64 << 20
"""Bytes of a file that are searched, packed and unpacked."""

_PIECE = 1 << 18
_LONGEST_FIRST_LINE = 4 << 20
_LARGEST_DIRECTORY = 1 << 20
_GZIP = b"\x1f\x8b"
_ZIP_END, _ZIP_END_SIZE, _LONGEST_COMMENT = b"PK\x05\x06", 22, 1 << 16
_READ_MEMBERS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_UNREADABLE = (EOFError, OSError, zlib.error, zipfile.BadZipFile, struct.error, ValueError, RuntimeError)


class Unsearched(NamedTuple):
    """A file that may hold a text, and why that is not known."""

    path: Path
    why: str


class Copies(NamedTuple):
    """Exports of a run, other files that hold its texts, and files that could not be searched as a whole."""

    exports: list[Path]
    others: list[Path]
    unsearched: list[Unsearched]


class _NotSearchable(Exception):
    """Why a file, or a part of it, cannot be searched as a whole."""


def find_copies(run: Run, fragments: Fragments) -> Copies:
    """Find exports of a run below its folder, and other files there that hold one of the fragments.

    Traces as JSON lines and audit bundles of this run are known by their first lines; all of the run's texts are taken
    to be in them. Files that are not UTF-8, alone or packed by gzip or zip, are not searched as a whole.
    """
    found = Copies([], [], [])
    for path in _files_below(run.folder, found.unsearched):
        if path.parent == run.folder and path.name in OWN:
            continue
        if not path.is_symlink() and any(_is_export(run, line) for line in _first_lines(path)):
            found.exports.append(path)
            continue
        holds, why = search_file(path, fragments) if fragments else (False, None)
        if holds:
            found.others.append(path)
        elif why is not None:
            found.unsearched.append(Unsearched(path, why))
    return found


def search_file(path: Path, fragments: Fragments) -> tuple[bool, str | None]:
    """Return whether a file holds one of the fragments and, where none was found, why it may hold one all the same."""
    try:
        with path.open("rb") as file:
            return _search_packed(file, fragments), None
    except _NotSearchable as reason:
        return False, str(reason)
    except _UNREADABLE as error:
        return False, f"cannot be read ({getattr(error, 'strerror', None) or error or type(error).__name__})"


def _search_packed(file: IO[bytes], fragments: Fragments) -> bool:
    """Search a file as it is and, where it is no text, what is packed in it. Raises `_NotSearchable`."""
    holds, is_text, left = _search(file, fragments, MOST_SEARCHED)
    if holds or is_text:
        return holds
    for stream in _unpacked(file):
        holds, is_text, left = _search(stream, fragments, left)
        if holds:
            return True
        if not is_text:
            break
    if not is_text:
        raise _NotSearchable("is not UTF-8 text, so it cannot be searched")
    return False


def _search(stream: IO[bytes] | GzipFile, fragments: Fragments, most: int) -> tuple[bool, bool, int]:
    """Search a stream: whether it holds a fragment, whether it is text, and how many of the `most` bytes are left."""
    decoder: Any = codecs.getincrementaldecoder("utf-8")()
    is_text, tail = True, b""
    while piece := stream.read(_PIECE):
        most -= len(piece)
        if most < 0:
            raise _NotSearchable(f"holds more than {MOST_SEARCHED >> 20} MiB, of which no more was searched")
        if fragments.found_in(tail + piece):
            return True, is_text, most
        tail = (tail + piece)[-fragments.overlap :]
        is_text = is_text and _continues_text(decoder, piece)
    return False, is_text and _continues_text(decoder, b"", final=True), most


def _continues_text(decoder: Any, piece: bytes, final: bool = False) -> bool:
    try:
        decoder.decode(piece, final)
    except UnicodeDecodeError:
        return False
    return b"\0" not in piece


def _files_below(folder: Path, unsearched: list[Unsearched]) -> Iterator[Path]:
    """Every regular file below a folder, in the order of their paths; folders that are not entered are reported."""

    def report(error: OSError) -> None:
        unsearched.append(Unsearched(Path(error.filename), f"cannot be read ({error.strerror})"))

    paths: list[Path] = []
    for parent, folders, files in os.walk(folder, onerror=report):
        paths += (path for name in files if (path := Path(parent, name)).is_file())
        linked = (path for name in folders if (path := Path(parent, name)).is_symlink())
        unsearched += (Unsearched(path, "is a link to a folder, which is not searched") for path in linked)
    yield from sorted(paths)


def _unpacked(file: IO[bytes]) -> Iterator[IO[bytes] | GzipFile]:
    """What is packed in a file by gzip or zip. Raises `_NotSearchable` where it cannot be unpacked."""
    file.seek(0)
    start = file.read(4)
    file.seek(0)
    if start.startswith(_GZIP):
        with GzipFile(fileobj=file) as unpacked:
            yield unpacked
    elif start.startswith(b"PK"):
        yield from _members(file)


def _members(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """The members of a zip file, whose directory is read only where it is small."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _ZIP_END_SIZE - _LONGEST_COMMENT))
    end = file.read()
    place = end.rfind(_ZIP_END)
    if place < 0 or struct.unpack_from("<I", end, place + 12)[0] > _LARGEST_DIRECTORY:
        raise _NotSearchable("is a zip file with too many members, or a damaged one, and is not searched")
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            if entry.compress_type not in _READ_MEMBERS or entry.flag_bits & 1:
                raise _NotSearchable(f"holds {entry.filename!r}, which is encrypted or packed in another way")
            with archive.open(entry) as member:
                yield member


def _first_lines(path: Path) -> Iterator[bytes]:
    """The first line of a file and of everything that is packed in it, as far as that can be read."""
    with suppress(_NotSearchable, *_UNREADABLE), path.open("rb") as file:
        yield file.readline(_LONGEST_FIRST_LINE)
        for stream in _unpacked(file):
            yield stream.readline(_LONGEST_FIRST_LINE)


def _is_export(run: Run, line: bytes) -> bool:
    """Whether a line begins the traces of this run, or the records of its bundle."""
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
