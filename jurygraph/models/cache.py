"""The cache of replies, shared by all runs: it saves money, and no result depends on it.

Nothing is ever evicted. Each reply is stored as JSON in a table of SQLite, after a schema version and a SHA-256 over
its key and content:

    1 5891b5b5… [{"text":"…","finish":"stop"},0.00012]

The hash detects damage, not forgery; to prevent forgery, no other user may have write access to the folder.
"""

import logging
import os
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from jurygraph.errors import InputError
from jurygraph.models.request import Reply
from jurygraph.schema.task import NonNegative
from jurygraph.sources.files import create_private_file

DATABASE = "cache.db"
SCHEMA_VERSION = 1

_LOG = logging.getLogger(__name__)
_WRITE_TIMEOUT = 60.0  # seconds to wait while another process writes
_ERASE_TIMEOUT = 5.0
_FOLDER_HINT = "set JURYGRAPH_CACHE to a folder of your own"


class CachedReply(NamedTuple):
    """A reply, and its cost in US dollars when it was billed; None if that is not known."""

    reply: Reply
    cost: NonNegative | None


_CONTENT = TypeAdapter(CachedReply)


def default_folder() -> Path:
    """Return `$JURYGRAPH_CACHE`, else `jurygraph/replies` in the user's cache folder. Raises `InputError` if none."""
    named = os.environ.get("JURYGRAPH_CACHE")
    if named:
        return Path(named)
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not caches.is_absolute():  # the XDG specification requires that relative paths are ignored
        try:
            caches = Path.home() / ".cache"
        except RuntimeError:
            raise InputError(f"the user has no home folder for a cache; {_FOLDER_HINT}") from None
    return caches / "jurygraph" / "replies"


