"""Limits on the memory and disk space that one file may use: they reject files of next to no content, not real data."""

from gzip import GzipFile
from typing import IO, NoReturn

from jurygraph.errors import InputError

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
