"""Scoring into a run: nothing is written too early, requested twice or lost."""

import asyncio
import json
from pathlib import Path

import pytest

from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from tests.runs.sample_runs import (
    FULL_CONFIG,
    REQUESTED,
    SIMPLE_CONFIG,
    make_tasks,
    open_job,
    plan,
    score,
    trace_contents,
    traces_of,
    verify_run,
    write_tasks,
)


def test_a_run_is_two_files_and_a_lock(plain: Path) -> None:
    assert sorted(path.name for path in plain.iterdir()) == [
        "config.yaml",
        "run.lock",
        "run.sqlite",
    ]
    assert (plain / "run.lock").read_bytes() == b""


@pytest.mark.landing
@pytest.mark.parametrize("stop_after", [1, 2, 3])
@pytest.mark.parametrize("config", [SIMPLE_CONFIG, FULL_CONFIG], ids=["plain", "rich"])
def test_an_interrupted_run_continues_where_it_stopped(
    tmp_path: Path, config: dict, stop_after: int
) -> None:
    tasks = write_tasks(tmp_path, make_tasks())
    with pytest.raises(KeyboardInterrupt):
        score(tmp_path / "run", tasks, config, stop_after=stop_after)
    assert Run.open(tmp_path / "run").tasks_scored == stop_after
    verify_run(tmp_path / "run")
    stored = {trace.task_id for trace in traces_of(tmp_path / "run")}
    scored = score(tmp_path / "run", tasks, config)
    asked = {question_and_response[1][0][:2] for question_and_response in REQUESTED}
    assert asked == {f"t{t}" for t in range(4)} - stored
    whole = score(tmp_path / "whole", tasks, config)
    assert trace_contents(tmp_path / "run") == trace_contents(tmp_path / "whole")
    assert scored.summary.to_json() == whole.summary.to_json()
    assert scored.summary.lowest == whole.summary.lowest
    assert verify_run(tmp_path / "run").traces == 12


def test_a_complete_run_is_unchanged(plain: Path, tasks: Path) -> None:
    before = (plain / "run.sqlite").read_bytes()
    scored = score(plain, tasks)
    assert scored.stored_work.is_finished
    assert REQUESTED == []
    assert scored.summary.responses == 12
    assert (plain / "run.sqlite").read_bytes() == before


def test_a_limited_run_can_be_completed(tmp_path: Path, tasks: Path, plain: Path) -> None:
    score(tmp_path / "run", tasks, limit=1)
    run = Run.open(tmp_path / "run")
    assert (run.tasks_scored, run.is_closed) == (1, False)
    assert score(tmp_path / "run", tasks, limit=1).stored_work.is_finished
    score(tmp_path / "run", tasks)
    assert trace_contents(tmp_path / "run") == trace_contents(plain)
    assert Run.open(tmp_path / "run").is_closed


def test_a_file_changed_while_scoring_stops_the_run_without_loss(tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path, make_tasks(tasks=40))
    with open_job(tmp_path / "run", tasks) as (job, stored):
        scoring = asyncio.run(plan(job, stored))
        write_tasks(tmp_path, make_tasks(tasks=40, seed=1))
        with pytest.raises(InputError, match="changed"):
            asyncio.run(scoring.score(lambda count: None))
    verify_run(tmp_path / "run")


def test_the_header_describes_the_inputs(plain: Path) -> None:
    header = json.loads(Run.open(plain).ledger.record_at(1).body)
    assert header["evaluators"]["tone"].items() >= {"version": "1", "audience": "task"}.items()
    assert header["combiners"].keys() >= {"mean"}
    assert header["config"]["reward"] == SIMPLE_CONFIG["reward"]
    assert (header["base"], header["branch"]) == (None, None)
