"""Find copies of a run's texts in other files of its folder, with bounded time and memory; erase recorded calls."""

import codecs
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from gzip import GzipFile
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.runs.store.atomic_files import write_atomically
from jurygraph.runs.store.folder import RUN_FILES
from jurygraph.runs.tables import IDENTITY

MIN_SEARCHED_LENGTH = 20
"""Length in characters below which a text is not searched for: "42" occurs in other answers by chance."""

MIN_QUOTATION_LENGTH = 29
"""Length from which every quotation is found, wherever it begins: a fragment begins every tenth character."""

_STEP = MIN_QUOTATION_LENGTH - MIN_SEARCHED_LENGTH + 1
_MIN_DIFFERENT = 5
"""Number of different characters below which a fragment, such as a line of dashes, is too common to search for."""

_MAX_FRAGMENTS = 100_000
"""Limit on the number of fragments: above a million characters in total, only longer quotations are found for sure."""

_CHUNK = 1 << 18
_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))
_SPARE_BITS, _MIN_BITS = 8, 16
"""Bits of a slot number beyond those needed for the number of fragments: about one position in 256 is compared."""


class Fragments:
    """Fragments of 20 characters of some texts, in the forms in which files contain them: plain, and escaped as JSON.

    Every text of 20 characters or more is found, and so is every quotation of 29 characters or more.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._by_start: dict[bytes, set[bytes]] = {}
        long_enough = {text for text in texts if len(text) >= MIN_SEARCHED_LENGTH}
        step = max(_STEP, sum(map(len, long_enough)) // _MAX_FRAGMENTS)
        for text in long_enough:
            starts = range(0, len(text) - MIN_SEARCHED_LENGTH + 1, step)
            fragments = [text[start : start + MIN_SEARCHED_LENGTH] for start in starts]
            varied = [fragment for fragment in fragments if len(set(fragment)) >= _MIN_DIFFERENT]
            for fragment in varied or fragments[:1]:
                for form in encoded_forms(fragment, encoded_twice=True):
                    self._by_start.setdefault(form[:MIN_SEARCHED_LENGTH], set()).add(form)
        self._index()

    def _index(self) -> None:
        """Mark the slots of all fragments, so that most positions of a content can be skipped."""
        bits = max(_MIN_BITS, len(self._by_start).bit_length() + _SPARE_BITS)
        self._shift = np.uint64(64 - bits)
        self._marked = np.zeros(1 << bits, dtype=np.bool_)
        for start in self._by_start:
            self._marked[self._slots_of(start)] = True
        self.overlap = max((len(form) for forms in self._by_start.values() for form in forms), default=2) - 1

    def __bool__(self) -> bool:
        return bool(self._by_start)

    def is_found_in(self, content: bytes) -> bool:
        """Return whether a content contains one of the fragments."""
        return next(self._matches(content), None) is not None

    def discard_fragments_in(self, contents: Iterable[bytes]) -> None:
        """Drop the fragments that these contents contain, because they are not specific to the texts."""
        found = {form for content in contents for form in self._matches(content)}
        self._by_start = {start: left for start, forms in self._by_start.items() if (left := forms - found)}
        self._index()

    def _matches(self, content: bytes) -> Iterator[bytes]:
        for begin in range(0, len(content), _CHUNK) if self else ():
            block = content[begin : begin + _CHUNK + self.overlap]
            for place in np.flatnonzero(self._marked[self._slots_of(block)]).tolist():
                forms = self._by_start.get(block[place : place + MIN_SEARCHED_LENGTH], ())
                yield from (form for form in forms if block.startswith(form, place))

    def _slots_of(self, content: bytes) -> NDArray[np.uint64]:
        """Return for every position the slot number of the bytes that begin there, shape [positions]."""
        positions = len(content) - MIN_SEARCHED_LENGTH + 1
        if positions <= 0:
            return np.empty(0, dtype=np.uint64)
        offsets = (0, MIN_SEARCHED_LENGTH - 8)
        first, last = (np.ndarray((positions,), "<u8", content, offset, strides=(1,)) for offset in offsets)
        mixed: NDArray[np.uint64] = first * _FACTORS[0] ^ last * _FACTORS[1]
        return mixed >> self._shift


def encoded_forms(text: str, encoded_twice: bool = False) -> set[bytes]:
    """Return a text as bytes: plain, and as a JSON string with and without escapes for non-ASCII characters.

    `encoded_twice` adds these forms escaped once more, as in a JSON reply that is itself stored as a JSON string.
    """
    forms = {text}
    for _ in range(2 if encoded_twice else 1):
        forms |= {json.dumps(form, ensure_ascii=is_ascii)[1:-1] for form in forms for is_ascii in (False, True)}
    return {form.encode(errors="surrogatepass") for form in forms}


def iter_strings(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value; the keys of objects are not included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from iter_strings(inner)


MAX_SEARCHED_BYTES = 64 << 20
"""Limit on the bytes of a file that are searched, packed and unpacked."""

_MAX_FIRST_LINE = 4 << 20
_MAX_DIRECTORY = 1 << 20
_ZIP_END, _ZIP_END_SIZE, _MAX_COMMENT = b"PK\x05\x06", 22, 1 << 16
_UNREADABLE = (EOFError, OSError, zlib.error, zipfile.BadZipFile, struct.error, ValueError, RuntimeError)


class Copies(NamedTuple):
    """Exports of a run, other files that contain its texts, and messages about files that may contain them."""

    exports: list[Path]
    other_files: list[Path]
    unsearched: list[str]


class _NotSearchable(Exception):
    """Raised with the reason why a file, or a part of it, cannot be searched completely."""


def find_copies(run: Run, fragments: Fragments) -> Copies:
    """Return exports of a run below its folder, and other files there that contain one of the fragments.

    Traces as JSON lines, tables as CSV and audit bundles of this run are recognized by their first lines; they are
    assumed to contain all of the run's texts. Files that are not UTF-8, plain or packed by gzip or zip, are not fully
    searched.
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
            copies.unsearched.append(f"{path}: {reason}")
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
    remaining = MAX_SEARCHED_BYTES
    for stream in chain([file], _unpack(file)):
        is_found, is_text, remaining = _search(stream, fragments, remaining)
        if is_found:
            return True
        if is_text == (stream is file):  # text is not unpacked, and all that is unpacked has to be text
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


