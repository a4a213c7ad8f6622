"""Group commits: durable batches are in the file, and an error is raised by the next append."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError
from jurygraph.runs.store import ledger as writer_module
from jurygraph.runs.store.ledger import Ledger, RecordDraft, Writer


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an asynchronous test."""

    @wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(test(**fixtures))

    return run


def make_batch(number: int, size: int = 2) -> list[RecordDraft]:
    return [
        RecordDraft("trace", f"{number}/{place}", {"number": number}, [b"text"])
        for place in range(size)
    ]


def open_ledger(folder: Path) -> Ledger:
    ledger = Ledger.open(folder / "run.sqlite")
    assert ledger is not None
    return ledger


@in_loop
async def test_batches_are_written_in_order(tmp_path: Path) -> None:
    writer = Writer(Ledger.create(tmp_path / "run.sqlite"))
    for number in range(500):
        writer.append(make_batch(number))
        await asyncio.sleep(0)
    writer.close()
    keys = [record.key for record in open_ledger(tmp_path).verified_records(1, 1000)]
    assert keys == [f"{number}/{place}" for number in range(500) for place in range(2)]


@in_loop
async def test_a_batch_is_in_the_file_once_it_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(Ledger.create(tmp_path / "run.sqlite"))
    await writer.append_durably(make_batch(1))
    assert open_ledger(tmp_path).count == 2
    monkeypatch.setattr(writer_module, "_MAX_COMMIT_WAIT_SECONDS", 60.0)
    writer.append(make_batch(2))
    assert open_ledger(tmp_path).count == 2
    writer.close()
    assert open_ledger(tmp_path).count == 4


@in_loop
async def test_batches_of_some_milliseconds_share_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.create(tmp_path / "run.sqlite")
    commits: list[int] = []
    commit = ledger.commit
    monkeypatch.setattr(ledger, "commit", lambda: (commits.append(ledger.count), commit()))
    writer = Writer(ledger)
    await asyncio.gather(*(writer.append_durably(make_batch(number)) for number in range(200)))
    assert commits == [400]
    writer.close()


@in_loop
async def test_who_appends_more_than_may_wait_waits_for_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.create(tmp_path / "run.sqlite")
    begun, goes_on, commit = threading.Event(), threading.Event(), ledger.commit
    monkeypatch.setattr(writer_module, "_MAX_WAITING_BATCHES", 1)
    monkeypatch.setattr(ledger, "commit", lambda: (begun.set(), goes_on.wait(10), commit()))
    writer = Writer(ledger)
    first = asyncio.create_task(writer.append_durably(make_batch(1)))
    await asyncio.to_thread(begun.wait)
    writer.append(make_batch(2))
    crowded = asyncio.create_task(asyncio.to_thread(writer.append, make_batch(3)))
    await asyncio.wait({crowded}, timeout=0.05)
    assert not crowded.done()
    (thread,) = [one for one in threading.enumerate() if one.name == "jurygraph-ledger"]
    assert thread.daemon, "a run that is not closed does not keep the process from ending"
    goes_on.set()
    await asyncio.gather(first, crowded)
    writer.close()
    assert open_ledger(tmp_path).count == 6


@in_loop
async def test_an_error_stops_the_writing_and_is_raised(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "run.sqlite")
    writer = Writer(ledger)
    await writer.append_durably(make_batch(1))
    ledger._connection.execute("PRAGMA max_page_count = 8")
    with pytest.raises(InputError, match="disk is full"):
        await writer.append_durably([RecordDraft("trace", "big", {}, [b"x" * 100_000])])
    with pytest.raises(InputError, match="disk is full"):
        writer.append(make_batch(2))
    with pytest.raises(InputError, match="disk is full"):
        await writer.append_durably(make_batch(3))
    assert writer._batches.empty(), "nobody is left waiting for a commit that never comes"
    with pytest.raises(InputError, match="disk is full"):
        writer.close()
    ledger.close()
    assert open_ledger(tmp_path).count == 2, "what was durable stays, and nothing is half-written"


@in_loop
async def test_an_error_of_the_commit_reaches_all_who_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise InputError("no more disk")

    ledger = Ledger.create(tmp_path / "run.sqlite")
    writer = Writer(ledger)
    monkeypatch.setattr(ledger, "commit", fail)
    waiting = [writer.append_durably(make_batch(number)) for number in range(3)]
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [str(result) for result in results] == ["no more disk"] * 3
    with pytest.raises(InputError, match="no more disk"):
        writer.close()
    assert ledger.count == 0


@in_loop
async def test_closing_waits_for_the_commit_under_way_and_writes_what_came_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.create(tmp_path / "run.sqlite")
    begun, goes_on, commit = threading.Event(), threading.Event(), ledger.commit
    monkeypatch.setattr(ledger, "commit", lambda: (begun.set(), goes_on.wait(10), commit()))
    writer = Writer(ledger)
    first = asyncio.create_task(writer.append_durably(make_batch(1)))
    await asyncio.to_thread(begun.wait)
    second = asyncio.create_task(writer.append_durably(make_batch(2)))
    await asyncio.sleep(0)
    threading.Timer(0.05, goes_on.set).start()
    writer.close()
    await asyncio.gather(first, second)
    assert open_ledger(tmp_path).count == 4


def test_a_loop_that_ends_during_a_commit_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.create(tmp_path / "run.sqlite")
    begun, goes_on, commit = threading.Event(), threading.Event(), ledger.commit
    monkeypatch.setattr(ledger, "commit", lambda: (begun.set(), goes_on.wait(10), commit()))

    async def append() -> Writer:
        writer = Writer(ledger)
        writer.append(make_batch(1))
        await asyncio.to_thread(begun.wait)
        writer.append(make_batch(2))
        return writer

    writer = asyncio.run(append())
    goes_on.set()
    writer.close()
    assert open_ledger(tmp_path).count == 4


@in_loop
async def test_the_ledger_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    """A resumed run has its plans already, so its first write happens while a plan is being read."""
    begun = Ledger.create(tmp_path / "run.sqlite")
    begun.append(*make_batch(0))
    begun.commit()
    begun.close_as_plain_file()
    ledger = Ledger.open(tmp_path / "run.sqlite", write=True)
    assert ledger is not None
    writer = Writer(ledger)
    reading = ledger.keys("trace")
    assert next(reading) == "0/0"
    await writer.append_durably(make_batch(1))
    assert "0/1" in list(reading)
    writer.close()
    assert ledger.count == 4
