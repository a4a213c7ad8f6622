"""Text files, line by line: plain or gzipped, or standard input, with what is needed to know them again."""

import gzip
import hashlib
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import IO

from jurygraph.errors import InputError
from jurygraph.schema import Noun

_GZIP, _UTF16 = b"\x1f\x8b", (b"\xff\xfe", b"\xfe\xff")


class FileMark(Noun):
    """A file as it was read: its name, and the SHA-256 of its bytes."""

    name: str
    sha256: str


class TextFile:
    """A file of numbered lines. What is no regular file, such as standard input (`-`), is spooled first."""

    def __init__(self, path: str | Path) -> None:
        self.name = "standard input" if str(path) == "-" else Path(path).name
        self._bytes = _opened(path)
        self.mark = FileMark(name=self.name, sha256=hashlib.file_digest(self._bytes, "sha256").hexdigest())

    def close(self) -> None:
        """Let go of the file."""
        self._bytes.close()

    def lines(self) -> Iterator[tuple[int, str]]:
        """Every line that is not blank, with its number; without its end, nor a byte-order mark."""
        number = 0
        try:
            for number, line in enumerate(self._unpacked(), start=1):
                text = self._decoded(line, number)
                if text.strip():
                    yield number, text
        except EOFError:
            raise InputError(f"{self.name}, after line {number}: the gzip file is cut short; copy it again") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"{self.name}, after line {number}: the gzip file is damaged ({error})") from None

    def _unpacked(self) -> BufferedIOBase:
        self._bytes.seek(0)
        packed = self._bytes.read(2) == _GZIP
        self._bytes.seek(0)
        return gzip.GzipFile(fileobj=self._bytes) if packed else self._bytes

    def _decoded(self, line: bytes, number: int) -> str:
        if number == 1 and line.startswith(_UTF16):
            raise InputError(f"{self.name}, line 1: is encoded as UTF-16; save the file as UTF-8")
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            wrong = f"byte {error.start + 1} (0x{line[error.start]:02x}) is not UTF-8"
            raise InputError(f"{self.name}, line {number}: {wrong}; save the file as UTF-8") from None
        return text.rstrip("\r\n")


def _opened(path: str | Path) -> BufferedIOBase:
    if str(path) == "-":
        return _spooled(sys.stdin.buffer)
    try:
        mode = Path(path).stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{path}: is a folder; name a file")
        file = Path(path).open("rb")  # noqa: SIM115 - closed by its TextFile
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except PermissionError:
        raise InputError(f"{path}: may not be read; ask for permission to read it") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be opened ({error})") from None
    if stat.S_ISREG(mode):
        return file
    with file:
        return _spooled(file)


def _spooled(stream: BufferedIOBase | IO[bytes]) -> BufferedIOBase:
    spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed by its TextFile
    shutil.copyfileobj(stream, spool)
    spool.seek(0)
    return spool
