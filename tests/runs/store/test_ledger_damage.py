"""Removed and added content of a ledger is found when it is read."""

import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from jurygraph.errors import InputError, TraceMismatch
from jurygraph.runs.store.ledger import (
    CREATE_TABLE_STATEMENTS,
    MAX_TEXTS_PER_RECORD,
    SCHEMA_VERSION,
    Ledger,
    RecordDraft,
    _translate_sqlite_errors,
)
from tests.runs.store.test_ledger import execute_sql, make_ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.sqlite"


def read_commitments(ledger: Ledger) -> dict[int, list[str]]:
    return {record.seq: record.content["texts"] for record in ledger.records("trace")}


class TestTexts:
    def test_texts_are_returned_by_record_and_place(self, path: Path) -> None:
        ledger = make_ledger(path, 2)
        assert ledger.texts(read_commitments(ledger)) == {
            1: {0: b"text 0", 1: b"second"},
            2: {0: b"text 1", 1: b"second"},
        }
        assert [text.id for text in ledger.all_texts()] == [
            MAX_TEXTS_PER_RECORD,
            MAX_TEXTS_PER_RECORD + 1,
            2 * MAX_TEXTS_PER_RECORD,
            2 * MAX_TEXTS_PER_RECORD + 1,
        ]
        assert [text.content for text in ledger.stored_texts(2, 2)] == [b"text 1", b"second"]

    def test_an_erased_text_is_left_out(self, path: Path) -> None:
        ledger = make_ledger(path, 2)
        ledger.append(
            RecordDraft("erasure", "", {"ids": [MAX_TEXTS_PER_RECORD + 1]}),
            RecordDraft("erasure", "", {"ids": [2 * MAX_TEXTS_PER_RECORD]}),
        )
        ledger.erase([MAX_TEXTS_PER_RECORD + 1, 2 * MAX_TEXTS_PER_RECORD])
        assert ledger.texts(read_commitments(ledger)) == {1: {0: b"text 0"}, 2: {1: b"second"}}

    def test_a_text_missing_without_an_erasure_is_named(self, path: Path) -> None:
        ledger = make_ledger(path, 2)
        ledger.append(RecordDraft("erasure", "", {"ids": [MAX_TEXTS_PER_RECORD]}))
        ledger.commit()
        execute_sql(path, "DELETE FROM texts WHERE id = ?", 2 * MAX_TEXTS_PER_RECORD + 1)
        named = rf"text {2 * MAX_TEXTS_PER_RECORD + 1} of record 2 \(trace 'r1'\): is missing without an erasure"
        with pytest.raises(TraceMismatch, match=named):
            ledger.texts(read_commitments(ledger))

    @pytest.mark.parametrize("column", ["salt", "content"])
    def test_a_changed_text_is_named(self, path: Path, column: str) -> None:
        ledger = make_ledger(path, 2)
        execute_sql(
            path, f"UPDATE texts SET {column} = ? WHERE id = ?", b"other", 2 * MAX_TEXTS_PER_RECORD
        )
        named = rf"text {2 * MAX_TEXTS_PER_RECORD} of record 2 \(trace 'r1'\): differs from what was written"
        with pytest.raises(TraceMismatch, match=named):
            ledger.texts(read_commitments(ledger))


def test_records_appended_together_keep_all_their_texts(path: Path) -> None:
    ledger = Ledger.create(path)
    drafts = [
        RecordDraft("trace", f"r{number}", {}, [f"text {number}".encode()]) for number in range(3)
    ]
    assert ledger.append(*drafts) == 3
    assert ledger.texts(read_commitments(ledger)) == {
        number + 1: {0: f"text {number}".encode()} for number in range(3)
    }


