"""The cache of replies, shared by all runs: it saves money, and no result depends on it.

Nothing is ever evicted. Only text is written, and only text is read, so that a planted pickle is never loaded
(CVE-2025-69872). Each reply is stored as JSON, after a schema version and a SHA-256 over its key and content:

    1 5891b5b5… [{"text":"…","finish":"stop"},0.00012]

The hash detects damage, not forgery; to prevent forgery, no other user may have write access to the folder.
"""

import logging
import os
import sqlite3
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import diskcache  # type: ignore[import-untyped]
from diskcache.core import DBNAME, MODE_RAW  # type: ignore[import-untyped]
from pydantic import TypeAdapter

from jurygraph.errors import InputError
from jurygraph.models.request import CachedReply
from jurygraph.sources.files import close_on_error, create_private_file

CACHE_SCHEMA_VERSION = 1

_LOGGER = logging.getLogger(__name__)
_WRITE_TIMEOUT_SECONDS = 60.0
_ERASE_TIMEOUT_SECONDS = 5.0
_DISKCACHE_SETTINGS = {
    "eviction_policy": "none",
    "cull_limit": 0,
    "size_limit": 2**50,
    "sqlite_mmap_size": 0,  # mapped memory grows with the file, while most lookups are misses
    "sqlite_cache_size": 1024,  # pages of 4 kB for each thread that reads or writes; the default is 8192
    "disk_min_file_size": 2**31 - 1,
}
_CACHE_FOLDER_HINT = "set JURYGRAPH_CACHE to a folder of your own"
_CACHED_REPLY_ADAPTER = TypeAdapter(CachedReply)


def default_cache_folder() -> Path:
    """Return `$JURYGRAPH_CACHE`, else `jurygraph/replies` in the user's cache folder. Raises `InputError` if none."""
    configured_cache_folder = os.environ.get("JURYGRAPH_CACHE")
    if configured_cache_folder:
        return Path(configured_cache_folder)
    caches_folder = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if (
        not caches_folder.is_absolute()
    ):  # the XDG specification requires that relative paths are ignored
        try:
            caches_folder = Path.home() / ".cache"
        except RuntimeError:
            raise InputError(
                f"the user has no home folder for a cache; {_CACHE_FOLDER_HINT}"
            ) from None
    return caches_folder / "jurygraph" / "replies"


class Cache:
    """Replies by the digests of their requests. Threads and processes may share a folder.

    A row that is damaged, planted, or of another schema version is a miss. Failures to read or store are logged: the
    first of each kind as a warning, later ones for debugging.
    """

    def __init__(self, folder: Path) -> None:
        """Open the cache in a folder, in which `~` and `$NAME` are expanded.

        A missing folder is created for this user alone. Raises `InputError` if it is a file, cannot be written, or if
        other users have write access.
        """
        expanded_path = os.path.expandvars(
            os.path.expanduser(folder)
        )  # else diskcache does it later
        self.folder = Path(expanded_path).absolute()
        self._logged: set[str] = set()
        _prepare_cache_folder(self.folder)
        try:
            self._rows = _PlainTextCache(self.folder, _WRITE_TIMEOUT_SECONDS)
        except (sqlite3.Error, diskcache.Timeout, ValueError) as error:
            raise InputError(
                f"{self.folder}: cannot be used as a cache ({error}); delete it if it is damaged, or "
                f"{_CACHE_FOLDER_HINT}"
            ) from None

    def get(self, key: str) -> CachedReply | None:
        """Return the stored reply to a request; None if there is none that can be trusted."""
        try:
            value = self._rows.get(key)
            if value is None:
                return None
            content = _content_without_digest(value)
            if value == _prepend_digest(key, content):
                return _CACHED_REPLY_ADAPTER.validate_json(content)
        except (sqlite3.Error, ValueError):
            pass  # not logged: its text may have the content
        self._log_once(
            "a stored reply is damaged or not of this version, and the model is called again"
        )
        return None

    def put(self, replies: Mapping[str, CachedReply]) -> None:
        """Store replies together, also over old ones; the next run pays again for one that cannot be stored."""
        try:
            with self._rows.transact():
                for key, reply in replies.items():
                    try:
                        content = _CACHED_REPLY_ADAPTER.dump_json(
                            reply, exclude_defaults=True
                        ).decode()
                    except ValueError as error:  # half of a character
                        self._log_unstored_reply(error)
                    else:
                        self._rows.set(key, _prepend_digest(key, content))
        except (sqlite3.Error, diskcache.Timeout) as error:
            self._rows.close()  # diskcache leaves a failed transaction open; the next use opens a new connection
            self._log_unstored_reply(error)

    def drop(self, key: str) -> None:
        try:
            self._rows.delete(key)
        except (sqlite3.Error, diskcache.Timeout, ValueError) as error:
            self._rows.close()
            self._log_once(f"a reply of no use could not be taken out ({type(error).__name__})")

    def close(self) -> None:
        """Close the file. May be called more than once; other threads' connections end with their threads."""
        self._rows.close()

    def _log_unstored_reply(self, error: Exception) -> None:
        reason = getattr(error, "sqlite_errorname", type(error).__name__)
        self._log_once(f"a reply could not be stored ({reason}); the next run pays for it again")

    def _log_once(self, message: str) -> None:
        level = logging.DEBUG if message in self._logged else logging.WARNING
        self._logged.add(message)
        _LOGGER.log(level, "%s: %s", self.folder, message)


