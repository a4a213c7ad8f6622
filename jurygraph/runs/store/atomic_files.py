"""Write files atomically: into a replacement file with an unpredictable name, which then replaces the file."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkstemp

REPLACEMENT_FILE_GLOB = ".jurygraph-*.draft"
"""Names of replacement files; a killed writer leaves its own behind."""


def write_atomically(path: Path, content: bytes | Iterable[bytes], private: bool = True) -> None:
    """Write a file so that it is never visible half-written. Raises `OSError` with the name of the file.

    A `private` file can be read by its owner only; any other has the mode of the file it replaces, or the default.
    """
    with open_replacement_file(path, private) as replacement, replacement.open("r+b") as file:
        file.writelines([content] if isinstance(content, bytes) else content)


@contextmanager
def open_replacement_file(path: Path, private: bool) -> Iterator[Path]:
    """Yield a new, empty file that replaces another one at the end, or is removed if an error is raised."""
    prefix, _, suffix = REPLACEMENT_FILE_GLOB.partition("*")
    replacement = None
    try:
        file_descriptor, name = mkstemp(suffix, prefix, path.parent)
        replacement = Path(name)
        try:
            yield replacement
            os.fsync(file_descriptor)
        finally:
            os.close(file_descriptor)
        if not private:
            replacement.chmod(_file_permission_bits(path))
        replacement.replace(path)
    except OSError as error:
        # the error names the replacement file, or no file if the disk is full
        error.filename = str(path)
        error.filename2 = None
        raise
    finally:
        if replacement is not None:
            replacement.unlink(missing_ok=True)


def _file_permission_bits(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        umask = os.umask(0o077)  # the umask can only be read by setting it
        os.umask(umask)
        return 0o666 & ~umask
