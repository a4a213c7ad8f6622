"""The folder of a run: its ledger, a readable copy of its config, and its lock."""

import io
import json
import os
import socket
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO
from zipfile import is_zipfile

from jurygraph.errors import InputError
from jurygraph.messages import join_names, shell_quote
from jurygraph.runs.store.atomic_files import REPLACEMENT_FILE_GLOB
from jurygraph.schema import Config
from jurygraph.schema.frozen_model import JsonFields
from jurygraph.sources.files import close_on_error

LEDGER_FILE = "run.sqlite"
CONFIG_FILE = "config.yaml"
LOCK_FILE = "run.lock"
SEAL_FILE = "seal.json"
INDEX_FILE = "index.sqlite"
"""What `jurygraph view` searches, made from the ledger; it may be deleted at any time."""
PLANNING_FILE = "planning.sqlite"
"""Model calls made while tasks are planned, until they are in the ledger of the run."""

_SQLITE_SUFFIXES = ("", "-wal", "-shm", "-journal")
_PLANNING_DATABASE_FILES = frozenset(PLANNING_FILE + suffix for suffix in _SQLITE_SUFFIXES)
_INDEX_DATABASE_FILES = frozenset(INDEX_FILE + suffix for suffix in _SQLITE_SUFFIXES)
RUN_FILE_NAMES = frozenset(
    {
        *(LEDGER_FILE + suffix for suffix in _SQLITE_SUFFIXES),
        *_PLANNING_DATABASE_FILES,
        *_INDEX_DATABASE_FILES,
        CONFIG_FILE,
        LOCK_FILE,
        SEAL_FILE,
    }
)

_CONFIG_COMMENT = (
    "# Every setting of this run, defaults included. "
    "A copy: a change here changes nothing but is found by verify.\n"
)


def relative_folder(run: Path, other: Path | None) -> str | None:
    """Return another folder relative to that of a run, so that both can be moved together."""
    return None if other is None else os.path.relpath(other.resolve(), run.resolve())


def require_run(folder: Path) -> None:
    """Raise `InputError` unless a folder contains a run."""
    if (folder / LEDGER_FILE).is_file():
        return
    if (folder / PLANNING_FILE).is_file():
        raise missing_run_error(folder)
    if list_run_folders(folder):
        raise folder_of_runs_error(folder)
    if is_zipfile(folder) and folder.suffix.lower() != ".xlsx":  # which a table is, and no bundle
        raise InputError(
            f"{folder}: is a zip file and no run; if it is an audit bundle, "
            f"unpack it and run `python3 -I verify.py {shell_quote(folder.resolve())}` there"
        )
    state = "does not exist"
    if folder.is_dir():
        state = "contains no run"
    elif folder.exists():
        state = "is not a folder"
    raise InputError(f"{folder}: {state}; name the folder that `jurygraph score --out` made")


def missing_run_error(folder: Path) -> InputError:
    return InputError(
        f"{folder}: contains no run yet: planning was interrupted (run `jurygraph score` again), "
        "or no group is recorded so far"
    )


def list_run_folders(folder: Path) -> list[Path]:
    """Return the folders of the runs of a set, such as one for each rank, in their order; none for a single run."""
    if (folder / LEDGER_FILE).exists() or not folder.is_dir():
        return []
    members = [path for path in folder.iterdir() if (path / LEDGER_FILE).is_file()]
    return sorted(members, key=lambda path: (path.name.isdigit(), len(path.name), path.name))


def folder_of_runs_error(folder: Path) -> InputError:
    """Return the error for a set of runs, such as one for each rank, where a single one is needed."""
    names = join_names(shell_quote(member) for member in list_run_folders(folder))
    return InputError(f"{folder}: is a folder of runs; name one of them: {names}")


def refuse_links(folder: Path) -> None:
    """Raise `InputError` if one of the run's own files in a folder is a link or not a regular file."""
    for name in sorted(RUN_FILE_NAMES):
        path = folder / name
        if path.is_symlink() or (path.exists() and not path.is_file()):
            kind = "a symbolic link" if path.is_symlink() else "not a regular file"
            raise InputError(
                f"{path}: is {kind}, and a run's own files are never reached like that; "
                "put the file there"
            )


def refuse_foreign_files(folder: Path) -> None:
    """Raise `InputError` if a run cannot be created in a folder: it contains other files, or is a file itself."""
    if not folder.is_dir():
        if folder.exists():
            raise InputError(f"{folder}: is a file; name a folder with --out")
        return
    refuse_links(folder)
    config = folder / CONFIG_FILE
    is_foreign_config = config.exists() and not config.read_bytes().startswith(
        _CONFIG_COMMENT.encode()
    )
    others = [
        path
        for path in folder.iterdir()
        if path.name not in RUN_FILE_NAMES and not path.match(REPLACEMENT_FILE_GLOB)
    ]
    if is_foreign_config or others:
        members = list_run_folders(folder)[:1]  # such as that of a training's first rank
        contents = "".join(f", and contains the run {member}" for member in members)
        raise InputError(
            f"{folder}: is neither a run nor empty{contents}; name another folder with --out"
        )
    log = folder / f"{LEDGER_FILE}-wal"
    if log.exists() and log.stat().st_size:
        raise InputError(
            f"{log}: is the log of a {LEDGER_FILE} that is not there; "
            f"restore {LEDGER_FILE} next to it, or name another folder with --out"
        )


