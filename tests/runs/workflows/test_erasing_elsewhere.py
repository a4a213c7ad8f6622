"""An erasure also covers the cache and the recording; unreachable places are named."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.models.cache import Cache, CachedReply
from jurygraph.models.request import Message, Reply, Request
from jurygraph.runs.workflows.erasure import erase, json_encodings, preview_erasure
from tests.models.judge_scripts import config, judge_reply, rubric
from tests.models.server import Server, run_server
from tests.runs.sample_runs import score, verify_run, write_tasks

SECRET = "My own words, which\nI take back: «naïve» 'quoted' and \"twice\", for good."
QUOTED = "My own words, which"
OTHER = "Somebody else wrote a letter that is altogether different from it."


def read_all_files(*places: Path) -> bytes:
    files = [path for place in places for path in (place.rglob("*") if place.is_dir() else [place])]
    return b"\0".join(path.read_bytes() for path in sorted(files) if path.is_file())


def containing_files(text: str, *places: Path) -> list[bytes]:
    """Return the forms of a text found in folders and files: plain, as JSON, and as JSON in JSON."""
    content = read_all_files(*places)
    return [form for form in json_encodings(text) if form in content]


class ScoredProject:
    """A run with two responses judged by a model, and its cache and recording."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.run, self.cache, self.recording = (
            folder / "run",
            folder / "cache",
            folder / "calls.jsonl",
        )
        task = rubric("kind", "short", name="t", query="Write a letter.").model_dump(mode="json")
        task["responses"] = [{"id": "t/a", "text": SECRET}, {"id": "t/b", "text": OTHER}]
        self.tasks = write_tasks(folder, [task])
        self.config = config(server.url, cache=True, record=str(self.recording))
        score(self.run, self.tasks, self.config)

    @property
    def places(self) -> tuple[Path, Path, Path]:
        return self.run, self.cache, self.recording


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that always agrees and quotes the first line of the response."""

    with run_server(lambda body, number: judge_reply(body)) as running:
        yield running


@pytest.fixture
def scored(tmp_path: Path, server: Server) -> ScoredProject:
    found = ScoredProject(tmp_path, server)
    assert all(containing_files(SECRET, place) for place in (found.run, found.recording))
    assert containing_files(QUOTED, found.cache)
    return found


@pytest.mark.parametrize(("what", "name"), [("response", "t/a"), ("task", "t")])
def test_nothing_is_left_in_run_cache_and_recording(
    scored: ScoredProject, what: Any, name: str
) -> None:
    expected = preview_erasure(scored.run, what, name)
    assert containing_files(QUOTED, scored.cache)
    done = erase(scored.run, what, name, "")
    assert done._replace(replies=0, calls=0) == expected
    assert done.unreached == []
    assert (done.replies > 0, done.calls > 0) == (True, True)
    assert (
        containing_files(SECRET, *scored.places) == containing_files(QUOTED, *scored.places) == []
    )
    verify_run(scored.run)


def test_a_reply_of_another_request_that_contains_the_text_is_erased(scored: ScoredProject) -> None:
    reply = json.dumps({"reason": f"It resembles the other one: {SECRET}"})
    with closing(Cache(scored.cache)) as cache:
        cache.put(
            {
                "f" * 64: CachedReply(Reply(text=reply), None),
                "e" * 64: CachedReply(Reply(text=OTHER), None),
            }
        )
        cache.put({"d" * 64: CachedReply(Reply(text=SECRET * 9), None)})
        cache.drop("d" * 64)  # its bytes are still in the file
    erase(scored.run, "response", "t/a", "")
    assert containing_files(SECRET, scored.cache) == []
    with closing(Cache(scored.cache)) as cache:
        assert cache.get("f" * 64) is None
        assert cache.get("e" * 64) is not None


def test_other_lines_of_a_recording_keep_their_bytes(scored: ScoredProject) -> None:
    recording = scored.recording.rename(scored.recording.with_name("there.jsonl"))
    scored.recording.symlink_to(recording)
    request = Request(
        provider="p", model="m", messages=(Message(role="user", content=f"Judge this: {SECRET}"),)
    )
    call = {
        "key": request.digest,
        "request": request.model_dump(mode="json"),
        "reply": {"text": "yes"},
    }
    added = b'{"a line of": "another kind"}\n\n', b'{"key": "torn'
    with recording.open("ab") as file:
        file.write(added[0] + json.dumps(call).encode() + b"\n" + added[1])
    erase(scored.run, "response", "t/a", "")
    assert containing_files(SECRET, *scored.places) == []
    assert recording.read_bytes().endswith(b"".join(added))
    assert scored.recording.is_symlink()


def test_leftovers_of_killed_processes_are_cleaned(scored: ScoredProject) -> None:
    with closing(sqlite3.connect(scored.run / "run.sqlite")) as ledger:
        ledger.execute("PRAGMA journal_mode = WAL")
        ledger.execute("UPDATE texts SET content = content")
        ledger.commit()
        # as a killed process leaves them, without a checkpoint
        for name in (
            "run.sqlite",
            "run.sqlite-wal",
        ):
            shutil.copy(scored.run / name, scored.run.parent / name)
    for name in ("run.sqlite", "run.sqlite-wal"):
        shutil.copy(scored.run.parent / name, scored.run / name)
    (scored.run / ".jurygraph-0123456.draft").write_text(SECRET)
    erase(scored.run, "response", "t/a", "")
    assert containing_files(SECRET, *scored.places) == []


class TestUnreached:
    def test_a_moved_recording_is_named_and_erased_later(self, scored: ScoredProject) -> None:
        moved = scored.recording.rename(scored.recording.with_name("moved.jsonl"))
        (message,) = erase(scored.run, "response", "t/a", "").unreached
        assert (
            "calls.jsonl: the recording cannot be rewritten (No such file or directory); put it back there"
            in message
        )
        moved.rename(scored.recording)
        again = erase(scored.run, "response", "t/a", "")
        assert (again.unreached, again.calls > 0) == ([], True)
        assert containing_files(SECRET, *scored.places) == []

    def test_a_cache_in_use_is_named_and_erased_later(
        self, scored: ScoredProject, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("jurygraph.models.cache._ERASE_TIMEOUT_SECONDS", 0.05)
        with closing(sqlite3.connect(scored.cache / "cache.db", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM Cache").fetchone()
            (message,) = erase(scored.run, "response", "t/a", "").unreached
        assert "the cache could not be searched and rewritten" in message
        assert erase(scored.run, "response", "t/a", "").unreached == []
        assert (
            containing_files(SECRET, *scored.places)
            == containing_files(QUOTED, *scored.places)
            == []
        )
