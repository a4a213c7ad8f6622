"""Write results to a path that the user named, without damage to existing files."""

import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jurygraph.errors import InputError
from jurygraph.runs.store.atomic_files import open_replacement_file, write_atomically
from jurygraph.schema.frozen_model import StrPath

_STREAM_PATH_PREFIXES = ("/dev/std", "/dev/fd/", "/proc/")
"""Beginnings of paths that lead to an open file, which another file must not replace."""


def write_output(path: StrPath, lines: Iterable[bytes]) -> None:
    """Write a file completely or not at all; symbolic links are followed. Pipes and devices are written directly.

    Raises `InputError` if nothing can be written.
    """
    existing_file_mode = _require_writable_path(path)
    with _convert_os_errors(path):
        if existing_file_mode is None or (
            stat.S_ISREG(existing_file_mode) and not str(path).startswith(_STREAM_PATH_PREFIXES)
        ):
            write_atomically(Path(os.path.realpath(path)), lines, private=False)
        else:
            with open(path, "wb") as file:
                file.writelines(lines)


def write_output_with(path: StrPath, write: Callable[[Path], None]) -> None:
    """Write a file like `write_output`, for libraries that write by themselves: `write` gets the path.

    Raises `InputError` if nothing can be written, or if the path is a pipe or a device.
    """
    existing_file_mode = _require_writable_path(path)
    if existing_file_mode is not None and not stat.S_ISREG(existing_file_mode):
        raise InputError(
            f"{path}: is not a regular file, which this format needs; name another file"
        )
    with (
        _convert_os_errors(path),
        open_replacement_file(Path(os.path.realpath(path)), private=False) as replacement,
    ):
        write(replacement)


@contextmanager
def _convert_os_errors(path: StrPath) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None


def refuse_unwritable(path: StrPath, *sources: StrPath) -> None:
    """Raise `InputError` if no file can be created at the path, or if it is a file of a run, or one of the sources.

    To be called before any work is done.
    """
    from jurygraph.runs.store.folder import LEDGER_FILE, RUN_FILE_NAMES

    target = Path(os.path.realpath(path))
    if target.name in RUN_FILE_NAMES and (target.parent / LEDGER_FILE).exists():
        raise InputError(f"{path}: is a file of the run; name another file")
    _require_writable_path(path)
    for source in sources:
        both_paths_exist = os.path.exists(source) and os.path.exists(path)
        if both_paths_exist and os.path.samefile(source, path):
            raise InputError(f"{path}: is an input file; name another file to write")


def refuse_unwritable_page(path: str, *sources: str) -> None:
    """Raise `InputError` like `refuse_unwritable`, and for a name that does not end as a page of HTML does."""
    refuse_unwritable(path, *sources)
    stream_paths = ("/dev/null", "/dev/stdout", "/dev/fd/")
    if not path.endswith((".html", ".htm")) and not path.startswith(stream_paths):
        raise InputError(f"{path}: the page is HTML; name a file that ends in .html")


def compress_lines(path: str, lines: Iterable[bytes]) -> Iterator[bytes]:
    """Return the bytes for a path: gzipped if it ends in .gz, with the same result every time."""
    if not path.endswith(".gz"):
        yield from lines
        return
    compressor = zlib.compressobj(wbits=31)  # 31: with a gzip header, which has no time
    for line in lines:
        chunk = compressor.compress(line)
        if chunk:
            yield chunk
    yield compressor.flush()


def _require_writable_path(path: StrPath) -> int | None:
    """Return the mode of an existing file, or None if a new file can be created. Raises `InputError` otherwise."""
    if not path:
        raise InputError("the name of the output file is empty; name a file")
    mode = None
    with _convert_os_errors(path), suppress(FileNotFoundError, NotADirectoryError):
        mode = os.stat(path).st_mode
    if str(path).endswith(os.sep) or (mode is not None and stat.S_ISDIR(mode)):
        raise InputError(f"{path}: is a folder; name a file in it")
    if mode is None and not os.path.isdir(os.path.dirname(os.path.realpath(path))):
        raise InputError(f"{path}: its folder does not exist; create it first")
    return mode
