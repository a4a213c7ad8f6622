"""Erase calls from the recording of a run."""

import json
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from jurygraph.errors import InputError
from jurygraph.runs.store.drafts import write_atomically
from jurygraph.runs.workflows.fragments import Fragments

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
        number = 0
        while line := file.readline(_MAX_LINE):
            number += 1
            if len(line) == _MAX_LINE and not line.endswith(b"\n"):
                long = f"has more than {_MAX_LINE >> 20} MiB, so it cannot be searched; remove the line by hand"
                raise InputError(f"{path}, line {number}: {long}")
            yield line, not (_key_of(line) in keys or fragments.is_found_in(line))


def _key_of(line: bytes) -> str | None:
    """Return the key of the call in a line; None where the line is not a call."""
    try:
        call = json.loads(line)
    except (ValueError, RecursionError):
        return None
    key = call.get("key") if isinstance(call, dict) else None
    return key if isinstance(key, str) else None