def erase_replies(
    folder: Path, keys: Collection[str], has_erased_text: Callable[[bytes], bool]
) -> int:
    """Delete the replies of some requests, and those that hold a text, permanently; return their number.

    The file is rewritten, so that nothing remains of them, nor of replies deleted before. Raises `InputError` if that
    is not possible.
    """
    database_path = folder / DBNAME
    if not database_path.exists():
        return 0
    try:
        with closing(_PlainTextCache(folder, _ERASE_TIMEOUT_SECONDS)) as rows:
            erased_keys = [
                key
                for key in rows
                if key in keys or _is_unusable_or_erased(has_erased_text, rows, key)
            ]
            with rows.transact():
                for key in erased_keys:
                    rows.delete(key)
        with closing(
            sqlite3.connect(database_path, timeout=_ERASE_TIMEOUT_SECONDS, isolation_level=None)
        ) as sqlite_connection:
            for step in (
                "PRAGMA wal_checkpoint(TRUNCATE)",
                "VACUUM",
                "PRAGMA wal_checkpoint(TRUNCATE)",
            ):
                result = sqlite_connection.execute(step).fetchone()
                if result is not None and result[0]:
                    raise sqlite3.OperationalError("another program is reading it")
    except (sqlite3.Error, diskcache.Timeout, ValueError) as error:
        raise InputError(
            f"{folder}: the cache could not be searched and rewritten ({error}); end the programs that use it, see "
            "that you may write to it, and give the same command again"
        ) from None
    return len(erased_keys)


def _is_unusable_or_erased(
    has_erased_text: Callable[[bytes], bool], rows: "_PlainTextCache", key: str
) -> bool:
    try:
        return has_erased_text(_content_without_digest(rows.get(key)).encode())
    except (ValueError, AttributeError):
        return True


class _PlainTextDisk(diskcache.Disk):  # type: ignore[misc]
    """A disk of plain text, that neither unpickles a planted row, nor reads or deletes the file that it names."""

    def put(self, key: object) -> tuple[object, bool]:
        return key, True

    def get(self, key: object, raw: object) -> str:
        if not raw or type(key) is not str:
            raise ValueError("a key is not text")
        return key

    def fetch(self, mode: object, filename: object, value: object, read: bool) -> str:
        if mode != MODE_RAW or filename is not None or type(value) is not str:
            raise ValueError("a row was written by another program")
        return value

    def remove(self, file_path: object) -> None:
        """Do nothing: a planted row may name any file of the user's."""


class _PlainTextCache(diskcache.Cache):  # type: ignore[misc]
    def __init__(self, folder: Path, timeout: float) -> None:
        with close_on_error(self.close):
            super().__init__(
                str(folder), timeout=timeout, disk=_PlainTextDisk, **_DISKCACHE_SETTINGS
            )


def _prepare_cache_folder(folder: Path) -> None:
    """Create the folder and its database if missing. Raises `InputError` unless the user alone owns and writes both."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_shared_file(folder, folder.stat())
        database_path = folder / DBNAME
        create_private_file(database_path)  # SQLite gives its log file the same mode
        _refuse_shared_file(database_path, database_path.lstat())
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{folder}: is a file, or lies in one; {_CACHE_FOLDER_HINT}") from None
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be written ({error.strerror}); {_CACHE_FOLDER_HINT}"
        ) from None


def _refuse_shared_file(path: Path, state: os.stat_result) -> None:
    if state.st_uid != os.geteuid():
        raise InputError(
            f"{path}: belongs to another user, who could plant replies in the cache; {_CACHE_FOLDER_HINT}"
        )
    if state.st_mode & 0o022:
        raise InputError(
            f"{path}: may be written by others, who could plant replies in the cache; `chmod go-w` it if they have "
            f"not, or {_CACHE_FOLDER_HINT}"
        )


def _prepend_digest(key: str, content: str) -> str:
    digest = sha256(f"{CACHE_SCHEMA_VERSION} {key}\n{content}".encode()).hexdigest()
    return f"{CACHE_SCHEMA_VERSION} {digest} {content}"


def _content_without_digest(digest_prefixed_content: str) -> str:
    return digest_prefixed_content.split(" ", 2)[-1]
