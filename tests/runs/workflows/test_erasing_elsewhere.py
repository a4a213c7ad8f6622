"""What is erased from a run is also gone from the cache and the recording; what cannot be reached is named."""

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
from jurygraph.runs.export import export_jsonl
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.workflows.folder_search import Fragments, encoded_forms, erase_calls
from tests.models.judging import config, judged, rubric
from tests.models.server import Server, serving
from tests.runs.made import PLAIN, checked, lines, score, write_tasks

SECRET = "My own words, which\nI take back: «naïve» 'quoted' and \"twice\", for good."
QUOTED = "My own words, which"
OTHER = "Somebody else wrote a letter that is altogether different from it."


def bytes_below(*places: Path) -> bytes:
    files = [path for place in places for path in (place.rglob("*") if place.is_dir() else [place])]
    return b"\0".join(path.read_bytes() for path in sorted(files) if path.is_file())


def held(text: str, *places: Path) -> list[bytes]:
    """The forms of a text that are found in folders and files: as it is, as JSON, and as JSON in JSON."""
    content = bytes_below(*places)
    return [form for form in encoded_forms(text, encoded_twice=True) if form in content]


class Scored:
    """A run of which a model judged two responses, with the cache and the recording that it left."""

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
    """It always answers yes, and quotes the first line of the response."""

    with serving(lambda body, number: judged(body)) as running:
        yield running


@pytest.fixture
def scored(tmp_path: Path, server: Server) -> Scored:
    found = Scored(tmp_path, server)
    assert all(held(SECRET, place) for place in (found.run, found.recording))
    assert held(QUOTED, found.cache)
    return found


@pytest.mark.parametrize(("what", "name"), [("response", "t/a"), ("task", "t")])
def test_nothing_of_it_is_left_in_run_cache_and_recording(scored: Scored, what: Any, name: str) -> None:
    done = erase(scored.run, what, name, "")
    assert (done.unreached, done.files) == ([], [])
    assert (done.replies > 0, done.calls > 0) == (True, True)
    assert held(SECRET, *scored.places) == held(QUOTED, *scored.places) == []
    checked(scored.run)


def test_what_others_wrote_stays_in_cache_and_recording(scored: Scored, server: Server, tmp_path: Path) -> None:
    erase(scored.run, "response", "t/a", "")
    assert held(OTHER, scored.recording)
    before = server.count
    lone = json.loads(scored.tasks.read_text())
    lone["responses"] = lone["responses"][1:]
    score(tmp_path / "again", write_tasks(tmp_path / "lone", [lone]), scored.config)
    assert server.count == before, "its replies came from the cache"


def test_a_quotation_in_a_cached_reply_to_somebody_else_goes_too(scored: Scored) -> None:
    reply = json.dumps({"reason": "It resembles the other one.", "quotes": [SECRET[:40]]})
    with closing(Cache(scored.cache)) as cache:
        cache.put({"f" * 64: CachedReply(Reply(text=reply), None), "e" * 64: CachedReply(Reply(text=OTHER), None)})
    erase(scored.run, "response", "t/a", "")
    assert held(SECRET[:19], scored.cache) == []
    with closing(Cache(scored.cache)) as cache:
        assert cache.get("f" * 64) is None
        assert cache.get("e" * 64) is not None


def test_a_quotation_in_what_was_said_of_another_response_goes_too(tmp_path: Path) -> None:
    said = "It resembles the other one: 'I take back: «naïve» 'quoted' and \"twice\", for'"
    with serving(lambda body, number: judged(body, reason=said)) as server:
        scored = Scored(tmp_path, server)
        assert held(SECRET[20:50], scored.run)
        done = erase(scored.run, "response", "t/a", "")
    assert done.erased_in_others > 0
    assert held(SECRET[20:50], *scored.places) == []
    assert held(OTHER, scored.run)
    checked(scored.run)


def test_a_reply_that_was_dropped_from_the_cache_before_leaves_nothing_in_its_file(scored: Scored) -> None:
    with closing(Cache(scored.cache)) as cache:
        cache.put({"f" * 64: CachedReply(Reply(text=SECRET * 9), None)})
        cache.drop("f" * 64)
    erase(scored.run, "response", "t/a", "")
    assert held(SECRET, scored.cache) == []


def test_leftovers_of_a_killed_export_and_a_write_ahead_log_hold_nothing(scored: Scored) -> None:
    with closing(Run.open(scored.run)) as run:
        (scored.run / ".rewards.jsonl.4711").write_bytes(next(export_jsonl(run)))
    with closing(sqlite3.connect(scored.run / "run.sqlite")) as ledger:
        ledger.execute("PRAGMA journal_mode = WAL")
        ledger.execute("UPDATE texts SET content = content")
        ledger.commit()
        for name in ("run.sqlite", "run.sqlite-wal"):  # as a kill leaves them, which checkpoints nothing
            shutil.copy(scored.run / name, scored.run.parent / name)
    for name in ("run.sqlite", "run.sqlite-wal"):
        shutil.copy(scored.run.parent / name, scored.run / name)
    done = erase(scored.run, "response", "t/a", "")
    assert [path.name for path in done.exports] == [".rewards.jsonl.4711"]
    assert held(SECRET, *scored.places) == []