class TestRequire:
    def test_a_record_is_found_by_its_kind_and_key(self, path: Path) -> None:
        ledger = make_ledger(path)
        assert [ledger.require("trace", f"r{number}").seq for number in range(3)] == [1, 2, 3]
        assert ledger.record_at(2) == ledger.require("trace", "r1")
        assert (ledger.count_records("trace"), ledger.count_records("erasure")) == (3, 0)
        assert sorted(ledger.keys("trace")) == ["r0", "r1", "r2"]

    @pytest.mark.parametrize("key", ["r9", "\ud800"])
    def test_a_missing_record_is_reported_as_lost(self, path: Path, key: str) -> None:
        ledger = make_ledger(path)
        assert ledger.find("trace", key) is None
        with pytest.raises(TraceMismatch, match=r"has no trace .*; records of it are lost"):
            ledger.require("trace", key)
        with pytest.raises(TraceMismatch, match="record 9 is missing"):
            ledger.record_at(9)

    def test_a_record_without_predecessor_is_refused(self, path: Path) -> None:
        make_ledger(path).close()
        execute_sql(path, "DELETE FROM records WHERE seq = 1")
        ledger = Ledger.open(path)
        assert ledger is not None
        assert ledger.require("trace", "r2").seq == 3
        with pytest.raises(TraceMismatch, match="record 1 is missing"):
            ledger.require("trace", "r1")

    @pytest.mark.parametrize("key", ["r0", "r1"])
    def test_a_record_that_does_not_follow_its_predecessor_is_refused(
        self, path: Path, key: str
    ) -> None:
        make_ledger(path).close()
        execute_sql(path, "UPDATE records SET body = '{}' WHERE key = ?", key)
        ledger = Ledger.open(path)
        assert ledger is not None
        named = rf"record \d \(trace '{key}'\): differs from what was written, or does not follow the one before it"
        with pytest.raises(TraceMismatch, match=named):
            ledger.require("trace", key)

    def test_later_records_are_visible_only_in_a_snapshot(self, path: Path) -> None:
        writer, reader = make_ledger(path), Ledger.open(path)
        assert reader is not None
        writer.append(RecordDraft("trace", "late", {}))
        writer.commit()
        assert (reader.find("trace", "late"), reader.count_records("trace"), reader.count) == (
            None,
            3,
            3,
        )
        with reader.snapshot_transaction():
            assert (reader.count_records("trace"), reader.count) == (4, 4)
            writer.append(RecordDraft("trace", "later", {}))
            writer.commit()
            assert reader.head == reader.record_at(4).link
            assert [one.key for one in reader.records(after=3)] == ["late"]


class TestCreate:
    def test_an_existing_ledger_is_opened(self, path: Path) -> None:
        make_ledger(path).close()
        assert Ledger.create(path).count == 3
        with closing(sqlite3.connect(path)) as connection, connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        connection.close()

    def test_an_unfinished_ledger_is_none(self, path: Path) -> None:
        path.touch()
        assert Ledger.open(path) is None
        Ledger.create(path).close()
        assert Ledger.open(path) is None

    def test_texts_without_a_record_are_refused(self, path: Path) -> None:
        make_ledger(path).close()
        execute_sql(path, "DELETE FROM records")
        with pytest.raises(
            TraceMismatch, match="has texts and no record; records have been taken out"
        ):
            Ledger.open(path)

    def test_a_closed_ledger_is_one_plain_file(self, path: Path) -> None:
        ledger = make_ledger(path)
        assert path.with_name("run.sqlite-wal").exists()
        ledger.append(RecordDraft("trace", "late", {}))
        ledger.close_as_plain_file()
        assert [one.name for one in path.parent.iterdir()] == ["run.sqlite"]
        assert path.read_bytes()[18:20] == b"\1\1", "no reader has to make a file beside it"
        again = Ledger.open(path)
        assert again is not None
        assert again.count == 3

    def test_writes_are_durable(self, path: Path) -> None:
        ledger = make_ledger(path)
        requests = ("journal_mode", "synchronous", "secure_delete", "wal_autocheckpoint")
        found = [ledger._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in requests]
        assert found == ["wal", 2, 1, 4000]


