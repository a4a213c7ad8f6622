"""Writing a result to where somebody asked for it, without harm to what is there."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from jurygraph.errors import InputError


def deliver(path: str, lines: Iterable[bytes]) -> None:
    """Write a file, whole or not at all; a link to one is followed. A pipe or a device is written straight through.

    Raises `InputError` where nothing can be written.
    """
    from jurygraph.runs import write_whole

    existing = _kind(path)
    try:
        if existing is None or stat.S_ISREG(existing):
            write_whole(Path(os.path.realpath(path)), lines)
        else:
            with open(path, "wb") as file:
                file.writelines(lines)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None


def refuse_inside(folder: Path, path: str) -> None:
    """Refuse to write over what a run is made of. Raises `InputError`."""
    if Path(os.path.realpath(path)).parent == Path(os.path.realpath(folder)) and os.path.exists(path):
        raise InputError(f"{path}: is a file of the run itself; name another")


def _kind(path: str) -> int | None:
    """The mode of what is at the path; None where a new file can be made."""
    if not path:
        raise InputError("--output '': is empty; name a file")
    mode = _mode(path)
    if path.endswith(os.sep) or (mode is not None and stat.S_ISDIR(mode)):
        raise InputError(f"{path}: is a folder; name a file in it")
    if mode is None and not os.path.isdir(os.path.dirname(os.path.realpath(path))):
        raise InputError(f"{path}: the folder that it would lie in does not exist; make it first")
    return mode


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
