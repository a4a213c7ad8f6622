"""The ledger: chained records with texts outside the chain, durable once committed."""

import hashlib
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from jurygraph.errors import InputError, TraceMismatch
from jurygraph.runs.store.joined_ledger import JoinedLedger
from jurygraph.runs.store.ledger import (
    FIRST_CHAIN_LINK,
    MAX_TEXTS_PER_RECORD,
    SCHEMA_VERSION,
    Ledger,
    RecordDraft,
    compute_record_link,
)
from jurygraph.schema import canonical_json


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.sqlite"


def make_ledger(path: Path, records: int = 3) -> Ledger:
    ledger = Ledger.create(path)
    for number in range(records):
        ledger.append(
            RecordDraft(
                "trace", f"r{number}", {"value": number}, [f"text {number}".encode(), b"second"]
            )
        )
    ledger.commit()
    return ledger


def execute_sql(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)
    connection.close()


class TestChain:
    def test_a_link_hashes_the_previous_link_and_the_whole_record(self, path: Path) -> None:
        ledger = make_ledger(path, 2)
        first, second = ledger.records()
        header = canonical_json([2, "trace", "r1", second.at])
        assert (
            second.link
            == hashlib.sha256(first.link + header + b"\n" + second.body.encode()).digest()
        )
        assert first.link == compute_record_link(FIRST_CHAIN_LINK, *first[:5])
        assert (ledger.count, ledger.head) == (2, second.link)

    @pytest.mark.parametrize(
        ("column", "value"),
        [("kind", "group"), ("key", "r9"), ("at", 5), ("body", "{}"), ("link", b"x" * 32)],
    )
    def test_a_changed_record_breaks_the_chain(
        self, path: Path, column: str, value: object
    ) -> None:
        make_ledger(path).close()
        execute_sql(path, f"UPDATE records SET {column} = ? WHERE seq = 2", value)
        with pytest.raises(TraceMismatch, match="record 2 "):
            list(Ledger.open(path).verified_records(1, 3))

    def test_a_missing_record_is_named(self, path: Path) -> None:
        make_ledger(path).close()
        execute_sql(path, "DELETE FROM records WHERE seq = 2")
        with pytest.raises(TraceMismatch, match="record 2 is missing"):
            list(Ledger.open(path).verified_records(1, 3))
        with pytest.raises(TraceMismatch, match="record 4 is missing"):
            list(Ledger.open(path).verified_records(4, 4))


class TestCreation:
    def test_a_file_that_is_no_ledger_is_named(self, path: Path) -> None:
        path.write_bytes(b"no database " * 100)
        with pytest.raises(TraceMismatch, match=r"run\.sqlite: is damaged"):
            Ledger.create(path)


class TestTransactions:
    def test_uncommitted_records_are_discarded(self, path: Path) -> None:
        ledger = make_ledger(path)
        ledger.append(RecordDraft("trace", "late", {}))
        ledger.close()
        assert Ledger.open(path).count == 3

    def test_a_rollback_restores_count_and_head(self, path: Path) -> None:
        ledger = make_ledger(path)
        before = ledger.count, ledger.head
        ledger.append(RecordDraft("trace", "late", {}, [b"text"]))
        ledger.rollback()
        assert (ledger.count, ledger.head) == before
        assert ledger.append(RecordDraft("trace", "next", {}, [b"text"])) == 4

    def test_a_writer_does_not_block_a_reader(self, path: Path) -> None:
        writer = make_ledger(path)
        reader = Ledger.open(path)
        writer.append(RecordDraft("trace", "late", {}))
        assert [record.key for record in reader.records()] == ["r0", "r1", "r2"]
        writer.commit()
        assert reader.count == 3, "a reader sees the run as it was when it was opened"

    def test_a_number_that_json_cannot_represent_is_refused(self, path: Path) -> None:
        with pytest.raises(ValueError, match="JSON"):
            Ledger.create(path).append(RecordDraft("trace", "r", {"value": float("nan")}))


class TestSearch:
    def test_records_come_in_order_by_kind_and_range(self, path: Path) -> None:
        ledger = make_ledger(path, 1200)
        ledger.append(RecordDraft("close", "", {}))
        assert [record.seq for record in ledger.records()] == list(range(1, 1202))
        assert [record.seq for record in ledger.records("close")] == [1201]
        assert [
            record.seq for record in ledger.records("trace", after=1195, up_to_record=1198)
        ] == [
            1196,
            1197,
            1198,
        ]
        assert (
            list(ledger.record_numbers("close")),
            list(ledger.record_numbers("trace", up_to_record=2)),
        ) == (
            [1201],
            [1, 2],
        )
        assert list(ledger.records(up_to_record=0)) == []
        assert list(JoinedLedger(path, [ledger]).records(up_to_record=0)) == []
        assert list(JoinedLedger(path, [ledger, ledger]).record_numbers("close")) == [1201, 2402]

    def test_a_thousand_records_appended_at_once_are_found_by_their_keys(self, path: Path) -> None:
        ledger = Ledger.create(path)
        drafts = [RecordDraft("trace", f"r{number}", {}, [b"a", b"b"]) for number in range(1001)]
        ledger.append(*drafts)
        ledger.commit()
        assert [record.key for record in ledger.records()] == [draft.key for draft in drafts]
        assert len(list(ledger.verified_copies(1, 1001))) == 1001

    def test_the_last_record_with_a_key_is_found(self, path: Path) -> None:
        ledger = make_ledger(path)
        ledger.append(RecordDraft("erasure", "r1", {"number": 1}))
        ledger.append(RecordDraft("erasure", "r1", {"number": 2}))
        found = ledger.find("erasure", "r1")
        assert found is not None
        assert found.content == {"number": 2}
        assert ledger.find("trace", "r9") is None

    def test_the_first_texts_of_a_kind_are_those_of_its_records(self, path: Path) -> None:
        ledger = make_ledger(path)
        ledger.append(RecordDraft("plan", "p", {}, [b"another"]), RecordDraft("trace", "none", {}))
        ledger.commit()
        assert [text.content for text in ledger.first_text_per_record("trace")] == [
            b"text 0",
            b"text 1",
            b"text 2",
        ]
        assert [text.content for text in ledger.first_text_per_record("plan")] == [b"another"]


