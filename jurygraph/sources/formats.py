"""Recognize the format of a file that is not UTF-8 text, by its first bytes."""

import os
from typing import IO

from jurygraph.errors import InputError

GZIP, UTF8_MARK = b"\x1f\x8b", b"\xef\xbb\xbf"

_PARQUET = b"PAR1"
_MIN_PARQUET = 12
_PACKED = {b"PK\x03\x04": "a ZIP archive", b"\x28\xb5\x2f\xfd": "packed with zstd", b"\xfd7zXZ\0": "packed with xz"}
_ENCODED = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def require_text(name: str, file: IO[bytes]) -> None:
    """Raise `InputError` for a file that is not text: with its format, and what to do."""
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
