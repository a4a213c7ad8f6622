"""The ledger of a run: one SQLite file of records, each chained to the previous one, and of their texts."""

import asyncio
import hashlib
import json
import logging
import os
import shutil
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from itertools import chain, groupby
from json.encoder import encode_basestring_ascii
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple, TypeVar
from weakref import WeakSet

from jurygraph.errors import InputError, TraceMismatch
from jurygraph.schema.frozen_model import JsonFields, JsonMapping, to_ascii_json
from jurygraph.sources.files import close_on_error, create_private_file

FIRST_CHAIN_LINK = bytes(32)
_SALT_BYTE_COUNT = 16
MAX_TEXTS_PER_RECORD = 1 << 20
"""Maximum number of texts of a record; the ids of the texts of record n begin at n * MAX_TEXTS_PER_RECORD."""


class RecordDraft(NamedTuple):
    """A record to be appended: its body without the commitments, and the texts that belong to it."""

    kind: str
    key: str
    body: JsonMapping
    texts: Sequence[bytes] = ()


class LedgerRecord(NamedTuple):
    """A stored record; `at` is in milliseconds since 1970, UTC."""

    seq: int
    kind: str
    key: str
    at: int
    body: str
    link: bytes

    @property
    def content(self) -> JsonFields:
        content: JsonFields = json.loads(self.body)
        return content


class Text(NamedTuple):
    id: int
    salt: bytes
    content: bytes


_T = TypeVar("_T")
_Row = tuple[Any, ...]
"""A row of a table. SQLite takes it in two thirds of the time that it needs for a `LedgerRecord` or a `Text`."""


class RecordCopy(NamedTuple):
    """A record to be copied to another ledger, and the rows of its texts: id, salt and content."""

    record: LedgerRecord
    texts: Sequence[_Row]

    @property
    def matches_commitments(self) -> bool:
        """True if the record was made with these texts, one or more; `make_record` ends a body with the commitments."""
        commitments = '","'.join(commitment(salt, content) for _, salt, content in self.texts)
        return self.record.body.endswith(f'"texts":["{commitments}"]}}')


def record_label(record: LedgerRecord) -> str:
    return f"record {record.seq} ({record.kind}{f' {record.key!r}' if record.key else ''})"


@contextmanager
def reading(label: str) -> Iterator[None]:
    """Raise `TraceMismatch` where what is read inside the context has not the form in which it was written."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        first_line = next(iter(str(error).splitlines()), "")
        raise TraceMismatch(
            f"{label}: cannot be read ({type(error).__name__}: {first_line}); it has been changed"
        ) from error


def compute_record_link(
    previous: bytes, seq: int, kind: str, key: str, at: int, body: str
) -> bytes:
    """Return the link of a record that follows the link `previous`."""
    # the same as `canonical_json([seq, kind, key, at])`, in a third of the time
    prefix = f"[{seq},{encode_basestring_ascii(kind)},{encode_basestring_ascii(key)},{at}]"
    return hashlib.sha256(b"".join((previous, prefix.encode(), b"\n", body.encode()))).digest()


def commitment(salt: bytes, content: bytes) -> str:
    """Return the commitment of a text, as stored in the body of its record."""
    return hashlib.sha256(salt + content).hexdigest()


def generate_salts(number: int) -> Iterator[bytes]:
    """Return fresh salts. They are drawn at once, since each call of the system lets go of Python's lock."""
    random_bytes = os.urandom(_SALT_BYTE_COUNT * number)
    return (
        random_bytes[start : start + _SALT_BYTE_COUNT]
        for start in range(0, len(random_bytes), _SALT_BYTE_COUNT)
    )