class TestErasure:
    def test_an_erased_text_is_nowhere_in_the_folder(self, path: Path) -> None:
        ledger = Ledger.create(path)
        secret = b"a word that nobody may read again"
        ledger.append(RecordDraft("trace", "r", {}, [secret, secret * 500]))
        ledger.commit()
        ledger.erase([MAX_TEXTS_PER_RECORD, MAX_TEXTS_PER_RECORD + 1])
        ledger.commit()
        ledger.compact()
        file_contents = b"".join(file.read_bytes() for file in path.parent.iterdir())
        assert secret not in file_contents
        assert list(ledger.stored_texts(1, 1)) == []


class TestFile:
    def test_a_ledger_of_a_newer_version_is_refused(self, path: Path) -> None:
        make_ledger(path).close()
        execute_sql(path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
        with pytest.raises(
            InputError, match=r"newer jurygraph \(schema version 4; .* upgrade jurygraph"
        ):
            Ledger.open(path)

    def test_an_unknown_schema_version_is_damage(self, path: Path) -> None:
        make_ledger(path).close()
        execute_sql(path, "PRAGMA user_version = 0")
        with pytest.raises(TraceMismatch, match="schema version 0"):
            Ledger.open(path)

    @pytest.mark.parametrize(
        "content", [b"no database", b"SQLite format 3\0" + b"\1" * 200], ids=["text", "torn"]
    )
    def test_a_file_that_is_no_database_is_damage(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        with pytest.raises(TraceMismatch, match=r"run\.sqlite"):
            Ledger.open(path)

    def test_groups_that_cannot_be_read_are_damage(self, path: Path) -> None:
        ledger = make_ledger(path)
        execute_sql(path, "DROP TABLE records")
        with pytest.raises(TraceMismatch, match=r"run\.sqlite: "):
            list(ledger.ordered_group_numbers())

    def test_bytes_after_the_end_are_a_fault(self, path: Path) -> None:
        make_ledger(path).close()
        path.write_bytes(path.read_bytes() + b"more")
        assert list(Ledger.open(path).find_file_faults()) == [
            "4 bytes follow the end of the database"
        ]

    def test_a_foreign_table_is_a_fault(self, path: Path) -> None:
        make_ledger(path).close()
        execute_sql(path, "CREATE TRIGGER spy AFTER INSERT ON records BEGIN DELETE FROM texts; END")
        assert list(Ledger.open(path).find_file_faults()) == [
            "table or index 'spy' is not as jurygraph made it"
        ]

    def test_a_full_disk_is_reported_and_nothing_is_half_written(self, path: Path) -> None:
        ledger = make_ledger(path)
        # SQLite's own simulation of a full disk
        ledger._connection.execute("PRAGMA max_page_count = 10")
        with pytest.raises(InputError, match="the disk is full; free some space"):
            ledger.append(RecordDraft("trace", "big", {}, [b"x" * 100_000]))
        ledger.rollback()
        assert ledger.count == 3
        assert json.loads(ledger.record_at(3).body)["value"] == 2

    @pytest.mark.landing
    def test_the_open_transaction_of_a_killed_process_is_rolled_back_for_a_reader(
        self, path: Path
    ) -> None:
        make_ledger(path, 400).close()
        script = (
            "import os, signal, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
            "c.execute('PRAGMA journal_mode = DELETE'); c.execute('PRAGMA cache_size = 1'); c.execute('BEGIN')\n"
            "c.execute('UPDATE records SET body = body || body'); os.kill(os.getpid(), signal.SIGKILL)"
        )
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA journal_mode = DELETE")
        connection.close()
        subprocess.run([sys.executable, "-c", script, str(path)], check=False)
        assert path.with_name("run.sqlite-journal").stat().st_size
        assert len(list(Ledger.open(path).verified_records(1, 400))) == 400

    def test_a_trigger_cannot_hide_behind_the_name_of_a_table(self, path: Path) -> None:
        make_ledger(path).close()
        execute_sql(
            path, "CREATE TRIGGER texts AFTER INSERT ON records BEGIN DELETE FROM texts; END"
        )
        assert "'texts' is not as jurygraph made it" in next(Ledger.open(path).find_file_faults())
