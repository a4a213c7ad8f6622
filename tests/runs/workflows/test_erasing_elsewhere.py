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
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.workflows.fragments import Fragments, encoded_forms, erase_calls
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
    return [form for form in encoded_forms(text, encoded_twice=True) if form in content]


class ScoredProject:
    """A run with two responses judged by a model, and its cache and recording."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.run, self.cache, self.recording = folder / "run", folder / "cache", folder / "calls.jsonl"
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
def test_nothing_is_left_in_run_cache_and_recording(scored: ScoredProject, what: Any, name: str) -> None:
    done = erase(scored.run, what, name, "")
    assert done.unreached == []
    assert (done.replies > 0, done.calls > 0) == (True, True)
    assert containing_files(SECRET, *scored.places) == containing_files(QUOTED, *scored.places) == []
    verify_run(scored.run)


def test_a_cached_reply_that_quotes_the_text_is_erased(scored: ScoredProject) -> None:
    reply = json.dumps({"reason": "It resembles the other one.", "quotes": [SECRET[:40]]})
    with closing(Cache(scored.cache)) as cache:
        cache.put({"f" * 64: CachedReply(Reply(text=reply), None), "e" * 64: CachedReply(Reply(text=OTHER), None)})
    erase(scored.run, "response", "t/a", "")
    assert containing_files(SECRET[:19], scored.cache) == []
    with closing(Cache(scored.cache)) as cache:
        assert cache.get("f" * 64) is None
        assert cache.get("e" * 64) is not None


def test_a_verdict_on_another_response_that_quotes_the_text_is_erased(tmp_path: Path) -> None:
    message = "It resembles the other one: 'I take back: «naïve» 'quoted' and \"twice\", for'"
    with run_server(lambda body, number: judge_reply(body, reason=message)) as server:
        scored = ScoredProject(tmp_path, server)
        assert containing_files(SECRET[20:50], scored.run)
        done = erase(scored.run, "response", "t/a", "")
    assert done.erased_in_others > 0
    assert containing_files(SECRET[20:50], *scored.places) == []
    assert containing_files(OTHER, scored.run)
    verify_run(scored.run)

    assert containing_files(SECRET[:19], scored.cache) == []
    with closing(Cache(scored.cache)) as cache:
        cache.put({"f" * 64: CachedReply(Reply(text=SECRET * 9), None)})
        cache.drop("f" * 64)
    erase(scored.run, "response", "t/a", "")
    assert containing_files(SECRET, scored.cache) == []


def test_leftovers_of_killed_processes_are_cleaned(scored: ScoredProject) -> None:
    with closing(sqlite3.connect(scored.run / "run.sqlite")) as ledger:
        ledger.execute("PRAGMA journal_mode = WAL")
        ledger.execute("UPDATE texts SET content = content")
        ledger.commit()
        for name in ("run.sqlite", "run.sqlite-wal"):  # as a killed process leaves them, without a checkpoint
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
            "calls.jsonl: the recording cannot be rewritten (No such file or directory); put it back there" in message
        )
        moved.rename(scored.recording)
        again = erase(scored.run, "response", "t/a", "")
        assert (again.unreached, again.calls > 0) == ([], True)
        assert containing_files(SECRET, *scored.places) == []

    def test_a_cache_in_use_is_named_and_erased_later(
        self, scored: ScoredProject, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("jurygraph.models.cache._ERASE_TIMEOUT", 0.05)
        with closing(sqlite3.connect(scored.cache / "cache.db", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM Cache").fetchone()
            (message,) = erase(scored.run, "response", "t/a", "").unreached
        assert "the cache could not be searched and rewritten" in message
        assert erase(scored.run, "response", "t/a", "").unreached == []
        assert containing_files(SECRET, *scored.places) == containing_files(QUOTED, *scored.places) == []


class TestRecordings:
    """Rewriting the lines of a recording."""

    @staticmethod
    def call_line(text: str) -> bytes:
        request = Request(provider="p", model="m", messages=(Message(role="user", content=text),))
        call = {"key": request.digest, "request": request.model_dump(mode="json"), "reply": {"text": "yes"}}
        return json.dumps(call).encode() + b"\n"

    def test_other_lines_keep_their_bytes_and_the_file_is_replaced_atomically(self, tmp_path: Path) -> None:
        kept, torn = self.call_line(OTHER) + b'{"a line of": "another kind"}\n\n', b'{"key": "torn'
        path = tmp_path / "calls.jsonl"
        path.write_bytes(kept + self.call_line(f"Judge this: {SECRET}") + torn)
        assert erase_calls(path, set(), Fragments([SECRET])) == 1
        assert path.read_bytes() == kept + torn
        assert [one.name for one in tmp_path.iterdir()] == ["calls.jsonl"]

    def test_the_target_of_a_link_is_rewritten(self, tmp_path: Path) -> None:
        (tmp_path / "there").mkdir()
        path = tmp_path / "there" / "calls.jsonl"
        path.write_bytes(self.call_line(SECRET))
        (tmp_path / "link").symlink_to(path)
        assert erase_calls(tmp_path / "link", set(), Fragments([SECRET])) == 1
        assert (tmp_path / "link").is_symlink()
        assert path.read_bytes() == b""
