"""Writing a result to where somebody asked for it, without harm to what is there."""

import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from jurygraph.errors import InputError

_GZIP = 31


def deliver(path: str, lines: Iterable[bytes]) -> None:
    """Write a file, whole or not at all; a link to one is followed. A pipe or a device is written straight through.

    Raises `InputError` where nothing can be written.
    """
    from jurygraph.runs.store.drafts import write_whole

    existing = _kind(path)
    try:
        if existing is None or (stat.S_ISREG(existing) and not path.startswith(("/dev/", "/proc/"))):
            write_whole(Path(os.path.realpath(path)), lines, private=False)
        else:
            with open(path, "wb") as file:
                file.writelines(lines)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None


def deliver_file(path: str, write: Callable[[Path], None]) -> None:
    """As `deliver`, for what a library writes by itself: into a draft that then takes the place of the file."""
    from jurygraph.runs.store.drafts import draft_of

    existing = _kind(path)
    if existing is not None and not stat.S_ISREG(existing):
        raise InputError(f"{path}: is no regular file, which this form needs; name another")
    try:
        with draft_of(Path(os.path.realpath(path)), private=False) as draft:
            write(draft)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None


def refuse_inside(path: str) -> None:
    """Refuse to write over what a run is made of, this one or another. Raises `InputError`."""
    from jurygraph.runs.store.folder import LEDGER, OWN

    target = Path(os.path.realpath(path))
    if target.name in OWN and (target.parent / LEDGER).exists():
        raise InputError(f"{path}: is a file of the run itself; name another")


def refuse_source(path: str, *sources: str) -> None:
    """Refuse to write over what is read, or into a run. Raises `InputError`."""
    refuse_inside(path)
    for source in sources:
        if os.path.exists(source) and os.path.exists(path) and os.path.samefile(source, path):
            raise InputError(f"{path}: is the file that is read; name another to write")


def refuse_unwritable(path: str) -> None:
    """Refuse a place in which no file can be made, before work is done for it. Raises `InputError`."""
    refuse_inside(path)
    _kind(path)


def refuse_picture(plot: Path | None) -> None:
    """Refuse a picture that cannot be drawn or written, where one is asked for. Raises `InputError`."""
    from jurygraph.studies.plots import refuse_undrawable

    if plot is not None:
        refuse_undrawable(plot)
        refuse_unwritable(str(plot))


def packed(path: str, lines: Iterable[bytes]) -> Iterable[bytes]:
    """The lines as the file at a path holds them: gzipped where it ends in .gz, the same bytes every time."""
    return _gzipped(lines) if path.endswith(".gz") else lines


def _gzipped(lines: Iterable[bytes]) -> Iterator[bytes]:
    packing = zlib.compressobj(wbits=_GZIP)
    yield from (piece for line in lines if (piece := packing.compress(line)))
    yield packing.flush()


def _kind(path: str) -> int | None:
    """The mode of what is at the path; None where a new file can be made."""
    if not path:
        raise InputError("the file to write has an empty name; give it one")
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
