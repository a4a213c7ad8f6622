"""The cache of replies, shared by all runs: it saves money, and nothing else rests on it.

Nothing is ever evicted. Only JSON is written, and only JSON is read: a pickle that somebody planted is never looked at
(CVE-2025-69872). Each reply stands in an envelope with a schema version and a SHA-256 over its key and content:

    {"version":1,"sha256":"…","stored":[{"text":"…","finish":"stop"},0.00012]}

The hash shows damage, not forgery; against that the folder must be one that nobody else can write to.
"""

import logging
import os
import sqlite3
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import diskcache  # type: ignore[import-untyped]
from diskcache.core import DBNAME, DEFAULT_SETTINGS, METADATA, MODE_RAW  # type: ignore[import-untyped]
from pydantic import TypeAdapter, ValidationError

from jurygraph.errors import InputError
from jurygraph.models.asking import Reply
from jurygraph.schema.task import NonNegative
from jurygraph.sources.files import create_private_file

SCHEMA_VERSION = 1

_LOG = logging.getLogger(__name__)
_LONGEST_WAIT = 60.0
_SHORT_WAIT = 5.0
_LONGEST = 64 << 20
"""Bytes of a stored reply that are searched; a longer one was written by something else, and is deleted with them."""

_SETTINGS = {
    **DEFAULT_SETTINGS,  # all of them, so that none is taken from the file
    "eviction_policy": "none",
    "cull_limit": 0,
    "size_limit": 2**50,
    "sqlite_mmap_size": 0,  # memory that is mapped grows with the file, and most of what is looked for is not there
    "sqlite_cache_size": 1024,  # pages, of 4 kB; 8192 unless told, for each thread that reads or writes
    "disk_min_file_size": 2**31 - 1,
}
_HEAD = f'{{"version":{SCHEMA_VERSION},"sha256":"'.encode()
_MIDDLE = b'","stored":'
_START = len(_HEAD) + 2 * sha256().digest_size + len(_MIDDLE)
_ELSEWHERE = "set JURYGRAPH_CACHE to a folder of your own"


class Stored(NamedTuple):
    """A reply, and what it cost in US dollars when it was billed; None where that is not known."""

    reply: Reply
    cost: NonNegative | None


_CONTENT = TypeAdapter(Stored)


def default_folder() -> Path:
    """`$JURYGRAPH_CACHE`, else `jurygraph/replies` in the user's folder of caches. Raises `InputError` if none is."""
    named = os.environ.get("JURYGRAPH_CACHE")
    if named:
        return Path(named)
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not caches.is_absolute():  # one that is not must be ignored, says the XDG specification
        try:
            caches = Path.home() / ".cache"
        except RuntimeError:
            raise InputError(f"the user has no home folder for a cache; {_ELSEWHERE}") from None
    return caches / "jurygraph" / "replies"


class Cache:
    """Replies by the digests of their requests. Threads and processes may share a folder.

    What is damaged, planted, or of another schema version is a miss. What cannot be read or stored is told to the log:
    the first of its kind as a warning, others for debugging.
    """

    def __init__(self, folder: Path) -> None:
        """Open it; `~` and `$NAME` in the folder are expanded, and a missing one is made, for this user alone.

        Raises `InputError` where it is a file, cannot be written, or others could write to it.
        """
        self.folder = Path(os.path.expandvars(os.path.expanduser(folder))).absolute()  # or diskcache would, later
        self._told: set[str] = set()
        _claim(self.folder)
        try:
            self._rows = _Rows(self.folder)
        except (sqlite3.Error, diskcache.Timeout, ValueError) as error:
            how = f"delete it if it is damaged, or {_ELSEWHERE}"
            raise InputError(f"{self.folder}: cannot be used as a cache ({error}); {how}") from None

    def get(self, key: str) -> Stored | None:
        """What is stored for a request; None where nothing is that can be trusted."""
        try:
            value = self._rows.get(key)
            return None if value is None else _CONTENT.validate_json(_content(key, value))
        except (sqlite3.Error, ValueError) as error:
            self._tell(f"a stored reply is of no use ({_why(error)}); the model is asked again")
            return None

    def put(self, replies: Mapping[str, Stored]) -> None:
        """Store replies together, each in place of any that is there.

        What cannot be stored is paid for again by the next run.
        """
        written = {key: envelope for key, stored in replies.items() if (envelope := self._written(key, stored))}
        try:
            with self._rows.transact():
                for key, envelope in written.items():
                    self._rows.set(key, envelope)
        except (sqlite3.Error, diskcache.Timeout) as error:
            self._rows.close()  # diskcache leaves a transaction open whose commit failed; the next use connects anew
            self._tell_unstored(error)

    def drop(self, key: str) -> None:
        """Take a reply out, where there is one."""
        try:
            self._rows.delete(key)
        except (sqlite3.Error, diskcache.Timeout, ValueError) as error:
            self._rows.close()
            self._tell(f"a reply of no use could not be taken out ({_why(error)})")

    def _written(self, key: str, stored: Stored) -> bytes | None:
        try:
            return _envelope(key, _CONTENT.dump_json(stored, exclude_defaults=True))
        except ValueError as error:
            self._tell_unstored(error)
            return None

    def _tell_unstored(self, error: Exception) -> None:
        self._tell(f"a reply could not be stored ({_why(error)}); the next run pays for it again")

    def close(self) -> None:
        """Let go of the file. May be called more than once; other threads' connections end with their threads."""
        self._rows.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _tell(self, what: str) -> None:
        level = logging.DEBUG if what in self._told else logging.WARNING
        self._told.add(what)
        _LOG.log(level, "%s: %s", self.folder, what)