class TestUnreached:
    def test_a_recording_that_moved_is_named_and_erased_from_the_next_time(self, scored: Scored) -> None:
        moved = scored.recording.rename(scored.recording.with_name("moved.jsonl"))
        (said,) = erase(scored.run, "response", "t/a", "").unreached
        assert "calls.jsonl: the recording cannot be rewritten (No such file or directory); put it back there" in said
        moved.rename(scored.recording)
        again = erase(scored.run, "response", "t/a", "")
        assert (again.unreached, again.calls > 0) == ([], True)
        assert held(SECRET, *scored.places) == []

    def test_a_cache_that_somebody_reads_is_named_and_erased_from_the_next_time(
        self, scored: Scored, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("jurygraph.models.cache._ERASE_TIMEOUT", 0.05)
        with closing(sqlite3.connect(scored.cache / "cache.db", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM Cache").fetchone()
            (said,) = erase(scored.run, "response", "t/a", "").unreached
        assert "the cache could not be searched and rewritten" in said
        assert erase(scored.run, "response", "t/a", "").unreached == []
        assert held(SECRET, *scored.places) == held(QUOTED, *scored.places) == []

    def test_a_damaged_cache_is_named(self, scored: Scored) -> None:
        (scored.cache / "cache.db").write_bytes(b"no database at all, but more than nothing" * 99)
        (said,) = erase(scored.run, "response", "t/a", "").unreached
        assert "the cache could not be searched and rewritten" in said

    def test_where_there_is_no_cache_none_is_made(self, scored: Scored) -> None:
        shutil.rmtree(scored.cache)
        assert erase(scored.run, "response", "t/a", "").unreached == []
        assert not scored.cache.exists()

    def test_a_folder_that_is_linked_or_a_binary_file_is_named(self, scored: Scored, tmp_path: Path) -> None:
        (tmp_path / "plots").mkdir()
        (scored.run / "plots").symlink_to(tmp_path / "plots")
        (scored.run / "plot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        said = erase(scored.run, "response", "t/a", "").unreached
        assert said == [
            f"{scored.run / 'plots'}: is a link to a folder, which is not searched",
            f"{scored.run / 'plot.png'}: is not UTF-8 text, so it cannot be searched",
        ]

    def test_an_export_that_cannot_be_removed_holds_nothing_up(
        self, scored: Scored, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with closing(Run.open(scored.run)) as run:
            (scored.run / "all.jsonl").write_bytes(b"".join(export_jsonl(run)))

        unlink = Path.unlink

        def refuse(path: Path, missing_ok: bool = False) -> None:
            if path.name == "all.jsonl":
                raise PermissionError(1, "Operation not permitted", str(path))
            unlink(path, missing_ok)

        with monkeypatch.context() as patched:
            patched.setattr(Path, "unlink", refuse)
            (said,) = erase(scored.run, "response", "t/a", "").unreached
        assert "all.jsonl: is an export that cannot be removed (Operation not permitted)" in said
        assert held(SECRET, scored.run / "run.sqlite") == []
        assert [path.name for path in erase(scored.run, "response", "t/a", "").exports] == ["all.jsonl"]

    def test_the_run_that_it_was_branched_from_is_named(self, tmp_path: Path) -> None:
        tasks = write_tasks(tmp_path / "given", lines())
        score(tmp_path / "old", tasks, PLAIN)
        score(tmp_path / "new", tasks, PLAIN, branch=tmp_path / "old")
        (said,) = erase(tmp_path / "new", "response", "t1/r0", "").unreached
        assert f"erase {tmp_path / 'old'} --response t1/r0" in said
        erase(tmp_path / "old", "response", "t1/r0", "")
        assert erase(tmp_path / "new", "response", "t1/r0", "").unreached == []

    def test_a_recording_that_answered_the_run_is_named_and_stays(self, scored: Scored, tmp_path: Path) -> None:
        replayed = {"model": f"replay:{scored.recording}", "evaluators": ["criteria"]}
        score(tmp_path / "replayed", scored.tasks, replayed)
        assert erase(tmp_path / "replayed", "response", "t/a", "").files == [scored.recording]
        assert held(SECRET, scored.recording)


class TestRecordings:
    """Lines of a recording."""

    @staticmethod
    def call(text: str) -> bytes:
        request = Request(provider="p", model="m", messages=(Message(role="user", content=text),))
        call = {"key": request.digest, "request": request.model_dump(mode="json"), "reply": {"text": "yes"}}
        return json.dumps(call).encode() + b"\n"

    def test_other_lines_stay_to_the_byte_and_the_file_is_never_half_written(self, tmp_path: Path) -> None:
        kept, torn = self.call(OTHER) + b'{"a line of": "another kind"}\n\n', b'{"key": "torn'
        path = tmp_path / "calls.jsonl"
        path.write_bytes(kept + self.call(f"Judge this: {SECRET}") + torn)
        assert erase_calls(path, set(), Fragments([SECRET])) == 1
        assert path.read_bytes() == kept + torn
        assert [one.name for one in tmp_path.iterdir()] == ["calls.jsonl"]

    def test_a_file_without_such_a_line_is_not_written(self, tmp_path: Path) -> None:
        path = tmp_path / "calls.jsonl"
        path.write_bytes(self.call(OTHER))
        before = path.stat()
        assert erase_calls(path, {"f" * 64}, Fragments([SECRET])) == 0
        assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)

    def test_through_a_link_the_file_itself_is_rewritten(self, tmp_path: Path) -> None:
        (tmp_path / "there").mkdir()
        path = tmp_path / "there" / "calls.jsonl"
        path.write_bytes(self.call(SECRET))
        (tmp_path / "link").symlink_to(path)
        assert erase_calls(tmp_path / "link", set(), Fragments([SECRET])) == 1
        assert (tmp_path / "link").is_symlink()
        assert path.read_bytes() == b""
