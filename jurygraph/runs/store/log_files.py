"""Check that SQLite's log or journal beside a ledger is its own, before SQLite writes from it into the ledger.

SQLite takes any `-wal` or `-journal` that lies beside a database for the database's own. Where one of the two was
copied without the other, it would mix two states, or two runs.
"""

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from jurygraph.errors import TraceMismatch
from jurygraph.runs.store.chain import START, Record, link_of

Connect = Callable[[Path, str], sqlite3.Connection]

_WARN = logging.getLogger(__name__).warning
_JOURNAL = bytes.fromhex("d9d505f920a163d7")
_NOT_ABOUT_CONTENT = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}


def check_log_files(path: Path, connected: Connect) -> None:
    """Raise `TraceMismatch` where the log or the journal beside a ledger is that of another database or state.

    Warn where the ledger needs a log and none is there: it was copied without it, so its last records may be missing.
    `connected` opens a database in a mode of SQLite's.
    """
    log, journal = (path.with_name(f"{path.name}-{kind}") for kind in ("wal", "journal"))
    if _size(journal):
        _check_journal(path, journal, connected)
    elif _size(log):
        _check_log(path, log, connected)
    elif _size(path):
        with closing(connected(path, "ro")) as ledger:
            (mode,) = ledger.execute("PRAGMA journal_mode").fetchone()
        if mode == "wal" and not _size(log):
            _WARN("%s: was being written, and its log %s is not beside it; %s", path, log.name, _COPIED)


_COPIED = "if it was copied without that, its last records are missing: copy both, or wait until nobody writes the run"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _check_log(path: Path, log: Path, connected: Connect) -> None:
    """Whatever the ledger holds without its log, it has to hold with it."""
    alone = _last_without_log(path, connected)
    if alone is None:
        return
    with closing(connected(path, "ro")) as both:
        try:
            found = both.execute("SELECT link FROM records WHERE seq = ?", (alone.seq,)).fetchone()
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_ABOUT_CONTENT:
                raise
            found = None
    if found != (alone.link,):
        raise _other(path, log, "log")


def _check_journal(path: Path, journal: Path, connected: Connect) -> None:
    """A transaction that we roll back after a kill leaves the number of pages as it was, or makes the first ones."""
    with journal.open("rb") as file:
        head = file.read(28)
    if not head.startswith(_JOURNAL):
        return  # it was not begun, or is over: SQLite takes no notice of it
    pages, page_size = int.from_bytes(head[16:20]), int.from_bytes(head[24:28])
    with closing(connected(path, _ALONE)) as ledger:
        try:
            (size,), (count,) = (ledger.execute(f"PRAGMA {name}").fetchone() for name in ("page_size", "page_count"))
        except sqlite3.DatabaseError:
            return  # half-written: the journal puts it right
    new = pages == 0 and _last_without_log(path, connected) is None
    if page_size != size or not (new or pages == count):
        raise _other(path, journal, "journal")


_ALONE = "ro&immutable=1"
"""The database file as it is, without its log or journal."""


def _last_without_log(path: Path, connected: Connect) -> Record | None:
    """The last record in the database file itself, if its link proves it: a file being written may read as anything."""
    try:
        with closing(connected(path, _ALONE)) as ledger:
            rows = ledger.execute("SELECT * FROM records ORDER BY seq DESC LIMIT 2").fetchall()
            last, *before = (Record._make(row) for row in rows)
            previous = before[0].link if before else START
            return last if last.link == link_of(previous, *last[:5]) else None
    except (sqlite3.DatabaseError, ValueError, TypeError, AttributeError):
        return None


def _other(path: Path, file: Path, what: str) -> TraceMismatch:
    wrong = f"is not the {what} of the {path.name} beside it, so one of the two was copied without the other"
    how = f"copy both from the same folder, or move {file.name} away if {path.name} is to be read without it"
    return TraceMismatch(f"{file}: {wrong}; {how}")