def erase_replies(folder: Path, keys: Collection[str], holds: Callable[[bytes], bool]) -> int:
    """Delete the replies of some requests, and those that hold a text, for good; return how many there were.

    The file is written anew, so that nothing is left of them, nor of replies that were deleted before. Raises
    `InputError` where that is not possible.
    """
    database = folder / DBNAME
    if not database.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=rw", uri=True, timeout=_SHORT_WAIT)) as rows:
            rows.isolation_level = None
            return _erase_rows(rows, keys, holds)
    except sqlite3.Error as error:
        how = "end the programs that use it, see that you may write to it, and give the same command again"
        raise InputError(f"{folder}: the cache could not be searched and written anew ({error}); {how}") from None


def _erase_rows(rows: sqlite3.Connection, keys: Collection[str], holds: Callable[[bytes], bool]) -> int:
    rows.execute("PRAGMA secure_delete = ON")
    rows.execute("BEGIN IMMEDIATE")
    stored = rows.execute("SELECT rowid, key, CASE WHEN length(value) <= ? THEN value END FROM Cache", (_LONGEST,))
    doomed = [(row,) for row, key, value in stored if key in keys or type(value) is not bytes or holds(value)]
    rows.executemany("DELETE FROM Cache WHERE rowid = ?", doomed)
    rows.execute("COMMIT")
    for step in ("PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
        busy = rows.execute(step).fetchone()
        if busy is not None and busy[0]:
            raise sqlite3.OperationalError("another program is reading it")
    return len(doomed)


class _UnusableRow(ValueError):
    """A row that this module did not write, or not so."""


class _Disk(diskcache.Disk):  # type: ignore[misc]
    """Keys are text and values are bytes, in the database itself: nothing is pickled, and no other file is touched."""

    def __init__(self, directory: str, **settings: object) -> None:
        super().__init__(directory)

    def put(self, key: object) -> tuple[str, bool]:
        if type(key) is not str:
            raise TypeError(f"a key of the cache is text, not {type(key).__name__}")
        return key, True

    def get(self, key: object, raw: object) -> str:
        if not raw or type(key) is not str:
            raise _UnusableRow("its key is no text")
        return key

    def store(self, value: object, read: bool, key: object = None) -> tuple[int, int, None, bytes]:
        if read or type(value) is not bytes:
            raise TypeError(f"a value of the cache is bytes, not {type(value).__name__}")
        return 0, MODE_RAW, None, value

    def fetch(self, mode: object, filename: object, value: object, read: bool) -> bytes:
        if mode != MODE_RAW or filename is not None or type(value) is not bytes:
            raise _UnusableRow("it was written by something else")
        return value

    def remove(self, file_path: object) -> None:
        """Never: a planted row may name any file of the user's."""


class _Rows(diskcache.Cache):  # type: ignore[misc]
    """diskcache, taking no setting from the file but its own: it would make a method of any that has its name."""

    def __init__(self, folder: Path) -> None:
        try:
            super().__init__(str(folder), timeout=_LONGEST_WAIT, disk=_Disk, **_SETTINGS)
        except BaseException:
            self.close()
            raise

    def reset(self, key: str, *value: Any, **update: Any) -> Any:
        return super().reset(key, *value, **update) if key in _SETTINGS or key in METADATA else None


def _claim(folder: Path) -> None:
    """Make the folder and its database where they are missing. Raises `InputError` unless both are the user's alone."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_shared(folder, folder.stat())
        database = folder / DBNAME
        create_private_file(database, _ELSEWHERE)  # SQLite gives its log the same mode
        _refuse_shared(database, database.lstat())
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{folder}: is no folder but a file, or lies in one; {_ELSEWHERE}") from None
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror}); {_ELSEWHERE}") from None


def _refuse_shared(path: Path, state: os.stat_result) -> None:
    if state.st_uid != os.geteuid():
        raise InputError(f"{path}: belongs to somebody else, who could plant replies in the cache; {_ELSEWHERE}")
    if state.st_mode & 0o022:
        how = f"`chmod go-w` it if they have not, or {_ELSEWHERE}"
        raise InputError(f"{path}: may be written by others, who could plant replies in the cache; {how}")


def _envelope(key: str, content: bytes) -> bytes:
    seal = sha256(f"{SCHEMA_VERSION} {key}\n".encode() + content).hexdigest()
    return b"".join((_HEAD, seal.encode(), _MIDDLE, content, b"}"))


def _content(key: str, value: bytes) -> bytes:
    """What is in an envelope. Raises `_UnusableRow` where it is not as it was written."""
    content = value[_START:-1]
    if value == _envelope(key, content):
        return content
    raise _UnusableRow("it is damaged" if value.startswith(_HEAD) else "it is of another schema version")


def _why(error: Exception) -> str:
    """Without what is stored: that belongs in no log."""
    if isinstance(error, _UnusableRow):
        return str(error)
    if isinstance(error, ValidationError):
        return "it is no reply"
    return getattr(error, "sqlite_errorname", type(error).__name__)
