"""Text files, line by line: plain or gzipped, or standard input, with what is needed to know them again."""

import errno
import gzip
import hashlib
import os
import sqlite3
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple, NoReturn

from jurygraph.errors import InputError
from jurygraph.schema import Noun
from jurygraph.sources.complaint import nearest
from jurygraph.sources.formats import GZIP, UTF8_MARK, refuse_foreign
from jurygraph.sources.limits import LineReader, UnpackedLines

_CHUNK = 1 << 20
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOENT)  # the last: no folder takes temporary files


@contextmanager
def temporary_room() -> Iterator[None]:
    """Raise `InputError` where there is no room for temporary files, SQLite's among them."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        if isinstance(error, OSError) and error.errno not in _NO_ROOM:
            raise
        wrong = f"there is no room for temporary files ({error})"
        raise InputError(f"{wrong}; set TMPDIR to a folder that has more than the files to read need") from None


def create_private_file(path: Path, how: str) -> None:
    """Create an empty file for its owner alone, where there is none.

    One that is there is not opened: closing it would drop the locks that this process holds on it. Raises `InputError`,
    which ends with `how` to mend it, where the path is a symbolic link, or something else than a file.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise InputError(f"{path}: is a link, or no file; {how}") from None


class FileMark(Noun):
    """A file as it was read: its name, and the SHA-256 of its bytes."""

    name: str
    sha256: str


class Place(NamedTuple):
    """Where a line stands in a file, in bytes; what a gzip file holds is counted unpacked."""

    offset: int
    length: int


class Line(NamedTuple):
    """One line: its number, its text without its end or a byte-order mark, and its place."""

    number: int
    text: str
    place: Place


class TextFile:
    """A file of numbered lines, kept open so that whatever is read of it later is what was read at first.

    What is no regular file, such as standard input (`-`), is copied to a temporary file; a gzip file is unpacked there.
    """

    def __init__(self, path: str | Path) -> None:
        """Open it. Raises `InputError` where it cannot be read, or holds no UTF-8 text."""
        self.name = "standard input" if str(path) == "-" else Path(path).name
        self._file = _opened(path)
        try:
            self._state = _state(self._file)
            self.mark = FileMark(name=self.name, sha256=_sha256(self._file))
            if self._start(len(GZIP)) == GZIP:
                self._unpack()
            refuse_foreign(self.name, self._file)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def lines(self) -> Iterator[Line]:
        """Every line that is not blank. Raises `InputError` beyond the limits of `sources.limits`."""
        self._file.seek(0)
        reader, offset = LineReader(self.name, self._file), 0
        while content := reader.read():
            self._refuse_changed()
            start = len(UTF8_MARK) if reader.number == 1 and content.startswith(UTF8_MARK) else 0
            if not content.isspace():
                text = self._decoded(content[start:] if start else content, reader.number)
                if text and not text.isspace():
                    yield Line(reader.number, text, Place(offset + start, len(content) - start))
            offset += len(content)
        self._refuse_changed()

    def read(self, place: Place) -> bytes:
        """The bytes at a place. Raises `InputError` where the file was changed meanwhile."""
        content = os.pread(self._file.fileno(), place.length, place.offset)
        self._refuse_changed()
        return content

    def _refuse(self, number: int, wrong: str) -> NoReturn:
        raise InputError(f"{self.name}, line {number}: {wrong}")

    def _refuse_changed(self) -> None:
        if _state(self._file) != self._state:
            raise InputError(f"{self.name}: changed while it was read; leave it as it is and score again")

    def _start(self, length: int) -> bytes:
        return os.pread(self._file.fileno(), length, 0)

    def _unpack(self) -> None:
        """Put what a gzip file holds in its place: only so can a line in its middle be read again."""
        with self._file as packed:
            unpacked = _spooled(self._unpacked(packed))
        self._file, self._state = unpacked, _state(unpacked)

    def _unpacked(self, packed: IO[bytes]) -> Iterator[bytes]:
        packed.seek(0)
        lines = UnpackedLines(self.name, self._state[0])
        try:
            with gzip.GzipFile(fileobj=packed) as content:
                while chunk := content.read1(_CHUNK):
                    yield lines.check(chunk)
            self._refuse_changed()
        except EOFError:
            self._refuse(lines.number, "the gzip file is cut short here; copy it again")
        except (gzip.BadGzipFile, zlib.error) as error:
            self._refuse(lines.number, f"the gzip file is damaged here ({error}); copy it again")

    def _decoded(self, content: bytes, number: int) -> str:
        try:
            return content.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            wrong = f"byte {error.start + 1} (0x{content[error.start]:02x}) is not UTF-8"
            self._refuse(number, f"{wrong}; save the file as UTF-8")


def _opened(path: str | Path) -> IO[bytes]:
    if str(path) == "-" and sys.stdin is None:
        raise InputError("standard input is closed; name a file, or pipe the tasks in")
    if str(path) == "-":
        return _spooled(_chunks(sys.stdin.buffer))
    try:
        mode = Path(path).stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{path}: is a folder; name a file")
        file = Path(path).open("rb", buffering=_CHUNK)  # noqa: SIM115 - closed by its TextFile
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; {meant_file(Path(path))}") from None
    except PermissionError:
        raise InputError(f"{path}: may not be read; ask for permission to read it") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be opened ({error}); name a file that can be read") from None
    if stat.S_ISREG(mode):
        return file
    with file:
        return _spooled(_chunks(file))


def meant_file(path: Path) -> str:
    """What may have been meant by a file that is not there; no hidden one, unless such a name was given."""
    with suppress(OSError):
        names = (entry.name for entry in path.parent.iterdir() if entry.is_file())
        hint = nearest(path.name, (name for name in names if path.name.startswith(".") or not name.startswith(".")))
        if hint:
            return hint
    return "name one that is there"


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield chunk


def _sha256(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    for chunk in _chunks(file):
        digest.update(chunk)
    return digest.hexdigest()


def _spooled(chunks: Iterable[bytes]) -> IO[bytes]:
    """A temporary file without a name: it is gone when it is closed, however the process ends."""
    spool = tempfile.TemporaryFile(buffering=_CHUNK)  # noqa: SIM115 - closed by its TextFile
    try:
        spool.writelines(chunks)
        spool.seek(0)
    except BaseException:
        with suppress(OSError):  # closing writes what is left, for which there may be no room
            spool.close()
        raise
    return spool


def _state(file: IO[bytes]) -> tuple[int, int]:
    """What changes when a file is written: its size in bytes, and when that was last, in nanoseconds."""
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns
