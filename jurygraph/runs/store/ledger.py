"""The ledger of a run: one SQLite file of records, each chained to the one before it, and of texts beside the chain."""

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from jurygraph.errors import InputError, TraceMismatch
from jurygraph.runs.store.chain import MOST_TEXTS, START, Draft, Record, Text, commitment, link_of, linked, named
from jurygraph.runs.store.log_files import check_log_files
from jurygraph.sources.files import create_private_file

SCHEMA_VERSION = 2
"""Version 1 was a folder of JSON lines."""

TABLES = {
    "records": """CREATE TABLE records (
        seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL,
        link BLOB NOT NULL) STRICT""",
    "records_by_key": "CREATE INDEX records_by_key ON records (kind, key)",
    "texts": "CREATE TABLE texts (id INTEGER PRIMARY KEY, salt BLOB NOT NULL, content BLOB NOT NULL) STRICT",
}
_DURABLE = ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "wal_autocheckpoint = 4000")
_LAST = """SELECT one.*, previous.link FROM records one LEFT JOIN records previous ON previous.seq = one.seq - 1
    WHERE one.kind = ? AND one.key = ? AND one.seq <= ? ORDER BY one.seq DESC LIMIT 1"""
_EXTENT = ("page_count", "page_size")
_PAGE_COUNT = 28
"""Where the header of the file has the number of its pages."""

_ROOM = 1 << 20
_ROWS = 500


class Ledger:
    """An open ledger. Appended records count once they are committed.

    Raises `TraceMismatch` where the file is no SQLite file or is damaged, and `InputError` where the disk is full.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._durable = False
        self.count: int
        self.head: bytes
        self._look()
        self._committed = (self.count, self.head)

    def _look(self) -> None:
        with self.guarded():
            last = self._connection.execute("SELECT seq, link FROM records ORDER BY seq DESC LIMIT 1").fetchone()
        self.count, self.head = last or (0, START)

    def __del__(self) -> None:
        self._connection.close()

    @classmethod
    def create(cls, path: Path) -> "Ledger":
        """A new ledger, open for writing; one that is there is opened."""
        with _reading(path):
            create_private_file(path, "put the file there")  # SQLite gives its log the same mode
            connection = _connected(path, "rw")
            connection.execute("BEGIN IMMEDIATE")  # all of it or nothing is there after a kill
            if not _tables(connection):
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                for statement in TABLES.values():
                    connection.execute(statement)
            connection.execute("COMMIT")
        return cls(path, connection)

    @classmethod
    def open(cls, path: Path, write: bool = False) -> "Ledger | None":
        """The ledger in a file; None where one was about to be made and has no record yet.

        Raises `InputError` where a newer jurygraph made it.
        """
        with _reading(path):
            check_log_files(path, _connected)
            if not write:
                _recover(path)
            connection = _connected(path, "rw" if write else "ro")
        try:
            if _begun(path, connection):
                return cls(path, connection)
        except BaseException:
            connection.close()
            raise
        connection.close()
        return None

    def append(self, *drafts: Draft) -> int:
        """Add records and their texts; the number of the last. Not durable before `commit`."""
        at = time.time_ns() // 1_000_000
        records: list[Record] = []
        texts: list[Text] = []
        count, head = self.count, self.head
        for draft in drafts:
            count += 1
            record, own = linked(head, count, at, draft)
            head = record.link
            records.append(record)
            texts += own
        with self.guarded():
            if not self._connection.in_transaction:
                self._begin()
            self._connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", records)
            self._connection.executemany("INSERT INTO texts VALUES (?, ?, ?)", texts)
        self.count, self.head = count, head
        return count

    def _begin(self) -> None:
        """Only now does the file come to know that it is written: who merely looks leaves it as it is."""
        self.make_durable()
        self._connection.execute("BEGIN IMMEDIATE")

    def make_durable(self) -> None:
        """Have the file ready to be written. SQLite refuses it while anything of this ledger is being read."""
        if self._durable:
            return
        with self.guarded():
            for setting in _DURABLE:
                self._connection.execute(f"PRAGMA {setting}")
        self._durable = True

    def commit(self) -> None:
        """Make what was appended durable: it survives a power cut from here on."""
        with self.guarded():
            self._connection.execute("COMMIT") if self._connection.in_transaction else None
        self._committed = (self.count, self.head)

    def rollback(self) -> None:
        """Forget what was appended since the last commit."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self.count, self.head = self._committed

    def erase(self, ids: Sequence[int]) -> None:
        """Delete texts, within the transaction of the record that says so."""
        with self.guarded():
            self._connection.executemany("DELETE FROM texts WHERE id = ?", [(one,) for one in ids])

    def compact(self) -> None:
        """Write the file anew, so that nothing of what was deleted is left in it nor in its log.

        Raises `InputError` where another program reads it just now and so keeps the old file alive.
        """
        with self.guarded():
            for step in ("PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
                busy = self._connection.execute(step).fetchone()
                if busy is not None and busy[0]:
                    held = "another program reads the run, so what was erased still lies in its file"
                    raise InputError(f"{self.path}: {held}; end that program, and give the same command again")

    def require_alone(self) -> None:
        """Raise `InputError` where another program reads the file just now."""
        try:
            self._connection.execute("PRAGMA journal_mode = DELETE")  # it needs the file for itself
            self._connection.execute("BEGIN EXCLUSIVE")
            self._connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            raise InputError(f"{self.path}: another program reads the run just now; end it, and try again") from None

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See the ledger as it is now, whatever another process writes meanwhile."""
        with self.guarded():
            self._connection.execute("BEGIN")
        self._look()
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")

    def records(self, kind: str | None = None, after: int = 0, up_to: int | None = None) -> Iterator[Record]:
        """Records in their order, a page at a time, so that one who writes meanwhile is not held up."""
        last = self.count if up_to is None else up_to
        where = "" if kind is None else " AND kind = ?"
        while True:
            values = (after, last) if kind is None else (after, last, kind)
            found = self._rows(
                f"SELECT * FROM records WHERE seq > ? AND seq <= ?{where} ORDER BY seq LIMIT {_ROWS}", values
            )
            yield from map(Record._make, found)
            if len(found) < _ROWS:
                return
            after = found[-1][0]

    def chained(self, first: int, last: int) -> Iterator[Record]:
        """The records from the first to the last. Raises `TraceMismatch` at one that does not follow the one before."""
        previous = START if first == 1 else self.at(first - 1).link
        expected = first
        for record in self.records(after=first - 1, up_to=last):
            if record.seq != expected:
                raise TraceMismatch(f"{self.path}: record {expected} is missing")
            self._check_link(record, previous)
            previous, expected = record.link, expected + 1
            yield record
        if expected <= last:
            raise TraceMismatch(f"{self.path}: record {expected} is missing")

    def _check_link(self, record: Record, previous: bytes) -> None:
        if record.link != link_of(previous, *record[:5]):
            wrong = "is not what was written, or does not follow the one before it"
            raise TraceMismatch(f"{self.path}, {named(record)}: {wrong}")

    def find(self, kind: str, key: str) -> Record | None:
        """The last record of a kind with this key."""
        found = self._last(kind, key)
        return None if found is None else found[0]

    def require(self, kind: str, key: str) -> Record:
        """A record that must be there. Raises `TraceMismatch` if it is not, or does not follow the one before it."""
        found = self._last(kind, key)
        if found is None:
            raise TraceMismatch(f"{self.path}: has no {kind} {key!r}; records of it are lost")
        record, previous = found
        if previous is None and record.seq != 1:
            raise TraceMismatch(f"{self.path}: record {record.seq - 1} is missing")
        self._check_link(record, previous or START)
        return record

    def _last(self, kind: str, key: str) -> tuple[Record, bytes | None] | None:
        """The last record of a kind with this key, and the link before it."""
        try:
            key.encode()
        except UnicodeEncodeError:
            return None  # no key is like that
        found = self._rows(_LAST, (kind, key, self.count))
        return (Record._make(found[0][:6]), found[0][6]) if found else None

    def at(self, seq: int) -> Record:
        """One record. Raises `TraceMismatch` where it is missing."""
        found = self._rows("SELECT * FROM records WHERE seq = ?", (seq,))
        if not found:
            raise TraceMismatch(f"{self.path}: record {seq} is missing")
        return Record._make(found[0])

    def keys(self, kind: str) -> Iterator[str]:
        """The keys of a kind, in the order of the index."""
        with self.guarded():
            yield from (key for (key,) in self._connection.execute("SELECT key FROM records WHERE kind = ?", (kind,)))

    def repeated(self, kind: str) -> str | None:
        """A key that stands twice among the records of a kind."""
        found = self._rows("SELECT key FROM records WHERE kind = ? GROUP BY key HAVING count(*) > 1 LIMIT 1", (kind,))
        return found[0][0] if found else None

    def number(self, kind: str) -> int:
        """How many records there are of a kind."""
        number: int = self._rows("SELECT count(*) FROM records WHERE kind = ? AND seq <= ?", (kind, self.count))[0][0]
        return number

    def texts(self, commitments: Mapping[int, Sequence[str]]) -> dict[int, dict[int, bytes]]:
        """The texts of records, by record and place, given what the records commit to; erased ones are absent.

        Raises `TraceMismatch` at one that is not what its record commits to, or is missing and was not erased.
        """
        found: dict[int, dict[int, bytes]] = {seq: {} for seq in commitments}
        stored = {text.id: text for text in self.stored_texts(min(commitments), max(commitments))}
        for seq, stated in commitments.items():
            for place, one in enumerate(stated):
                text = stored.get(seq * MOST_TEXTS + place)
                if text is None:
                    self._require_erased(seq, place)
                elif commitment(text.salt, text.content) != one:
                    self._refuse_text(seq, place, "is not what was written")
                else:
                    found[seq][place] = text.content
        return found

    def _require_erased(self, seq: int, place: int) -> None:
        erasures = self._rows("SELECT body FROM records WHERE kind = 'erasure' ORDER BY seq DESC", ())
        if not any(seq * MOST_TEXTS + place in json.loads(body)["ids"] for (body,) in erasures):
            self._refuse_text(seq, place, "is missing, and no erasure says so")

    def _refuse_text(self, seq: int, place: int, wrong: str) -> NoReturn:
        raise TraceMismatch(f"{self.path}, text {seq * MOST_TEXTS + place} of {named(self.at(seq))}: {wrong}")

    def all_texts(self) -> Iterator[Text]:
        """Every text that is stored, also such as belong to no record, in the order of their ids."""
        with self.guarded():
            yield from map(Text._make, self._connection.execute("SELECT * FROM texts ORDER BY id"))

    def stored_texts(self, first: int, last: int) -> Iterator[Text]:
        """Texts of the records from the first to the last, with their salts, unchecked."""
        found = "SELECT * FROM texts WHERE id >= ? AND id < ? ORDER BY id"
        with self.guarded():
            yield from map(Text._make, self._connection.execute(found, (first * MOST_TEXTS, (last + 1) * MOST_TEXTS)))

    def first_texts(self, kind: str) -> Iterator[Text]:
        """The first text of every record of a kind, as far as it is stored."""
        found = "SELECT texts.* FROM records JOIN texts ON texts.id = records.seq * ? WHERE records.kind = ?"
        with self.guarded():
            yield from map(Text._make, self._connection.execute(found, (MOST_TEXTS, kind)))

    def containing(self, content: bytes) -> Iterator[Text]:
        """The texts in which a content lies."""
        with self.guarded():
            yield from map(
                Text._make, self._connection.execute("SELECT * FROM texts WHERE instr(content, ?) > 0", (content,))
            )

    def faults(self) -> Iterator[str]:
        """What SQLite finds wrong with the file, and where its tables are not those of a ledger."""
        with self.guarded():
            yield from (f"{row[0]}" for row in self._connection.execute("PRAGMA integrity_check") if row[0] != "ok")
            found = sorted(self._connection.execute("SELECT name, sql FROM sqlite_schema"))
            outside = self._connection.execute("SELECT seq FROM records WHERE seq NOT BETWEEN 1 AND ?", (self.count,))
            yield from (f"record {seq} stands outside the chain" for (seq,) in outside)
        known = sorted(TABLES.items())
        other = [name for name, sql in found if (name, sql) not in known] + [n for n in TABLES if n not in dict(found)]
        yield from self._appended()
        if found != known:
            yield f"table or index {(other or ['of a name that is taken'])[0]!r} is not as jurygraph made it"

    def _appended(self) -> Iterator[str]:
        """What stands behind the last page: SQLite passes over it."""
        with self.guarded():
            pages, size = (self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _EXTENT)
        with self.path.open("rb") as file:
            stated = int.from_bytes(file.read(_PAGE_COUNT + 4)[_PAGE_COUNT:], "big")  # a log may hold fewer or more
            behind = file.seek(0, os.SEEK_END) - max(pages, stated) * size
        if behind > 0:
            yield f"{behind} bytes stand behind the end of the database"

    def close(self) -> None:
        """Let go of the file; what was not committed is lost."""
        self._connection.close()

    def settle(self) -> None:
        """Close a ledger that was written: it is one plain file from here on, unless somebody reads it just now."""
        self.rollback()
        with suppress(sqlite3.OperationalError):
            if self._connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
                self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()

    def _rows(self, query: str, values: Sequence[Any]) -> list[Any]:
        with self.guarded():
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """SQLite's errors as ours."""
        with _reading(self.path):
            yield


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # Python's own complaints have none
        full = code == sqlite3.SQLITE_IOERR and shutil.disk_usage(path.parent).free < _ROOM
        if code == sqlite3.SQLITE_FULL or full:
            raise InputError(
                f"{path.parent}: the disk is full; free some space, and the same command goes on"
            ) from None
        if code == sqlite3.SQLITE_IOERR:
            raise InputError(f"{path}: cannot be read or written ({error}); look after the disk, then go on") from None
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            raise InputError(f"{path}: cannot be opened ({error}); ask for permission to the folder") from None
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise InputError(f"{path}: is held by another program ({error}); end it and try again") from None
        raise TraceMismatch(f"{path}: is not as jurygraph made it ({error}); it has been changed") from None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise TraceMismatch(f"{path}: is damaged ({error}); it has been changed") from None


def _recover(path: Path) -> None:
    """Let SQLite take back what a killed process left half-done, which somebody who only reads may not do."""
    left = path.with_name(f"{path.name}-journal")
    if left.exists() and os.access(path, os.W_OK):
        with closing(_connected(path, "rw")) as connection:
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()


def _begun(path: Path, connection: sqlite3.Connection) -> bool:
    """Whether a file has a record. Raises `InputError` or `TraceMismatch` where it is of another schema version."""
    with _reading(path):
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0 and not _tables(connection):
            return False
        if version == SCHEMA_VERSION:
            records, texts = (
                bool(connection.execute(f"SELECT EXISTS (SELECT * FROM {name})").fetchone()[0])
                for name in ("records", "texts")
            )
            if texts and not records:
                raise TraceMismatch(f"{path}: has texts and no record; records have been taken out")
            return records
    if version > SCHEMA_VERSION:
        newer = f"was made by a newer jurygraph (schema version {version}; this one reads {SCHEMA_VERSION})"
        raise InputError(f"{path.parent}: {newer}; upgrade jurygraph")
    raise TraceMismatch(f"{path}: states schema version {version}, which no jurygraph wrote; it has been changed")


def _tables(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(address, uri=True, isolation_level=None, timeout=5.0, check_same_thread=False)
