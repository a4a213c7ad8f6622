"""Check that SQLite's log or journal of a ledger is its own, before SQLite writes from it into the ledger.

SQLite treats any `-wal` or `-journal` file with the name of a database as belonging to it. If one of the two was copied
without the other, SQLite would mix two states, or two runs.
"""

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from jurygraph.errors import TraceMismatch
from jurygraph.runs.store.chain import FIRST_LINK, Record, link_of

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


def check_log_files(path: Path, connect: Connect) -> None:
    """Raise `TraceMismatch` if the log or the journal of a ledger belongs to another database or state.

    Logs a warning if the ledger needs a log and there is none: it was copied without it, so its last records may be
    missing. `connect` opens a database in a SQLite mode.
    """
    log, journal = (path.with_name(f"{path.name}-{kind}") for kind in ("wal", "journal"))
    if _size(journal):
        _check_journal(path, journal, connect)
    elif _size(log):
        _check_log(path, log, connect)
    elif _size(path):
        with closing(connect(path, "ro")) as ledger:
            (mode,) = ledger.execute("PRAGMA journal_mode").fetchone()
        if mode == "wal" and not _size(log):
            _WARN("%s: was being written, and its log %s is missing; %s", path, log.name, _COPIED)


_COPIED = "if it was copied without the log, its last records are missing: copy both, or wait until the run is closed"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _check_log(path: Path, log: Path, connect: Connect) -> None:
    """Raise `TraceMismatch` unless the last record of the ledger without its log is in the ledger with its log too."""
    last = _last_without_log(path, connect)
    if last is None:
        return
    with closing(connect(path, "ro")) as both:
        try:
            stored = both.execute("SELECT link FROM records WHERE seq = ?", (last.seq,)).fetchone()
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_ABOUT_CONTENT:
                raise
            stored = None
    if stored != (last.link,):
        raise _mismatch_error(path, log, "log")


def _check_journal(path: Path, journal: Path, connect: Connect) -> None:
    """Raise `TraceMismatch` unless the journal fits the ledger.

    A transaction that is rolled back after a kill leaves the number of pages unchanged, or creates the first ones.
    """
    with journal.open("rb") as file:
        head = file.read(28)
    if not head.startswith(_JOURNAL):
        return  # not begun, or finished: SQLite ignores it
    pages, page_size = int.from_bytes(head[16:20]), int.from_bytes(head[24:28])
    with closing(connect(path, _WITHOUT_LOG)) as ledger:
        try:
            (size,), (count,) = (ledger.execute(f"PRAGMA {name}").fetchone() for name in ("page_size", "page_count"))
        except sqlite3.DatabaseError:
            return  # half-written: the journal restores it
    is_new = pages == 0 and _last_without_log(path, connect) is None
    if page_size != size or not (is_new or pages == count):
        raise _mismatch_error(path, journal, "journal")


_WITHOUT_LOG = "ro&immutable=1"
"""Open the database file as it is, without its log or journal."""


def _last_without_log(path: Path, connect: Connect) -> Record | None:
    """Return the last record in the database file itself, if its link is valid; else None.

    A file that is being written may contain anything.
    """
    try:
        with closing(connect(path, _WITHOUT_LOG)) as ledger:
            rows = ledger.execute("SELECT * FROM records ORDER BY seq DESC LIMIT 2").fetchall()
            last, *before = (Record._make(row) for row in rows)
            previous = before[0].link if before else FIRST_LINK
            return last if last.link == link_of(previous, *last[:5]) else None
    except (sqlite3.DatabaseError, ValueError, TypeError, AttributeError):
        return None


def _mismatch_error(path: Path, file: Path, label: str) -> TraceMismatch:
    problem = f"is not the {label} of the {path.name} next to it, so one of the two was copied without the other"
    hint = f"copy both from the same folder, or move {file.name} away if {path.name} is to be read without it"
    return TraceMismatch(f"{file}: {problem}; {hint}")