def make_record(
    previous: bytes, seq: int, at: int, draft: RecordDraft, salts: Iterator[bytes]
) -> tuple[LedgerRecord, list[Text]]:
    """Return a draft as the record that follows the link `previous`, and its texts with the next of the salts."""
    first_text_id = seq * MAX_TEXTS_PER_RECORD
    # not strict: the salts of the next records are left
    salted_texts = zip(draft.texts, salts, strict=False)
    texts = [
        Text(text_id, salt, content)
        for text_id, (content, salt) in enumerate(salted_texts, start=first_text_id)
    ]
    commitments = [commitment(text.salt, text.content) for text in texts]
    content = {**draft.body, "texts": commitments} if texts else draft.body
    body = to_ascii_json(content).decode()
    link = compute_record_link(previous, seq, draft.kind, draft.key, at, body)
    return LedgerRecord(seq, draft.kind, draft.key, at, body, link), texts


SCHEMA_VERSION = 3

CREATE_TABLE_STATEMENTS = {
    "records": """CREATE TABLE records (
        seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL,
        link BLOB NOT NULL) STRICT""",
    "records_by_key": "CREATE INDEX records_by_key ON records (kind, key)",
    "texts": "CREATE TABLE texts (id INTEGER PRIMARY KEY, salt BLOB NOT NULL, content BLOB NOT NULL) STRICT",
}
_DURABILITY_PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "secure_delete = ON",
    "wal_autocheckpoint = 4000",
    f"user_version = {SCHEMA_VERSION}",  # the same, but a write: the log of a writer that is killed is never empty
)
_SELECT_LAST_RECORD_SQL = (
    "SELECT * FROM records WHERE kind = ? AND key = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"
)
_SELECT_TEXTS_SQL = "SELECT * FROM texts WHERE id >= ? AND id < ? ORDER BY id"
_SELECT_FIRST_TEXTS_SQL = "SELECT * FROM texts WHERE id >= ? AND id < ? AND id % ? < ? ORDER BY id"
_SELECT_GROUPS_SQL = """
    SELECT seq, (SELECT max(task.seq) FROM records AS task
                 WHERE task.kind = 'task' AND task.key = records.key AND task.seq <= records.seq) AS place
    FROM records WHERE kind = 'group' AND seq <= ? ORDER BY place, seq"""
_MIN_FREE_DISK_BYTES = 1 << 20
_ROWS_PER_PAGE = 500
_ROWS_PER_STATEMENT = 500
"""Six values a row make less than SQLite takes, 32,766."""
LOCK_TIMEOUT_SECONDS = 5.0
"""Seconds to wait for another program that locks the file."""


