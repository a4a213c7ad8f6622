"""The folder of a run: its ledger, a readable copy of its config, and who writes it."""

import hashlib
import io
import os
import shlex
from collections.abc import Iterable
from pathlib import Path

from ruamel.yaml import YAML

from jurygraph.errors import InputError
from jurygraph.schema import Config

LEDGER, CONFIG, LOCK, SEAL = "run.sqlite", "config.yaml", "run.lock", "seal.json"
PLANNING = "planning.sqlite"
"""What a model has answered while tasks are planned, until the run's ledger has it."""

FIRST_FORM = "run.json"
_BESIDE = ("", "-wal", "-shm", "-journal")
_PLANNING_FILES = frozenset(PLANNING + suffix for suffix in _BESIDE)
OWN = frozenset({*(LEDGER + suffix for suffix in _BESIDE), *_PLANNING_FILES, CONFIG, LOCK, SEAL})

_HEADER = (
    "# Every setting of this run, defaults included. A copy: a change here changes nothing but is found by verify.\n"
)


def typed(folder: Path) -> str:
    """A folder as one types it in a command."""
    word = str(folder)
    return shlex.quote(f"./{word}" if word.startswith("-") else word)


def require(folder: Path) -> None:
    """Refuse a folder in which no run lies. Raises `InputError`."""
    if (folder / LEDGER).is_file():
        return
    if (folder / FIRST_FORM).is_file():
        how = f"`jurygraph migrate {typed(folder)} TASKS --out NEW` brings it over"
        raise InputError(f"{folder}: is a run of schema version 1; {how}")
    if (folder / PLANNING).is_file():
        raise InputError(
            f"{folder}: holds no run yet, it was stopped while it planned; `jurygraph score` goes on with it"
        )
    state = "holds no run" if folder.is_dir() else "is no folder" if folder.exists() else "does not exist"
    raise InputError(f"{folder}: {state}; name the folder that `jurygraph score --out` made")


def refuse_foreign(folder: Path) -> None:
    """Refuse to make a run where something else lies. Raises `InputError`."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; name a folder with --out")
    if folder.is_dir() and any(entry.name not in OWN for entry in folder.iterdir()):
        raise InputError(f"{folder}: is no run, and not empty; name another folder with --out")


def make(folder: Path) -> list[Path]:
    """Make a folder; those that were made, the innermost first. Raises `InputError` where it cannot be made."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        wrong = f"cannot be made ({error.strerror})"
        raise InputError(f"{folder}: {wrong}; name a folder that you may write to with --out") from None
    return missing


def unmake(folder: Path, made: Iterable[Path]) -> None:
    """Remove what a run that came to nothing left behind, but for the answers that its planning was given."""
    for name in OWN - _PLANNING_FILES - {SEAL}:
        (folder / name).unlink(missing_ok=True)
    if not (folder / PLANNING).exists():
        for path in made:
            path.rmdir()


def discard_planning(folder: Path) -> None:
    """Remove the answers that planning was given, once the run has them or they may not stay."""
    for name in _PLANNING_FILES:
        (folder / name).unlink(missing_ok=True)


def config_text(config: Config) -> bytes:
    """config.yaml."""
    text = io.StringIO()
    yaml = YAML()
    yaml.width = 10_000
    yaml.dump(config.model_dump(mode="json"), text)
    return (_HEADER + text.getvalue()).encode()


def digest(content: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def write_whole(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file so that it is never seen half-written. Raises `OSError` naming a file."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        error.filename = error.filename or str(path)  # a full disk names none
        raise
    finally:
        draft.unlink(missing_ok=True)
