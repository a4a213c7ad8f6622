"""A ledger that was copied without the log that it needs."""

import logging
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from jurygraph.errors import InputError
from jurygraph.runs.store import ledger as ledger_module
from jurygraph.runs.store.ledger import Ledger, RecordDraft


def append_values(path: Path, *values: int) -> Ledger:
    """Append values to a ledger and leave it open, so that its last records are in its log."""
    ledger = Ledger.create(path) if not path.exists() else Ledger.open(path, write=True)
    assert ledger is not None
    for value in values:
        ledger.append(RecordDraft("trace", f"r{value}", {"value": value}, [b"text " * 2000]))
        ledger.commit()
    return ledger


def log_path(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    path = tmp_path / "finished" / "run.sqlite"
    path.parent.mkdir()
    append_values(path, 1, 2, 3).close_as_plain_file()
    assert not log_path(path).exists()
    return path


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """Copy a ledger and its log as a killed writer leaves them."""
    path, copy = tmp_path / "killed" / "run.sqlite", tmp_path / "copy" / "run.sqlite"
    path.parent.mkdir()
    copy.parent.mkdir()
    append_values(path, 7).close_as_plain_file()
    ledger = append_values(path, 8, 9)
    shutil.copy(path, copy)
    shutil.copy(log_path(path), log_path(copy))
    ledger.close()
    return copy


@pytest.mark.parametrize("for_writing", [False, True])
def test_a_ledger_of_a_killed_process_with_its_log_is_complete(
    killed: Path, for_writing: bool, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = Ledger.open(killed, write=for_writing)
    assert ledger is not None
    assert ledger.count == 3
    ledger.close()
    assert caplog.text == ""


def test_a_ledger_with_a_log_that_another_program_locks_is_named(
    killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jurygraph.runs.store.ledger.LOCK_TIMEOUT_SECONDS", 0.0)
    with closing(sqlite3.connect(killed, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match="is locked by another program"):
            Ledger.open(killed)


def test_a_writer_that_is_killed_before_its_first_record_misses_no_log(
    finished: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer = Ledger.open(finished, write=True)
    assert writer is not None
    writer.prepare_for_writing()
    copy = finished.parent / "copy.sqlite"
    for source, target in ((finished, copy), (log_path(finished), log_path(copy))):
        shutil.copy(source, target)
    writer.close()
    ledger = Ledger.open(copy)
    assert ledger is not None
    assert ledger.count == 3
    ledger.close()
    assert caplog.text == ""


def test_a_ledger_copied_without_its_log_gives_one_warning_in_each_process(
    killed: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log_path(killed).unlink()
    for is_new_process in (True, True, False):
        if is_new_process:
            ledger_module._warn_once.cache_clear()
        with caplog.at_level(logging.WARNING):
            ledger = Ledger.open(killed)
        assert ledger is not None
        assert ledger.count == 1
        ledger.close()
    assert log_path(killed).stat().st_size == 0  # readers leave it
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        f"{killed}: was being written, and its log run.sqlite-wal is missing"
    ] * 2
    assert {record.name.partition(".")[0] for record in caplog.records} == {"jurygraph"}, (
        "the root logger is not ours"
    )