class TestOtherPrograms:
    def test_a_reader_prevents_exclusive_access(self, path: Path) -> None:
        make_ledger(path).close_as_plain_file()
        mine, other = Ledger.open(path, write=True), sqlite3.connect(path)
        assert mine is not None
        mine._connection.execute("PRAGMA busy_timeout = 10")
        mine.refuse_other_readers()
        other.execute("BEGIN")
        other.execute("SELECT * FROM records").fetchone()
        with pytest.raises(
            InputError, match="another program reads the run just now; end it, and try again"
        ):
            mine.refuse_other_readers()
        other.close()

    def test_a_reader_prevents_compaction(self, path: Path) -> None:
        ledger = make_ledger(path)
        ledger._connection.execute("PRAGMA busy_timeout = 10")
        other = sqlite3.connect(path)
        other.execute("BEGIN")
        other.execute("SELECT * FROM records").fetchone()
        ledger.erase([MAX_TEXTS_PER_RECORD])
        ledger.commit()
        with pytest.raises(
            InputError, match=r"the erased texts are still in its file; end that program"
        ):
            ledger.compact()
        other.close()
        ledger.compact()

    def test_a_reader_does_not_prevent_closing(self, path: Path) -> None:
        ledger, other = make_ledger(path), sqlite3.connect(path)
        ledger._connection.execute("PRAGMA busy_timeout = 10")
        other.execute("BEGIN")
        other.execute("SELECT * FROM records").fetchone()
        ledger.close_as_plain_file()
        assert other.execute("SELECT count(*) FROM records").fetchone() == (3,)
        other.close()

    def test_a_writer_locks_the_ledger(self, path: Path) -> None:
        ledger, other = make_ledger(path), sqlite3.connect(path, isolation_level=None)
        ledger._connection.execute("PRAGMA busy_timeout = 10")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            InputError, match=r"run\.sqlite: is locked by another program .*; end it and try again"
        ):
            ledger.append(RecordDraft("trace", "r", {}))
        other.close()


class TestFaults:
    def test_a_record_outside_the_chain_is_a_fault(self, path: Path) -> None:
        make_ledger(path).close()
        execute_sql(path, "UPDATE records SET seq = -4 WHERE seq = 2")
        ledger = Ledger.open(path)
        assert ledger is not None
        assert list(ledger.find_file_faults()) == ["record -4 is not part of the chain"]

    @pytest.mark.parametrize("name", CREATE_TABLE_STATEMENTS)
    def test_a_changed_table_is_a_fault(self, path: Path, name: str) -> None:
        make_ledger(path).close()
        execute_sql(path, "PRAGMA writable_schema = ON")
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("UPDATE sqlite_schema SET sql = sql || ' ' WHERE name = ?", (name,))
        connection.close()
        ledger = Ledger.open(path)
        assert ledger is not None
        assert f"table or index '{name}' is not as jurygraph made it" in list(
            ledger.find_file_faults()
        )


class TestErrors:
    """SQLite's errors are translated into messages with a hint."""

    @pytest.mark.parametrize(
        ("code", "free", "kind", "wrong"),
        [
            (sqlite3.SQLITE_FULL, 1 << 30, InputError, "the disk is full; free some space"),
            (sqlite3.SQLITE_IOERR_WRITE, 1 << 10, InputError, "the disk is full; free some space"),
            (
                sqlite3.SQLITE_IOERR_WRITE,
                1 << 20,
                InputError,
                "cannot be read or written .*; look after the disk",
            ),
            (
                sqlite3.SQLITE_CANTOPEN,
                1 << 30,
                InputError,
                "cannot be opened .*; ask for permission",
            ),
            (
                sqlite3.SQLITE_READONLY_DBMOVED,
                1 << 30,
                InputError,
                "cannot be opened .*; ask for permission",
            ),
            (sqlite3.SQLITE_PERM, 1 << 30, InputError, "cannot be opened .*; ask for permission"),
            (
                sqlite3.SQLITE_BUSY,
                1 << 30,
                InputError,
                "is locked by another program .*; end it and try again",
            ),
            (
                sqlite3.SQLITE_LOCKED,
                1 << 30,
                InputError,
                "is locked by another program .*; end it and try again",
            ),
            (
                sqlite3.SQLITE_ERROR,
                1 << 30,
                TraceMismatch,
                "is not as jurygraph made it .*; it has been changed",
            ),
            (None, 1 << 30, TraceMismatch, "is not as jurygraph made it .*; it has been changed"),
        ],
    )
    def test_sqlite_errors_are_translated(
        self,
        path: Path,
        monkeypatch: pytest.MonkeyPatch,
        code: int | None,
        free: int,
        kind: type[Exception],
        wrong: str,
    ) -> None:
        requests: list[object] = []
        usage = SimpleNamespace(free=free)
        monkeypatch.setattr("shutil.disk_usage", lambda folder: (requests.append(folder), usage)[1])
        error = sqlite3.OperationalError("so it is")
        if code is not None:
            error.sqlite_errorcode = code  # type: ignore[misc]
        with pytest.raises(kind, match=wrong), _translate_sqlite_errors(path):
            raise error
        assert requests in ([], [path.parent])
