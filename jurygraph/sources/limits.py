"""Limits on what one file may make us read. They refuse files that hold next to nothing, and no honest data."""

from gzip import GzipFile
from typing import IO, NoReturn

from jurygraph.errors import InputError

LONGEST_LINE = 64 << 20
"""Bytes of one line."""
MORE_BLANK_LINES = 100_000
"""How many more blank lines a file may have than lines with text."""
LONGEST_BLANK = 1 << 20
"""Bytes of white space in a row, in a file that is read whole."""
LARGEST_RATIO, UNPACKED_FREELY = 300, 256 << 20
"""How many times its size a gzip file may unpack to, once that is more than so many bytes."""


class LineReader:
    """Reads a file line by line, and refuses it once a line is too long or too many are blank.

    `number` is that of the last line that was read, and `size` counts the bytes that were read.
    """

    def __init__(self, name: str, file: IO[bytes] | GzipFile) -> None:
        """Read from where the file is; `name` is what messages call it."""
        self.number = self.size = 0
        self._name = name
        self._file = file
        self._more_blank = 0

    def read(self) -> bytes:
        """Return the next line with its end, or nothing at the end of the file.

        Raises `InputError` where the line is longer than `LONGEST_LINE`, or where more than `MORE_BLANK_LINES` lines
        more are blank than have text.
        """
        line = self._file.readline(LONGEST_LINE + 1)
        if not line:
            return line
        self.number += 1
        self.size += len(line)
        if len(line) > LONGEST_LINE:
            _refuse_long_line(self._name, self.number)
        self._more_blank += 1 if line.isspace() else -1
        if self._more_blank > MORE_BLANK_LINES:
            wrong = f"is blank, as are more than {MORE_BLANK_LINES:,} lines beyond the number of lines with text"
            raise InputError(f"{self._name}, line {self.number}: {wrong}; take the blank lines out")
        return line


class UnpackedLines:
    """Watches what a gzip file unpacks to, so that a small file cannot fill a disk. `number` is that of its line."""

    def __init__(self, name: str, packed: int) -> None:
        """`packed` is the size of the gzip file in bytes."""
        self.number = 1
        self._name = name
        self._packed = packed
        self._size = self._line = 0

    def check(self, chunk: bytes) -> bytes:
        """Return the next chunk. Raises `InputError` at a line that is too long, and where the ratio is too large."""
        self._size += len(chunk)
        ends = chunk.count(b"\n")
        self.number += ends
        self._line = len(chunk) - chunk.rfind(b"\n") - 1 if ends else self._line + len(chunk)
        if self._line > LONGEST_LINE:
            _refuse_long_line(self._name, self.number)
        refuse_large_ratio(f"{self._name}, line {self.number}", self._packed, self._size)
        return chunk


def _refuse_long_line(name: str, number: int) -> NoReturn:
    wrong = f"is longer than {_megabytes(LONGEST_LINE)}"
    raise InputError(f"{name}, line {number}: {wrong}; write one object a line, ended with LF")


def refuse_large_ratio(where: str, packed: int, unpacked: int) -> None:
    """Raise `InputError` where a gzip file of `packed` bytes unpacks to far more than data do."""
    if unpacked > max(UNPACKED_FREELY, LARGEST_RATIO * packed):
        wrong = f"the gzip file unpacks to more than {LARGEST_RATIO} times its size and {_megabytes(UNPACKED_FREELY)}"
        raise InputError(f"{where}: {wrong}, as hardly any data do; if it is right, unpack it with `gunzip` first")


def read_whole(name: str, file: IO[bytes] | GzipFile, largest: int, too_large: str) -> bytearray:
    """Return what is left of a file.

    Raises `InputError`, that it is `too_large`, where it has more than `largest` bytes, and where it is blank for long.
    """
    content = bytearray()
    while chunk := file.read(LONGEST_BLANK):
        content += chunk
        if len(content) > largest:
            raise InputError(f"{name}: {too_large}")
        if len(chunk) == LONGEST_BLANK and chunk.isspace():
            wrong = f"holds {_megabytes(LONGEST_BLANK)} of white space in a row"
            raise InputError(f"{name}, line {content.count(10) + 1}: {wrong}; write it without")
    return content


def _megabytes(size: int) -> str:
    return f"{size >> 20} MB"
