"""Closing a run."""

from pathlib import Path

import pytest

from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.runs.writable_run import close_run
from tests.runs.sample_runs import open_job, score, verify_run
from tests.runs.store.test_ledger import execute_sql


def test_a_complete_run_is_closed_with_its_count_and_previous_head(plain: Path) -> None:
    ledger = Run.open(plain).ledger
    record = ledger.find("close", "")
    assert record is not None
    assert record.content == {"traces": 12, "head": ledger.record_at(record.seq - 1).link.hex()}


def test_an_open_run_can_be_closed_early(tmp_path: Path, tasks: Path) -> None:
    score(tmp_path / "run", tasks, limit=2)
    closed = close_run(tmp_path / "run")
    assert (closed.traces, closed.head) == (6, verify_run(tmp_path / "run").head)
    with pytest.raises(
        InputError,
        match=r"was closed when 2 of 4 tasks were scored; score into another --out, with --branch",
    ):
        score(tmp_path / "run", tasks)
    assert score(tmp_path / "run", tasks, limit=2).stored_work.is_finished


def test_a_complete_but_open_run_is_closed_by_scoring_again(plain: Path, tasks: Path) -> None:
    execute_sql(plain / "run.sqlite", "DELETE FROM records WHERE kind = 'close'")
    with open_job(plain, tasks) as (_, stored):
        assert stored.is_finished
        stored.close_run_if_complete()
    assert verify_run(plain).closed


def test_closing_again_changes_nothing(plain: Path, tmp_path: Path) -> None:
    before = (plain / "run.sqlite").read_bytes()
    assert close_run(plain) == close_run(plain)
    assert (plain / "run.sqlite").read_bytes() == before
    with pytest.raises(InputError, match="does not exist"):
        close_run(tmp_path / "none")