def _files_below(folder: Path, unsearched: list[str]) -> list[Path]:
    """Return every regular file below a folder, sorted by path; unread folders are added to `unsearched`."""
    paths: list[Path] = []
    errors: list[OSError] = []
    for parent, folders, files in os.walk(folder, onerror=errors.append):
        paths += (path for name in files if (path := Path(parent, name)).is_file())
        linked = (path for name in folders if (path := Path(parent, name)).is_symlink())
        unsearched += (f"{path}: is a link to a folder, which is not searched" for path in linked)
    unsearched += (f"{error.filename}: cannot be read ({error.strerror})" for error in errors)
    return sorted(paths)


def _unpack(file: IO[bytes]) -> Iterator[IO[bytes] | GzipFile]:
    """Yield the unpacked content of a gzip or zip file. Raises `_NotSearchable` where it cannot be unpacked."""
    file.seek(0)
    start = file.read(4)
    file.seek(0)
    if start.startswith(b"\x1f\x8b"):
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
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or entry.flag_bits & 1:
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
    """Return whether a line is the first of this run's traces, of a table, or of the records of its bundle."""
    if line.startswith(",".join(IDENTITY).encode() + b","):
        return True
    first = _parse_object(line)
    if first.get("kind") == "run":
        return first.get("key") == run.id
    name = first.get("response_id")
    return isinstance(name, str) and "reward" in first and run.ledger.find("trace", name) is not None


def _parse_object(line: bytes) -> Mapping[str, Any]:
    """Return the JSON object in a line; empty where there is none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


_MAX_LINE = 16 << 20


def erase_calls(path: Path, keys: Collection[str], fragments: Fragments) -> int:
    """Rewrite a recording without the calls that have one of the keys or contain a fragment; return their number.

    Raises `InputError` where the file cannot be read, searched or written, or where another program changes it.
    """
    try:
        target = path.resolve(strict=True)
        before = os.stat(target)
        erased = sum(not is_kept for _, is_kept in _select_lines(target, keys, fragments))
        if erased:
            kept_lines = (line for line, is_kept in _select_lines(target, keys, fragments) if is_kept)
            write_atomically(target, _require_unchanged(target, before, kept_lines))
    except OSError as error:
        hint = "put it back there, see that you may write to it, and give the same command again"
        raise InputError(f"{path}: the recording cannot be rewritten ({error.strerror or error}); {hint}") from None
    return erased


def _require_unchanged(path: Path, before: os.stat_result, lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines. Raises `InputError` after the last one if the file has changed since it was searched."""
    yield from lines
    current = os.stat(path)
    if (current.st_ino, current.st_size, current.st_mtime_ns) != (before.st_ino, before.st_size, before.st_mtime_ns):
        raise InputError(f"{path}: another program writes to the recording; end it, and give the same command again")


def _select_lines(path: Path, keys: Collection[str], fragments: Fragments) -> Iterator[tuple[bytes, bool]]:
    """Yield every line, and whether it is kept."""
    with path.open("rb") as file:
        for number, line in enumerate(iter(partial(file.readline, _MAX_LINE), b""), start=1):
            if len(line) == _MAX_LINE and not line.endswith(b"\n"):
                problem = f"has more than {_MAX_LINE >> 20} MiB, so it cannot be searched; remove the line by hand"
                raise InputError(f"{path}, line {number}: {problem}")
            key = _parse_object(line).get("key")
            yield line, not ((isinstance(key, str) and key in keys) or fragments.is_found_in(line))
