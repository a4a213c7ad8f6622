"""Calls that a run recorded in a file, taken out of it again."""

import json
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from jurygraph.errors import InputError
from jurygraph.runs.making.fragments import Fragments
from jurygraph.runs.store.drafts import write_whole

_LONGEST_LINE = 16 << 20


def erase_calls(path: Path, keys: Collection[str], fragments: Fragments) -> int:
    """Write a recording anew without the calls of some keys and those that hold a fragment; return how many these were.

    Raises `InputError` where the file cannot be read, searched or written, or is written by another program meanwhile.
    """
    try:
        target = path.resolve(strict=True)
        before = os.stat(target)
        erased = sum(not kept for _, kept in _lines(target, keys, fragments))
        if erased:
            kept_lines = (line for line, kept in _lines(target, keys, fragments) if kept)
            write_whole(target, _while_unchanged(target, before, kept_lines))
    except OSError as error:
        how = "put it back there, see that you may write to it, and give the same command again"
        raise InputError(f"{path}: the recording cannot be rewritten ({error.strerror or error}); {how}") from None
    return erased


def _while_unchanged(path: Path, before: os.stat_result, lines: Iterator[bytes]) -> Iterator[bytes]:
    """The lines. Raises `InputError` at their end where the file is no longer the one that was searched."""
    yield from lines
    now = os.stat(path)
    if (now.st_ino, now.st_size, now.st_mtime_ns) != (before.st_ino, before.st_size, before.st_mtime_ns):
        raise InputError(f"{path}: another program writes to the recording; end it, and give the same command again")


def _lines(path: Path, keys: Collection[str], fragments: Fragments) -> Iterator[tuple[bytes, bool]]:
    """Every line, and whether it is kept."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(_LONGEST_LINE):
            number += 1
            if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
                long = f"has more than {_LONGEST_LINE >> 20} MiB, so it cannot be searched; remove the line by hand"
                raise InputError(f"{path}, line {number}: {long}")
            yield line, not (_key_of(line) in keys or fragments.found_in(line))


def _key_of(line: bytes) -> str | None:
    """The key of the call that a line holds; None where it is no call."""
    try:
        call = json.loads(line)
    except (ValueError, RecursionError):
        return None
    key = call.get("key") if isinstance(call, dict) else None
    return key if isinstance(key, str) else None
