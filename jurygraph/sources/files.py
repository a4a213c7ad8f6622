"""Text files, line by line: plain or gzipped, or standard input, with a digest to recognize them.

Limits on the memory and disk space that one file may use reject files of next to no content, not real data.
"""

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
from gzip import GzipFile
from pathlib import Path
from typing import IO, NamedTuple, NoReturn

from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean
from jurygraph.schema import FrozenModel

LONGEST_LINE = 64 << 20
"""Most bytes of one line."""
MORE_BLANK_LINES = 100_000
"""Most blank lines of a file in excess of its lines with text."""
MAX_BLANK = 1 << 20
"""Most bytes of white space in a row, in a file that is read whole."""
MAX_RATIO, UNPACKED_FREELY = 300, 256 << 20
"""Largest ratio of unpacked to packed size of a gzip file, once it unpacks to more than `UNPACKED_FREELY` bytes."""


class LineReader:
    """Read a file line by line, and reject it if a line is too long or too many are blank.

    `number` is that of the last line read, and `size` the number of bytes read.
    """

    def __init__(self, name: str, file: IO[bytes] | GzipFile) -> None:
        """Read from the file's current position; messages call it `name`."""
        self.number = self.size = 0
        self._name = name
        self._file = file
        self._excess_blank = 0

    def read(self) -> bytes:
        """Return the next line with its end, or nothing at the end of the file.

        Raises `InputError` if the line is longer than `LONGEST_LINE`, or if the blank lines exceed those with text by
        more than `MORE_BLANK_LINES`.
        """
        line = self._file.readline(LONGEST_LINE + 1)
        if not line:
            return line
        self.number += 1
        self.size += len(line)
        if len(line) > LONGEST_LINE:
            _refuse_long_line(self._name, self.number)
        self._excess_blank += 1 if line.isspace() else -1
        if self._excess_blank > MORE_BLANK_LINES:
            problem = f"is blank, as are more than {MORE_BLANK_LINES:,} lines beyond the number of lines with text"
            raise InputError(f"{self._name}, line {self.number}: {problem}; take the blank lines out")
        return line


class UnpackedLines:
    """Check the unpacked chunks of a gzip file, so that a small file cannot fill a disk.

    `number` is that of the current line.
    """

    def __init__(self, name: str, packed: int) -> None:
        """Start a check; `packed` is the size of the gzip file in bytes."""
        self.number = 1
        self._name = name
        self._packed = packed
        self._size = self._line = 0

    def check(self, chunk: bytes) -> bytes:
        """Return the next chunk. Raises `InputError` for a line that is too long, and for a ratio that is too large."""
        self._size += len(chunk)
        newlines = chunk.count(b"\n")
        self.number += newlines
        self._line = len(chunk) - chunk.rfind(b"\n") - 1 if newlines else self._line + len(chunk)
        if self._line > LONGEST_LINE:
            _refuse_long_line(self._name, self.number)
        check_ratio(f"{self._name}, line {self.number}", self._packed, self._size)
        return chunk


def _refuse_long_line(name: str, number: int) -> NoReturn:
    problem = f"is longer than {_format_megabytes(LONGEST_LINE)}"
    raise InputError(f"{name}, line {number}: {problem}; write one object a line, ended with LF")


def check_ratio(where: str, packed: int, unpacked: int) -> None:
    """Raise `InputError` if a gzip file of `packed` bytes unpacks to far more than real data."""
    if unpacked > max(UNPACKED_FREELY, MAX_RATIO * packed):
        problem = (
            f"the gzip file unpacks to more than {MAX_RATIO} times its size and {_format_megabytes(UNPACKED_FREELY)}"
        )
        raise InputError(f"{where}: {problem}, as hardly any data do; if it is right, unpack it with `gunzip` first")


def read_whole(name: str, file: IO[bytes] | GzipFile, largest: int, too_large: str) -> bytearray:
    """Return the rest of a file.

    Raises `InputError` with the message `too_large` if it has more than `largest` bytes, and for a long run of white
    space.
    """
    content = bytearray()
    while chunk := file.read(MAX_BLANK):
        content += chunk
        if len(content) > largest:
            raise InputError(f"{name}: {too_large}")
        if len(chunk) == MAX_BLANK and chunk.isspace():
            problem = f"holds {_format_megabytes(MAX_BLANK)} of white space in a row"
            raise InputError(f"{name}, line {content.count(10) + 1}: {problem}; write it without")
    return content


def _format_megabytes(size: int) -> str:
    return f"{size >> 20} MB"


GZIP, UTF8_MARK = b"\x1f\x8b", b"\xef\xbb\xbf"

_PARQUET = b"PAR1"
_MIN_PARQUET = 12
_PACKED = {b"PK\x03\x04": "a ZIP archive", b"\x28\xb5\x2f\xfd": "packed with zstd", b"\xfd7zXZ\0": "packed with xz"}
_ENCODED = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def require_text(name: str, file: IO[bytes]) -> None:
    """Raise `InputError` for a file that is no text: with its format, and what to do."""
    start = os.pread(file.fileno(), 8, 0)
    if start.startswith(_PARQUET):
        state = "a Parquet file" if _is_whole_parquet(file) else "a Parquet file that is cut short"
        raise InputError(f"{name}: is {state}; give it as JSONL, gzipped or not")
    for magic, description in _PACKED.items():
        if start.startswith(magic):
            raise InputError(f"{name}: is {description}; unpack it: JSONL is read, gzipped or not")
    for mark, encoding in _ENCODED.items():
        if start.startswith(mark):
            raise InputError(f"{name}, line 1: is encoded as {encoding}; save the file as UTF-8")


