"""A bundle is one zip file that can be checked with Python only."""

import json
import shutil
import sqlite3
import tracemalloc
import zipfile
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import TraceMismatch
from jurygraph.interchange.traces import export_traces_as_jsonl
from jurygraph.runs.integrity import offline_verifier
from jurygraph.runs.integrity.verification import export_bundle
from jurygraph.runs.run import Run
from jurygraph.runs.store.ledger import MAX_TEXTS_PER_RECORD
from jurygraph.runs.workflows.erasure import erase
from tests.runs.integrity.test_verification import rewrite_chain
from tests.runs.sample_runs import SIMPLE_CONFIG, make_tasks, rescore_run, score, write_tasks
from tests.runs.store.test_ledger import execute_sql

OWN = ["README.txt", "verify.py", "config.yaml", "records.jsonl", "texts.jsonl", "traces.jsonl"]


def bundle(folder: Path, output: Path) -> Path:
    with closing(Run.open(folder)) as run:
        export_bundle(run, output, export_traces_as_jsonl(run))
    return output


def member(path: Path, name: str) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return archive.read(name)


def names(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def test_bundle_contains_the_whole_run(rich: Path, tmp_path: Path) -> None:
    made = bundle(rich, tmp_path / "bundle.zip")
    assert names(made) == OWN
    with closing(Run.open(rich)) as run:
        assert member(made, "traces.jsonl") == b"".join(export_traces_as_jsonl(run))
        records = [json.loads(line) for line in member(made, "records.jsonl").splitlines()]
        assert len(records) == run.ledger.count
        texts = [json.loads(line) for line in member(made, "texts.jsonl").splitlines()]
        assert len(texts) == len(list(run.ledger.stored_texts(1, run.ledger.count)))
    assert member(made, "config.yaml") == (rich / "config.yaml").read_bytes()
    assert member(made, "verify.py") == Path(offline_verifier.__file__).read_bytes()


def test_the_same_run_gives_the_same_bytes(rich: Path, tmp_path: Path) -> None:
    shutil.copytree(rich, tmp_path / "elsewhere")
    first = bundle(rich, tmp_path / "first.zip").read_bytes()
    assert bundle(rich, tmp_path / "second.zip").read_bytes() == first
    assert bundle(tmp_path / "elsewhere", tmp_path / "third.zip").read_bytes() == first


class TestRescoredRun:
    def test_records_and_texts_of_the_base_are_included(self, plain: Path, tmp_path: Path) -> None:
        other = rescore_run(plain, tmp_path / "other", "reward.tone=2.0")
        made = bundle(other, tmp_path / "bundle.zip")
        assert names(made) == [*OWN[:-1], "base/records.jsonl", "base/texts.jsonl", "traces.jsonl"]
        whole = bundle(plain, tmp_path / "whole.zip")
        for name in ("records.jsonl", "texts.jsonl"):
            assert member(made, f"base/{name}") == member(whole, name)

    def test_later_records_of_the_base_are_left_out(self, tmp_path: Path) -> None:
        folder = tmp_path / "run"
        tasks = write_tasks(tmp_path / "given", make_tasks())
        score(folder, tasks, SIMPLE_CONFIG, limit=2)
        other = rescore_run(folder, tmp_path / "other")
        before = member(bundle(other, tmp_path / "before.zip"), "base/records.jsonl")
        score(folder, tasks, SIMPLE_CONFIG)
        assert member(bundle(other, tmp_path / "after.zip"), "base/records.jsonl") == before

    def test_later_erasures_in_the_base_are_included(self, plain: Path, tmp_path: Path) -> None:
        other = rescore_run(plain, tmp_path / "other")
        erase(plain, "response", "t1/r0", "asked for")
        last = member(bundle(other, tmp_path / "bundle.zip"), "base/records.jsonl").splitlines()[-1]
        assert json.loads(last)["kind"] == "erasure"


class TestOutput:
    def test_nothing_is_written_of_a_changed_text_nor_of_one_that_is_not_utf_8(
        self, plain: Path, tmp_path: Path
    ) -> None:
        last = "WHERE id = (SELECT max(id) FROM texts)"
        execute_sql(plain / "run.sqlite", f"UPDATE texts SET content = x'ff' {last}")
        with pytest.raises(
            TraceMismatch, match=r"reason of response 't3/r2', .*: differs from what was written"
        ):
            bundle(plain, tmp_path / "bundle.zip")
        assert not (tmp_path / "bundle.zip").exists()
        with closing(sqlite3.connect(plain / "run.sqlite")) as connection:
            ((number, salt),) = connection.execute(f"SELECT id, salt FROM texts {last}")

        def forge_digest(kind: str, key: str, content: Any) -> None:
            if (kind, key) == ("trace", "t3/r2"):
                content["texts"][number % MAX_TEXTS_PER_RECORD] = sha256(salt + b"\xff").hexdigest()

        rewrite_chain(plain, forge_digest)
        with pytest.raises(TraceMismatch, match=r"run\.sqlite, text \d+: is not UTF-8"):
            bundle(plain, tmp_path / "bundle.zip")

    def test_a_large_run_is_streamed(self, plain: Path, tmp_path: Path) -> None:
        line = b"%s\n" % (b"x" * 50_000)
        with closing(Run.open(plain)) as run:
            tracemalloc.start()
            export_bundle(run, tmp_path / "bundle.zip", (line for _ in range(1000)))
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert most < 5_000_000
        assert member(tmp_path / "bundle.zip", "traces.jsonl") == line * 1000