class Ledger:
    """An open ledger. Appended records are visible to others once they are committed.

    Raises `TraceMismatch` if the file is not a SQLite file or is damaged, and `InputError` if the disk is full or the
    ledger was closed.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._open_cursors: WeakSet[sqlite3.Cursor] = WeakSet()
        self._is_prepared = False
        self.refresh()
        self._committed = (self.count, self.head)

    def refresh(self) -> None:
        """Take note of the records that another process has appended."""
        rows = self._rows("SELECT seq, link FROM records ORDER BY seq DESC LIMIT 1")
        self.count: int
        self.head: bytes
        self.count, self.head = rows[0] if rows else (0, FIRST_CHAIN_LINK)

    def __del__(self) -> None:
        self._connection.close()

    @classmethod
    def create(cls, path: Path) -> "Ledger":
        """Create a ledger and open it for writing; an existing one is opened."""
        with _translate_sqlite_errors(path):
            create_private_file(path)  # SQLite gives its log the same mode
            connection = _open_sqlite_connection(path, "rw")
        with close_on_error(connection.close), _translate_sqlite_errors(path):
            connection.execute("BEGIN IMMEDIATE")  # a killed process leaves all tables or none
            if not _has_tables(connection):
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                for statement in CREATE_TABLE_STATEMENTS.values():
                    connection.execute(statement)
            connection.execute("COMMIT")
            return cls(path, connection)

    @classmethod
    def open(cls, path: Path, write: bool = False) -> "Ledger | None":
        """Return the ledger in a file; None if a process was killed while creating it and it has no record yet.

        Raises `InputError` if a newer jurygraph wrote it.
        """
        with _translate_sqlite_errors(path):
            _warn_of_missing_wal(path)
            journal_path = path.with_name(f"{path.name}-journal")
            if not write and journal_path.exists() and os.access(path, os.W_OK):
                # SQLite rolls back the transaction of a killed process, which a read-only connection cannot do
                with closing(_open_sqlite_connection(path, "rw")) as writable_connection:
                    _has_tables(writable_connection)
            connection = _open_sqlite_connection(path, "rw" if write else "ro")
        with close_on_error(connection.close):
            if _has_records(path, connection):
                return cls(path, connection)
        connection.close()
        return None

    def append(self, *drafts: RecordDraft) -> int:
        """Append records and their texts; return the number of the last. They are not durable before `commit`."""
        at = time.time_ns() // 1_000_000
        records = []
        texts = []
        head = self.head
        salts = generate_salts(sum(len(draft.texts) for draft in drafts))
        for seq, draft in enumerate(drafts, start=self.count + 1):
            record, record_texts = make_record(head, seq, at, draft, salts)
            head = record.link
            records.append(record)
            texts += record_texts
        return self._insert_records(records, texts)

    def append_copies(self, record_copies: Iterable[RecordCopy]) -> int:
        """Append records of another ledger with their texts, to the byte; only their numbers and links are new.

        Times and salts are kept, so that no body changes: a body holds the commitments to salted texts, and no number
        of a record.
        """
        records = []
        texts = []
        head = self.head
        for seq, (record, salted_texts) in enumerate(record_copies, start=self.count + 1):
            old_seq, kind, key, at, body, _ = record
            head = compute_record_link(head, seq, kind, key, at, body)
            records.append((seq, kind, key, at, body, head))
            shift = (seq - old_seq) * MAX_TEXTS_PER_RECORD
            texts += [(number + shift, salt, content) for number, salt, content in salted_texts]
        return self._insert_records(records, texts)

    def _insert_records(self, records: Sequence[_Row], texts: Sequence[_Row]) -> int:
        """Write records that follow the head, and their texts; return the number of the last."""
        with _translate_sqlite_errors(self.path):
            if not self._connection.in_transaction:
                self.prepare_for_writing()  # only now, so that reading leaves the file unchanged
                self._connection.execute("BEGIN IMMEDIATE")
            self._insert_rows("records", records)
            self._insert_rows("texts", texts)
        if records:
            self.count, *_, self.head = records[-1]
        return self.count

    def _insert_rows(self, table: str, rows: Sequence[_Row]) -> None:
        """Insert rows, many by a statement: after each one this thread waits for Python's lock, up to 5 ms if a loop is
        busy meanwhile."""
        for start in range(0, len(rows), _ROWS_PER_STATEMENT):
            part = rows[start : start + _ROWS_PER_STATEMENT]
            row = f"({', '.join('?' * len(part[0]))})"
            values = list(chain.from_iterable(part))
            self._connection.execute(
                f"INSERT INTO {table} VALUES {', '.join([row] * len(part))}", values
            )

    def prepare_for_writing(self) -> None:
        """Prepare the file for writing. SQLite refuses that while this ledger is being read."""
        if self._is_prepared:
            return
        with _translate_sqlite_errors(self.path):
            for setting in _DURABILITY_PRAGMAS:
                self._connection.execute(f"PRAGMA {setting}")
        self._is_prepared = True

    def prepare_for_single_transaction(self) -> None:
        """Prepare a new file to be filled in a single transaction, without the log that batches need.

        Each page is then written once: with a log, all of it would be written twice, and take twice the space.
        """
        with _translate_sqlite_errors(self.path):
            self._connection.execute("PRAGMA synchronous = FULL")
        self._is_prepared = True

    def commit(self) -> None:
        """Make the appended records durable: from now on they survive a power failure."""
        with _translate_sqlite_errors(self.path):
            self._connection.execute("COMMIT") if self._connection.in_transaction else None
        self._committed = (self.count, self.head)

    def rollback(self) -> None:
        """Discard the records appended since the last commit."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self.count, self.head = self._committed

    def erase(self, ids: Sequence[int]) -> None:
        """Delete texts, within the transaction of the record that documents it."""
        with _translate_sqlite_errors(self.path):
            self._connection.executemany(
                "DELETE FROM texts WHERE id = ?", [(text_id,) for text_id in ids]
            )

    def compact(self) -> None:
        """Rewrite the file, so that neither it nor its log contains deleted data.

        Raises `InputError` if another program is reading the file and so keeps the old one alive.
        """
        with _translate_sqlite_errors(self.path):
            for step in (
                "PRAGMA wal_checkpoint(TRUNCATE)",
                "VACUUM",
                "PRAGMA wal_checkpoint(TRUNCATE)",
            ):
                checkpoint_row = self._connection.execute(step).fetchone()
                if checkpoint_row is not None and checkpoint_row[0]:
                    raise InputError(
                        f"{self.path}: another program reads the run, "
                        "so the erased texts are still in its file; end that program, "
                        "and give the same command again"
                    )

    def refuse_other_readers(self) -> None:
        """Raise `InputError` if another program is reading the file."""
        try:
            # needs exclusive access to the file
            self._connection.execute("PRAGMA journal_mode = DELETE")
            self._connection.execute("BEGIN EXCLUSIVE")
            self._connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            raise InputError(
                f"{self.path}: another program reads the run just now; end it, and try again"
            ) from None

    @property
    def members(self) -> Sequence["Ledger"]:
        """The ledgers that this one is read from: itself, unless several are joined."""
        return (self,)

    @contextmanager
    def snapshot_transaction(self) -> Iterator[None]:
        """Read the ledger in its current state inside the context, whatever another process writes."""
        with _translate_sqlite_errors(self.path):
            self._connection.execute("BEGIN")
        self.refresh()
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")

    def _last_number(self, up_to_record: int | None) -> int:
        """Return the number of the last record to be read: `up_to_record`, else that of all."""
        return self.count if up_to_record is None else up_to_record

    def records(
        self, kind: str | None = None, after: int = 0, up_to_record: int | None = None
    ) -> Iterator[LedgerRecord]:
        """Yield records in order, one page at a time, so that a concurrent writer is not blocked."""
        last = self._last_number(up_to_record)
        where, kinds = ("", []) if kind is None else (" AND kind = ?", [kind])
        query = f"SELECT * FROM records WHERE seq > ? AND seq <= ?{where} ORDER BY seq LIMIT {_ROWS_PER_PAGE}"
        while True:
            rows = self._rows(query, after, last, *kinds)
            yield from map(LedgerRecord._make, rows)
            if len(rows) < _ROWS_PER_PAGE:
                return
            after = rows[-1][0]

    def record_numbers(self, kind: str, up_to_record: int | None = None) -> Iterator[int]:
        """Yield the numbers of the records of a kind, ascending."""
        query = "SELECT seq FROM records WHERE kind = ? AND seq <= ? ORDER BY seq"
        rows = self._iter_rows(query, kind, self._last_number(up_to_record))
        return (number for (number,) in rows)

    def ordered_group_numbers(
        self, up_to_record: int | None = None
    ) -> Iterator[tuple[int, int | None]]:
        """Yield the numbers of groups and of their tasks, in the order of the tasks; first those without a task."""
        return self._iter_rows(_SELECT_GROUPS_SQL, self._last_number(up_to_record))

    def path_of_ledger_with(self, seq: int) -> Path:
        """Return the path of the ledger that has a record: of this one, or of one that is joined to others."""
        return self.path

    def verified_records(self, first: int, last: int) -> Iterator[LedgerRecord]:
        """Yield the records from the first to the last.

        Raises `TraceMismatch` if a record does not follow the previous one.
        """
        previous = FIRST_CHAIN_LINK if first == 1 else self.record_at(first - 1).link
        expected = first
        for record in self.records(after=first - 1, up_to_record=last):
            if record.seq != expected:
                raise TraceMismatch(f"{self.path}: record {expected} is missing")
            if record.link != compute_record_link(previous, *record[:5]):
                raise TraceMismatch(
                    f"{self.path}, {record_label(record)}: differs from what was written, "
                    "or does not follow the one before it"
                )
            previous = record.link
            expected += 1
            yield record
        if expected <= last:
            raise TraceMismatch(f"{self.path}: record {expected} is missing")

    def verified_copies(self, first: int, last: int) -> Iterator[RecordCopy]:
        """Yield the records from the first to the last with their texts; it raises what `verified_records` does.

        Both tables are read side by side: to select the texts of each group takes half as long as to write them.
        """
        texts = self._iter_rows(
            _SELECT_TEXTS_SQL, first * MAX_TEXTS_PER_RECORD, (last + 1) * MAX_TEXTS_PER_RECORD
        )
        texts_by_record = groupby(texts, key=lambda text: text[0] // MAX_TEXTS_PER_RECORD)
        seq, rows = next(texts_by_record, (0, ()))
        for record in self.verified_records(first, last):
            salted_texts = []
            if seq == record.seq:
                salted_texts = list(rows)
                seq, rows = next(texts_by_record, (0, ()))
            yield RecordCopy(record, salted_texts)

    def find(self, kind: str, key: str, up_to_record: int | None = None) -> LedgerRecord | None:
        """Return the last record of a kind with this key, up to the one numbered `up_to_record`; None if there is
        none."""
        rows = self._find_rows(_SELECT_LAST_RECORD_SQL, kind, key, up_to_record)
        return LedgerRecord._make(rows[0]) if rows else None

    def _find_rows(
        self, query: str, kind: str, key: str, up_to_record: int | None = None
    ) -> list[Any]:
        try:
            key.encode()
        except UnicodeEncodeError:
            return []  # a lone surrogate, which no key contains
        return self._rows(query, kind, key, self._last_number(up_to_record))

    def find_all_records(self, kind: str, key: str) -> list[LedgerRecord]:
        query = "SELECT * FROM records WHERE kind = ? AND key = ? AND seq <= ? ORDER BY seq"
        return list(map(LedgerRecord._make, self._find_rows(query, kind, key)))

    def require(self, kind: str, key: str) -> LedgerRecord:
        """Return the last record of a kind with this key.

        Raises `TraceMismatch` if there is none, or if it does not follow the previous record.
        """
        record = self.find_verified_record(kind, key)
        if record is None:
            raise TraceMismatch(f"{self.path}: has no {kind} {key!r}; records of it are lost")
        return record

    def find_verified_record(self, kind: str, key: str) -> LedgerRecord | None:
        """Return the same as `find`. Raises `TraceMismatch` if the record does not follow the previous one."""
        record = self.find(kind, key)
        if record is not None:
            (record,) = self.verified_records(record.seq, record.seq)
        return record

    def record_at(self, seq: int) -> LedgerRecord:
        """Return the record with this number. Raises `TraceMismatch` if it is missing."""
        rows = self._rows("SELECT * FROM records WHERE seq = ?", seq)
        if not rows:
            raise TraceMismatch(f"{self.path}: record {seq} is missing")
        return LedgerRecord._make(rows[0])

    def keys(self, kind: str) -> Iterator[str]:
        """Yield the keys of a kind, in the order of the index."""
        return (key for (key,) in self._iter_rows("SELECT key FROM records WHERE kind = ?", kind))

    def count_records(self, kind: str) -> int:
        number: int = self._rows(
            "SELECT count(*) FROM records WHERE kind = ? AND seq <= ?", kind, self.count
        )[0][0]
        return number

    def texts(self, commitments: Mapping[int, Sequence[str]]) -> dict[int, dict[int, bytes]]:
        """Return the texts of records, by record and place, for the records' commitments; erased ones are left out.

        Raises `TraceMismatch` if a text does not match its commitment, or is missing and was not erased.
        """
        found: dict[int, dict[int, bytes]] = {seq: {} for seq in commitments}
        limit = max(map(len, commitments.values()))
        stored_texts = self.stored_texts(min(commitments), max(commitments), limit)
        stored = {text.id: text for text in stored_texts}
        for seq, expected in commitments.items():
            for index, digest in enumerate(expected):
                number = seq * MAX_TEXTS_PER_RECORD + index
                text = stored.get(number)
                if text is not None and commitment(text.salt, text.content) == digest:
                    found[seq][index] = text.content
                elif text is not None or not self._is_erased(seq, index):
                    label = record_label(self.record_at(seq))
                    problem = "differs from what was written"
                    if text is None:
                        problem = "is missing without an erasure"
                    raise TraceMismatch(f"{self.path}, text {number} of {label}: {problem}")
        return found

    def _is_erased(self, seq: int, index: int) -> bool:
        """Return whether a text of a record, of this index, was erased."""
        number = seq * MAX_TEXTS_PER_RECORD + index
        query = "SELECT body FROM records WHERE kind = 'erasure' ORDER BY seq DESC"
        return any(number in json.loads(body)["ids"] for (body,) in self._rows(query))

    def texts_of_record(self, record: LedgerRecord) -> dict[int, bytes]:
        """Return the texts of a record by place, as `texts` does."""
        return self.texts({record.seq: record.content["texts"]})[record.seq]

    def all_texts(self) -> Iterator[Text]:
        """Yield all stored texts, including those without a record, in the order of their ids."""
        return self._select_texts("SELECT * FROM texts ORDER BY id")

    def stored_texts(
        self, first: int, last: int, limit: int = MAX_TEXTS_PER_RECORD
    ) -> Iterator[Text]:
        """Yield the texts of the records from the first to the last, with their salts, unverified.

        They are the first ones of each record, `limit` of them.
        """
        return self._select_texts(
            _SELECT_FIRST_TEXTS_SQL,
            first * MAX_TEXTS_PER_RECORD,
            (last + 1) * MAX_TEXTS_PER_RECORD,
            MAX_TEXTS_PER_RECORD,
            limit,
        )

    def first_text_per_record(self, kind: str) -> Iterator[Text]:
        """Yield the first text of every record of a kind, if it is stored."""
        query = "SELECT texts.* FROM records JOIN texts ON texts.id = records.seq * ? WHERE records.kind = ?"
        return self._select_texts(query, MAX_TEXTS_PER_RECORD, kind)

    def _select_texts(self, query: str, *values: Any) -> Iterator[Text]:
        return map(Text._make, self._iter_rows(query, *values))

    def find_file_faults(self) -> Iterator[str]:
        """Yield the errors that SQLite finds in the file, and deviations of its tables from those of a ledger."""
        faults = self._iter_rows("PRAGMA integrity_check")
        yield from (f"{fault}" for (fault,) in faults if fault != "ok")
        unlinked_records = self._iter_rows(
            "SELECT seq FROM records WHERE seq NOT BETWEEN 1 AND ?", self.count
        )
        yield from (f"record {seq} is not part of the chain" for (seq,) in unlinked_records)
        settings = ("page_count", "page_size")
        page_count, size = (self._rows(f"PRAGMA {name}")[0][0] for name in settings)
        with self.path.open("rb") as file:
            # the header may record fewer or more than the log
            header_page_count = int.from_bytes(file.read(32)[28:], "big")
            extra = file.seek(0, os.SEEK_END) - max(page_count, header_page_count) * size
        if extra > 0:  # SQLite ignores them
            yield f"{extra} bytes follow the end of the database"
        schema = self._rows("SELECT name, sql FROM sqlite_schema")
        if sorted(schema) != sorted(CREATE_TABLE_STATEMENTS.items()):
            changed_tables = CREATE_TABLE_STATEMENTS.items() ^ set(schema)
            names = {name for name, _ in changed_tables}
            name = min(names, default="of a name that is taken")
            yield f"table or index {name!r} is not as jurygraph made it"

    def close(self) -> None:
        """Close the file; uncommitted records are discarded."""
        # a walk that an error ended may live on in its traceback, and would keep the file locked
        for cursor in tuple(self._open_cursors):
            cursor.close()
        self._connection.close()

    def close_as_plain_file(self) -> None:
        """Close a ledger after writing; it becomes one plain file, unless another program is reading it."""
        self.rollback()
        with suppress(sqlite3.OperationalError):
            if self._connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
                self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with _translate_sqlite_errors(self.path):
            return self._connection.execute(query, values).fetchall()

    def _iter_rows(self, query: str, *values: Any) -> Iterator[Any]:
        with _translate_sqlite_errors(self.path):
            cursor = self._connection.execute(query, values)
            self._open_cursors.add(cursor)
            # not `yield from`, which would close the cursor, perhaps after its connection
            for row in cursor:  # noqa: UP028
                yield row


@contextmanager
def _translate_sqlite_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # Python's own errors have none
        is_disk_full = (
            code == sqlite3.SQLITE_IOERR
            and shutil.disk_usage(path.parent).free < _MIN_FREE_DISK_BYTES
        )
        if code == sqlite3.SQLITE_FULL or is_disk_full:
            raise InputError(
                f"{path.parent}: the disk is full; free some space and run the same command again"
            ) from None
        if code in _SQLITE_ERROR_MESSAGES:
            raise InputError(f"{path}: {_SQLITE_ERROR_MESSAGES[code].format(error)}") from None
        raise TraceMismatch(
            f"{path}: is not as jurygraph made it ({error}); it has been changed"
        ) from None
    except sqlite3.ProgrammingError:  # not about the file: the connection was closed
        raise InputError(
            f"{path.parent}: this run is closed; use it inside its `with` block, or open it again"
        ) from None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise TraceMismatch(
            f"{path}: is damaged ({error}); it has been changed, or was not copied whole: copy the folder of the run "
            "again, or take a backup"
        ) from None


_SQLITE_ERROR_MESSAGES = {
    sqlite3.SQLITE_IOERR: "cannot be read or written ({}); look after the disk, then go on",
    **dict.fromkeys(
        (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM),
        "cannot be opened ({}); ask for permission to the folder",
    ),
    **dict.fromkeys(
        (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED),
        "is locked by another program ({}); end it and try again",
    ),
}
"""SQLite errors that are not about the content of the file, and how messages describe them."""


def _has_records(path: Path, connection: sqlite3.Connection) -> bool:
    """Return whether a file has a record. Raises `InputError` or `TraceMismatch` for another schema version."""
    with _translate_sqlite_errors(path):
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0 and not _has_tables(connection):
            return False
        if version == SCHEMA_VERSION:
            query = "SELECT EXISTS (SELECT * FROM records), EXISTS (SELECT * FROM texts)"
            has_records, has_texts = connection.execute(query).fetchone()
            if has_texts and not has_records:
                raise TraceMismatch(f"{path}: has texts and no record; records have been taken out")
            return bool(has_records)
    if version > SCHEMA_VERSION:
        raise InputError(
            f"{path.parent}: was made by a newer jurygraph (schema version {version}; "
            f"this one reads {SCHEMA_VERSION}); upgrade jurygraph"
        )
    raise TraceMismatch(
        f"{path}: has schema version {version}, which no version of jurygraph writes; "
        "it has been changed"
    )


def _has_tables(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])