class Cache:
    """Replies by the digests of their requests. Threads and processes may share a folder.

    A row that is damaged, or of another schema version, is a miss. Failures to read or store are logged: the first of
    each kind as a warning, later ones for debugging.
    """

    def __init__(self, folder: Path) -> None:
        """Open the cache in a folder, in which `~` and `$NAME` are expanded.

        A missing folder is created for this user alone. Raises `InputError` if it is a file, cannot be written, or if
        other users have write access.
        """
        self.folder = Path(os.path.expandvars(os.path.expanduser(folder))).absolute()
        self._logged: set[str] = set()
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        _prepare_folder(self.folder)
        try:
            self._rows().execute("SELECT key FROM replies LIMIT 1")
        except sqlite3.Error as error:
            self.close()
            hint = f"delete it if it is damaged, or {_FOLDER_HINT}"
            raise InputError(f"{self.folder}: cannot be used as a cache ({error}); {hint}") from None

    def get(self, key: str) -> CachedReply | None:
        """Return the stored reply to a request; None if there is none that can be trusted."""
        try:
            with self._lock:
                row = self._rows().execute("SELECT value FROM replies WHERE key = ?", (key,)).fetchone()
            if row is None:
                return None
            content = str(row[0]).split(" ", 2)[-1]
            if row[0] != _seal(key, content):
                raise _UnusableRow("it is damaged, or of another schema version")
            return _CONTENT.validate_json(content)
        except (sqlite3.Error, ValueError) as error:
            self._log_once(f"a stored reply is unusable ({_describe_error(error)}); the model is called again")
            return None

    def put(self, replies: Mapping[str, CachedReply]) -> None:
        """Store replies together, also over old ones; the next run pays again for one that cannot be stored."""
        sealed = []
        for key, stored in replies.items():
            try:
                content = _CONTENT.dump_json(stored, exclude_defaults=True).decode()
                sealed.append((key, _seal(key, content)))
            except ValueError as error:
                self._log_unstored(error)
        self._change("INSERT OR REPLACE INTO replies VALUES (?, ?)", sealed, self._log_unstored)

    def drop(self, key: str) -> None:
        """Delete a reply, if there is one."""

        def log_kept(error: Exception) -> None:
            self._log_once(f"a reply of no use could not be taken out ({_describe_error(error)})")

        self._change("DELETE FROM replies WHERE key = ?", [(key,)], log_kept)

    def close(self) -> None:
        """Close the file. May be called more than once, and the cache may be used again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _rows(self) -> sqlite3.Connection:
        """Return the connection, opened when it is first needed."""
        if self._connection is None:
            self._connection = _connect(self.folder, _WRITE_TIMEOUT)
        return self._connection

    def _change(self, statement: str, rows: Sequence[tuple[str, ...]], log_error: Callable[[Exception], None]) -> None:
        """Run a statement for each row, for all of them or for none."""
        try:
            with self._lock, self._rows() as connection:
                connection.executemany(statement, rows)
        except sqlite3.Error as error:
            log_error(error)

    def _log_unstored(self, error: Exception) -> None:
        self._log_once(f"a reply could not be stored ({_describe_error(error)}); the next run pays for it again")

    def _log_once(self, message: str) -> None:
        level = logging.DEBUG if message in self._logged else logging.WARNING
        self._logged.add(message)
        _LOG.log(level, "%s: %s", self.folder, message)


def erase_replies(folder: Path, keys: Collection[str], holds: Callable[[bytes], bool]) -> int:
    """Delete the replies of some requests, and those that hold a text, permanently; return their number.

    The file is rewritten, so that nothing remains of them, nor of replies deleted before. Raises `InputError` if that
    is not possible.
    """
    if not (folder / DATABASE).exists():
        return 0
    try:
        with closing(_connect(folder, _ERASE_TIMEOUT)) as connection:
            rows = connection.execute("SELECT key, CAST(value AS BLOB) FROM replies")
            doomed = [(key,) for key, value in rows if key in keys or holds(value)]
            with connection:
                connection.executemany("DELETE FROM replies WHERE key = ?", doomed)
            for step in ("PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
                result = connection.execute(step).fetchone()
                if result is not None and result[0]:
                    raise sqlite3.OperationalError("another program is reading it")
    except sqlite3.Error as error:
        hint = "end the programs that use it, see that you may write to it, and give the same command again"
        raise InputError(f"{folder}: the cache could not be searched and rewritten ({error}); {hint}") from None
    return len(doomed)


class _UnusableRow(ValueError):
    """A row that this module did not write, or that was changed."""


def _connect(folder: Path, timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / DATABASE, timeout, check_same_thread=False)  # `Cache` has a lock of its own
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _prepare_folder(folder: Path) -> None:
    """Create the folder and its database if missing. Raises `InputError` unless the user alone owns and writes both."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_shared(folder, folder.stat())
        database = folder / DATABASE
        create_private_file(database, _FOLDER_HINT)  # SQLite gives its log file the same mode
        _refuse_shared(database, database.lstat())
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{folder}: is a file, or lies in one; {_FOLDER_HINT}") from None
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror}); {_FOLDER_HINT}") from None


def _refuse_shared(path: Path, state: os.stat_result) -> None:
    if state.st_uid != os.geteuid():
        raise InputError(f"{path}: belongs to another user, who could plant replies in the cache; {_FOLDER_HINT}")
    if state.st_mode & 0o022:
        hint = f"`chmod go-w` it if they have not, or {_FOLDER_HINT}"
        raise InputError(f"{path}: may be written by others, who could plant replies in the cache; {hint}")


def _seal(key: str, content: str) -> str:
    digest = sha256(f"{SCHEMA_VERSION} {key}\n{content}".encode()).hexdigest()
    return f"{SCHEMA_VERSION} {digest} {content}"


def _describe_error(error: Exception) -> str:
    """Describe an error without the stored content, which must not be logged."""
    if isinstance(error, _UnusableRow):
        return str(error)
    if isinstance(error, ValidationError):
        return "it is not a reply"
    return getattr(error, "sqlite_errorname", type(error).__name__)
