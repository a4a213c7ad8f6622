"""A run of the first form can be migrated without asking anything.

`tests/data/first_form` was written by the version before the ledger.
"""

import json
import shutil
from pathlib import Path

import pytest

from jurygraph.errors import InputError, TraceMismatch
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.migration import migrate
from jurygraph.runs.workflows.rescoring import rescore
from jurygraph.sources import read_work
from tests.runs.made import checked, contents

DATA = Path(__file__).parents[2] / "data" / "first_form"
TASKS = DATA / "v1tasks.jsonl"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    shutil.copytree(DATA / "run", tmp_path / "old")
    return tmp_path / "old"


def brought(old: Path, folder: Path, tasks: Path = TASKS) -> Path:
    with read_work(tasks) as work:
        migrate(old, folder, work, lambda count: None)
    return folder


def test_every_trace_is_what_it_was_and_the_run_verifies(old: Path, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in old.iterdir()}
    new = brought(old, tmp_path / "new")
    lines = [json.loads(line) | {"previous": None} for line in (old / "traces.jsonl").read_text().splitlines()]
    assert [json.loads(trace) for trace in contents(new)] == lines
    found = checked(new)
    assert (found.traces, found.closed) == (12, True)
    assert {path.name: path.read_bytes() for path in old.iterdir()} == before


def test_it_is_a_run_like_any_other(old: Path, tmp_path: Path) -> None:
    new = Run.open(brought(old, tmp_path / "new"))
    plans = [json.loads(line) for line in (old / "plans.jsonl").read_text().splitlines()]
    assert [new.plan_of(plan["plan"]["task_id"]).digest for plan in plans] == [plan["digest"] for plan in plans]
    assert rescore(new, tmp_path / "again", new.config, lambda count: None).changed == 0
    assert all(one.response is not None for one in new.scored_responses())


def test_a_run_that_was_killed_is_brought_over_as_far_as_it_had_come(old: Path, tmp_path: Path) -> None:
    traces = (old / "traces.jsonl").read_bytes().splitlines(keepends=True)
    (old / "traces.jsonl").write_bytes(b"".join(traces[:6]) + traces[6][:50])
    manifest = json.loads((old / "run.json").read_text()) | {"status": "interrupted"}
    (old / "run.json").write_text(json.dumps(manifest))
    new = Run.open(brought(old, tmp_path / "new"))
    assert (new.tasks_scored, new.tasks_planned, new.is_closed) == (1, 3, False)


@pytest.mark.parametrize(
    ("name", "was", "becomes", "said"),
    [
        ("traces.jsonl", b'"score":', b'"score": ', "line 2: does not follow the line before it"),
        ("traces.jsonl", b'"status":"ok"', b'"status":"OK"', "line 1: is no trace"),
        ("plans.jsonl", b'"weight": 1.0', b'"weight": 2.0', "line 1: is not the plan that was written"),
        ("config.yaml", b"steps: 0.5", b"steps: 0.6", "is not the config of this run"),
        ("run.json", b"{", b"[", "run.json: is no JSON"),
    ],
)
def test_what_was_changed_is_not_brought_over(
    old: Path, tmp_path: Path, name: str, was: bytes, becomes: bytes, said: str
) -> None:
    content = (old / name).read_bytes()
    assert was in content
    (old / name).write_bytes(content.replace(was, becomes, 1))
    with pytest.raises(TraceMismatch, match=said):
        brought(old, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_complete_run_that_has_lost_traces_is_not_brought_over(old: Path, tmp_path: Path) -> None:
    (old / "traces.jsonl").write_bytes(b"")
    with pytest.raises(TraceMismatch, match="12 of the 12 traces of this complete run are missing"):
        brought(old, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_other_tasks_are_refused(old: Path, tmp_path: Path) -> None:
    other = tmp_path / "tasks.jsonl"
    other.write_text(TASKS.read_text() + "\n")
    with pytest.raises(InputError, match="scored another tasks file; name the one that it scored"):
        brought(old, tmp_path / "new", other)


def test_where_an_old_run_is_opened_one_is_told_how_to_bring_it_over(old: Path) -> None:
    with pytest.raises(InputError, match=r"schema version 1; `jurygraph migrate .*old TASKS --out NEW` brings it over"):
        Run.open(old)


def test_a_run_of_today_needs_no_bringing_over(plain: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a run of schema version 1"):
        brought(plain, tmp_path / "new")