def create_folder(folder: Path) -> list[Path]:
    """Create a folder that only its owner can access; return the created folders, the innermost first.

    Raises `InputError` if it cannot be created.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be made ({error.strerror}); "
            "name a folder that you may write to with --out"
        ) from None
    return missing


def remove_discarded_run(folder: Path, made: Iterable[Path]) -> None:
    """Remove the files and folders of a new run that was discarded, except the model calls of its planning."""
    others = sorted(RUN_FILE_NAMES - _PLANNING_DATABASE_FILES - {SEAL_FILE, LEDGER_FILE, LOCK_FILE})
    # this order leaves a recognisable folder if it is interrupted
    for name in (*others, LEDGER_FILE, LOCK_FILE):
        (folder / name).unlink(missing_ok=True)
    if not (folder / PLANNING_FILE).exists():
        for path in made:
            path.rmdir()


def remove_planning_calls(folder: Path) -> None:
    """Remove the model calls of planning, once they are in the run or must not be kept."""
    for name in _PLANNING_DATABASE_FILES:
        (folder / name).unlink(missing_ok=True)


def discard_index(folder: Path) -> None:
    """Remove the index of a run, which is made again when somebody looks at the run."""
    for name in _INDEX_DATABASE_FILES:
        (folder / name).unlink(missing_ok=True)


def encode_config(config: Config) -> bytes:
    return (_CONFIG_COMMENT + to_yaml(config.model_dump(mode="json"))).encode()


_MAX_LOCK_HOLDER_LENGTH = 1_000  # characters


def acquire_lock(path: Path) -> IO[str]:
    """Lock a file until it is closed or this process is killed.

    Raises `InputError` naming the holder if another process holds the lock, or if the file cannot be written or is not
    jurygraph's, which is then left as it is. A link is not followed. It also raises where the system has no such locks.
    """
    try:
        import fcntl
    except ImportError:
        raise InputError(
            f"{path.parent}: a run is written under a POSIX lock, which Windows has not; use WSL"
        ) from None
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        number = os.open(path, flags, 0o600)
    except OSError as error:
        raise InputError(
            f"{path.parent}: cannot be written ({error.strerror}); "
            "name a folder that you may write to with --out"
        ) from None
    file = os.fdopen(number, "r+", encoding="utf-8")
    with close_on_error(file.close):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{path.parent}: is being written by {_describe_lock_holder(file)}; "
                "wait until it ends, or end it "
                "(if that is your own process: close its first writer, or name another folder; "
                "of several that record in {rank}, each needs its RANK)"
            ) from None
        except OSError as error:
            raise InputError(
                f"{path.parent}: cannot be locked there ({error.strerror}); "
                "name a folder on a local disk with --out"
            ) from None
        if not _is_file_at(path, file):
            file.close()  # the previous holder has just removed the file
            return acquire_lock(path)
        if os.fstat(number).st_size and _read_lock_holder(file) is None:
            raise InputError(
                f"{path}: has other content than a lock, "
                "so it is not jurygraph's and stays as it is; move it out of that folder"
            )
        lock_holder = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        try:
            file.truncate(0)
            # what was read has moved the position
            os.pwrite(number, json.dumps(lock_holder).encode(), 0)
        except OSError as error:
            raise InputError(
                f"{path}: cannot be written ({error.strerror}); free some space, "
                "or name another folder with --out"
            ) from None
    return file


def _is_file_at(path: Path, file: IO[str]) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def release_lock(file: IO[str]) -> None:
    file.truncate(0)
    file.close()


def _describe_lock_holder(file: IO[str]) -> str:
    """Return the process that holds the lock, which is unnamed until it has written into the lock."""
    lock_holder = _read_lock_holder(file)
    if lock_holder is None:
        return "another process"
    return "process {pid} on {host} since {since}".format_map(lock_holder)


def _read_lock_holder(file: IO[str]) -> JsonFields | None:
    """Return what a holder has written into its lock; None if that is not all of its content."""
    file.seek(0)
    try:
        # versions before this one wrote behind what a killed holder had left, and filled the gap with zeros
        lock_holder = json.loads(file.read(_MAX_LOCK_HOLDER_LENGTH).lstrip("\0"))
    except ValueError:  # also what is no UTF-8
        return None
    if isinstance(lock_holder, dict) and lock_holder.keys() == {"pid", "host", "since"}:
        return lock_holder
    return None


def to_yaml(mapping: JsonFields) -> str:
    """Return a mapping of JSON values as YAML 1.2 in block style and in the given order."""
    # Imported lazily: reading a run needs no YAML.
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.width = 1000
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # ruamel infers None
    text = io.StringIO()
    yaml.dump(mapping, text)
    return text.getvalue()