def _open_sqlite_connection(path: Path, mode: str) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(
        address,
        uri=True,
        isolation_level=None,
        timeout=LOCK_TIMEOUT_SECONDS,
        check_same_thread=False,
    )


def _warn_of_missing_wal(path: Path) -> None:
    """Log a warning if a ledger was copied without the log that it needs: its last records may be missing."""
    log = path.with_name(f"{path.name}-wal")
    if _file_size(log) or not _file_size(path) or path.with_name(f"{path.name}-journal").exists():
        return
    with closing(_open_sqlite_connection(path, "ro")) as ledger:
        (mode,) = ledger.execute("PRAGMA journal_mode").fetchone()
    if mode == "wal" and not _file_size(log):  # a reader leaves an empty one
        _warn_once(path, log.name)


@cache
def _warn_once(path: Path, log: str) -> None:
    """Warn once in a process, however often a command opens the ledger."""
    logging.getLogger(__name__).warning(_MISSING_LOG_WARNING, path, log)


_MISSING_LOG_WARNING = (
    "%s: was being written, and its log %s is missing; if it was copied without the log, its last records are missing: "
    "copy both, or wait until the run is closed"
)


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


_MAX_COMMIT_WAIT_SECONDS = 0.005
"""Seconds that a record waits for others: a commit for few takes as much CPU as for many, and a model far longer."""
_MAX_WAITING_BATCHES = 1024
"""Number of batches of records that wait for a commit before whoever appends another waits for it, too."""