def _is_whole_parquet(file: IO[bytes]) -> bool:
    size = os.fstat(file.fileno()).st_size
    return size >= _MIN_PARQUET and os.pread(file.fileno(), len(_PARQUET), size - len(_PARQUET)) == _PARQUET


_CHUNK = 1 << 20
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOENT)  # ENOENT: no folder for temporary files is usable


@contextmanager
def require_temporary_space() -> Iterator[None]:
    """Raise `InputError` if there is no space for temporary files, including SQLite's."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        if isinstance(error, OSError) and error.errno not in _NO_ROOM:
            raise
        problem = f"there is no space for temporary files ({error})"
        raise InputError(f"{problem}; set TMPDIR to a folder that has more than the files to read need") from None


def create_private_file(path: Path, hint: str) -> None:
    """Create an empty file for its owner alone, unless it exists.

    An existing file is not opened: closing it would drop the locks that this process holds on it. Raises `InputError`,
    whose message ends with the hint `hint`, if the path is a symbolic link, or not a file.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise InputError(f"{path}: is a link, or no file; {hint}") from None


class FileDigest(FrozenModel):
    """Name and SHA-256 of a file as it was read."""

    name: str
    sha256: str


class ByteRange(NamedTuple):
    """Offset and length of a line in a file, in bytes; in a gzip file, of its unpacked content."""

    offset: int
    length: int


class Line(NamedTuple):
    """One line: its number, its text without its end or a byte-order mark, and its place."""

    number: int
    text: str
    place: ByteRange


class TextFile:
    """A file of numbered lines, kept open so that later reads return the same content as the first one.

    Anything but a regular file, such as standard input (`-`), is copied to a temporary file; a gzip file is unpacked
    there.
    """

    def __init__(self, path: str | Path) -> None:
        """Open the file. Raises `InputError` if it cannot be read, or is not UTF-8 text."""
        self.name = "standard input" if str(path) == "-" else Path(path).name
        self._file = _open(path)
        try:
            self._state = _state(self._file)
            self.mark = FileDigest(name=self.name, sha256=_sha256(self._file))
            if self._read_start(len(GZIP)) == GZIP:
                self._unpack()
            require_text(self.name, self._file)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def lines(self) -> Iterator[Line]:
        """Yield every line that is not blank. Raises `InputError` beyond the limits of `sources.limits`."""
        self._file.seek(0)
        reader, offset = LineReader(self.name, self._file), 0
        while content := reader.read():
            self._refuse_changed()
            start = len(UTF8_MARK) if reader.number == 1 and content.startswith(UTF8_MARK) else 0
            if not content.isspace():
                text = self._decode(content[start:] if start else content, reader.number)
                if text and not text.isspace():
                    yield Line(reader.number, text, ByteRange(offset + start, len(content) - start))
            offset += len(content)
        self._refuse_changed()

    def read(self, place: ByteRange) -> bytes:
        """Return the bytes at a place. Raises `InputError` if the file has changed."""
        content = os.pread(self._file.fileno(), place.length, place.offset)
        self._refuse_changed()
        return content

    def _refuse(self, number: int, problem: str) -> NoReturn:
        raise InputError(f"{self.name}, line {number}: {problem}")

    def _refuse_changed(self) -> None:
        if _state(self._file) != self._state:
            raise InputError(f"{self.name}: changed while it was read; leave it as it is and score again")

    def _read_start(self, length: int) -> bytes:
        return os.pread(self._file.fileno(), length, 0)

    def _unpack(self) -> None:
        """Replace a gzip file by its content, since only that allows to read a line in its middle again."""
        with self._file as packed:
            unpacked = _spool(self._unpacked_chunks(packed))
        self._file, self._state = unpacked, _state(unpacked)

    def _unpacked_chunks(self, packed: IO[bytes]) -> Iterator[bytes]:
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

    def _decode(self, content: bytes, number: int) -> str:
        try:
            return content.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            problem = f"byte {error.start + 1} (0x{content[error.start]:02x}) is not UTF-8"
            self._refuse(number, f"{problem}; save the file as UTF-8")


def _open(path: str | Path) -> IO[bytes]:
    if str(path) == "-" and sys.stdin is None:
        raise InputError("standard input is closed; name a file, or pipe the tasks in")
    if str(path) == "-":
        return _spool(_chunks(sys.stdin.buffer))
    try:
        mode = Path(path).stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{path}: is a folder; name a file")
        file = Path(path).open("rb", buffering=_CHUNK)  # noqa: SIM115 - closed by its TextFile
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; {missing_file_hint(Path(path))}") from None
    except PermissionError:
        raise InputError(f"{path}: may not be read; ask for permission to read it") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be opened ({error}); name a file that can be read") from None
    if stat.S_ISREG(mode):
        return file
    with file:
        return _spool(_chunks(file))


def missing_file_hint(path: Path) -> str:
    """Return a hint to the file that a missing path may mean; a hidden file only if the path is hidden too."""
    with suppress(OSError):
        names = (entry.name for entry in path.parent.iterdir() if entry.is_file())
        hint = did_you_mean(
            path.name, (name for name in names if path.name.startswith(".") or not name.startswith("."))
        )
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


def _spool(chunks: Iterable[bytes]) -> IO[bytes]:
    """Write a temporary file without a name: it is deleted when it is closed, however the process ends."""
    spool = tempfile.TemporaryFile(buffering=_CHUNK)  # noqa: SIM115 - closed by its TextFile
    try:
        spool.writelines(chunks)
        spool.seek(0)
    except BaseException:
        with suppress(OSError):  # closing flushes the rest, for which there may be no space
            spool.close()
        raise
    return spool


def _state(file: IO[bytes]) -> tuple[int, int]:
    """Return values that change when a file is written: its size in bytes, and its modification time in nanoseconds."""
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns
