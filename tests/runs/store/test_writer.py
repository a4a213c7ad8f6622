"""Group commits: durable batches are in the file, and an error is raised by the next append."""

import threading
from pathlib import Path

import pytest

from jurygraph.errors import InputError
from jurygraph.runs.store.chain import Draft
from jurygraph.runs.store.ledger import Ledger
from jurygraph.runs.store.writer import Writer


def make_batch(number: int, size: int = 2) -> list[Draft]:
    return [Draft("trace", f"{number}/{place}", {"number": number}, [b"text"]) for place in range(size)]


def test_batches_are_written_in_order(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "run.sqlite")
    writer = Writer(ledger)
    for number in range(500):
        writer.append(make_batch(number))
    writer.close()
    keys = [record.key for record in Ledger.open(tmp_path / "run.sqlite").verified_records(1, 1000)]
    assert keys == [f"{number}/{place}" for number in range(500) for place in range(2)]


def test_a_batch_is_in_the_file_once_its_future_is_done(tmp_path: Path) -> None:
    writer = Writer(Ledger.create(tmp_path / "run.sqlite"))
    writer.append(make_batch(1)).result(timeout=5)
    assert Ledger.open(tmp_path / "run.sqlite").count == 2
    writer.close()


def test_many_batches_share_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.create(tmp_path / "run.sqlite")
    commits: list[int] = []
    commit = ledger.commit
    monkeypatch.setattr(ledger, "commit", lambda: (commits.append(ledger.count), commit()))
    writer = Writer(ledger)
    for number in range(200):
        writer.append(make_batch(number))
    writer.close()
    assert len(commits) < 100
    assert commits[-1] == 400


def test_an_error_stops_the_writing_and_is_raised(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "run.sqlite")
    writer = Writer(ledger)
    writer.append(make_batch(1)).result(timeout=5)
    ledger._connection.execute("PRAGMA max_page_count = 8")
    failed = writer.append([Draft("trace", "big", {}, [b"x" * 100_000])])
    with pytest.raises(InputError, match="disk is full"):
        failed.result(timeout=5)
    with pytest.raises(InputError, match="disk is full"):
        writer.append(make_batch(2))
    with pytest.raises(InputError, match="disk is full"):
        writer.close()
    ledger.close()
    assert Ledger.open(tmp_path / "run.sqlite").count == 2, "what was durable stays, and nothing is half-written"


def test_the_thread_is_a_named_daemon(tmp_path: Path) -> None:
    writer = Writer(Ledger.create(tmp_path / "run.sqlite"))
    (thread,) = [one for one in threading.enumerate() if one.name == "jurygraph-ledger"]
    assert thread.daemon
    writer.close()
    assert not thread.is_alive()


def test_the_ledger_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    """A resumed run has its plans already, so its first write happens while a plan is being read."""
    begun = Ledger.create(tmp_path / "run.sqlite")
    begun.append(*make_batch(0))
    begun.commit()
    begun.close_as_plain_file()
    ledger = Ledger.open(tmp_path / "run.sqlite", write=True)
    writer = Writer(ledger)
    reading = ledger.keys("trace")
    assert next(reading) == "0/0"
    writer.append(make_batch(1)).result(timeout=5)
    assert "0/1" in list(reading)
    writer.close()
    assert ledger.count == 4