CommitFuture = asyncio.Future[None]
"""A future of an event loop, which is settled by a commit."""


def _notify_commit_waiters(futures: Iterable[CommitFuture], error: BaseException | None) -> None:
    """Tell those who wait how a commit ended. To wake an event loop is dear, so that each is woken once."""
    futures_by_loop = defaultdict(list)
    for future in futures:
        futures_by_loop[future.get_loop()].append(future)
    for loop, loop_futures in futures_by_loop.items():
        with suppress(RuntimeError):  # a closed loop has no one who waits
            loop.call_soon_threadsafe(_settle_futures, loop_futures, error)


def _settle_futures(futures: Iterable[CommitFuture], error: BaseException | None) -> None:
    for future in futures:
        if future.done():  # whoever waited was cancelled
            continue
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(None)


class Writer:
    """Appends batches of records to a ledger in a thread, each batch completely or not at all.

    Any thread or event loop may append: a run that is recorded from Python outlives the loops that score into it. A
    batch is durable once it would survive a power failure. If it could not be written, whoever waits for it gets the
    error; after an error nothing more is written.
    """

    def __init__(self, ledger: Ledger) -> None:
        ledger.prepare_for_writing()
        self._ledger = ledger
        self._batches: Queue[tuple[Sequence[RecordDraft], CommitFuture | None] | None] = Queue(
            _MAX_WAITING_BATCHES
        )
        """Records, each with what their commit settles; None after the last ones."""
        self._error: BaseException | None = None
        self._is_closed = threading.Event()
        self._guard = threading.Lock()  # so that no batch follows the last ones
        self._thread = threading.Thread(
            target=self._write_until_closed, name="jurygraph-ledger", daemon=True
        )
        self._thread.start()

    async def append_durably(self, drafts: Sequence[RecordDraft]) -> None:
        """Append a batch as `append` does, and wait until it is durable."""
        commit_future = asyncio.get_running_loop().create_future()
        self.append(drafts, commit_future)
        await commit_future

    def append(
        self, drafts: Sequence[RecordDraft], commit_future: CommitFuture | None = None
    ) -> None:
        """Append a batch with the next commit, which settles the future. Raises the error that stopped the writing."""
        with self._guard:
            if self._error is not None:
                raise self._error
            if self._is_closed.is_set():
                raise InputError(f"{self._ledger.path.parent}: this run was released meanwhile")
            self._batches.put((drafts, commit_future))

    def close(self) -> None:
        """Write what is left and stop the thread. Raises the error that stopped the writing."""
        with self._guard:
            if not self._is_closed.is_set():
                self._is_closed.set()
                self._batches.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _write_until_closed(self) -> None:
        is_writer_open = True
        while is_writer_open:
            batches = [self._batches.get()]
            self._is_closed.wait(_MAX_COMMIT_WAIT_SECONDS)  # no append wakes this thread meanwhile
            while not self._batches.empty():
                batches.append(self._batches.get())
            is_writer_open = None not in batches
            written = [batch for batch in batches if batch is not None]
            self._write(list(chain.from_iterable(drafts for drafts, _ in written)))
            _notify_commit_waiters(
                [future for _, future in written if future is not None], self._error
            )

    def _write(self, drafts: Sequence[RecordDraft]) -> None:
        """Append the records and commit them, unless an error has stopped the writing."""
        try:
            if drafts and self._error is None:
                self._ledger.append(*drafts)
                self._ledger.commit()
        except BaseException as error:  # noqa: BLE001 - it is raised to those who wait, and by the next append
            self._error = error
            self._ledger.rollback()
