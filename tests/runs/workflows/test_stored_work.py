"""Opening a run to go on with it: it is refused where anything else was scored, and locked for other processes."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError
from tests.runs.sample_runs import (
    SIMPLE_CONFIG,
    make_tasks,
    open_job,
    plan,
    plan_and_score,
    score,
    trace_contents,
    write_tasks,
)


def open_stored_work(*arguments: Any) -> None:
    with open_job(*arguments):
        pass


class TestChangedInputs:
    def test_another_config_is_reported(self, plain: Path, tasks: Path) -> None:
        other = {**SIMPLE_CONFIG, "reward": {**SIMPLE_CONFIG["reward"], "same": 2.0}, "scale": 3.0}
        wrong = r"reward\.same is 0\.5 in the run and 2\.0 here; config scale is .*use another --out, or --branch"
        with pytest.raises(InputError, match=wrong):
            open_stored_work(plain, tasks, other)

    def test_a_run_without_a_scored_task_may_be_removed(self, tmp_path: Path, tasks: Path) -> None:
        with open_job(tmp_path / "run", tasks) as (job, stored):
            asyncio.run(plan(job, stored))
        with pytest.raises(InputError, match=r"no task of it is scored yet: `rm -r .*run`, or use"):
            open_stored_work(tmp_path / "run", tasks, {**SIMPLE_CONFIG, "scale": 3.0})

    def test_another_version_of_an_evaluator_is_reported(
        self, plain: Path, tasks: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tests.graphs.scripted.ScriptedEvaluator.version", "2")
        with pytest.raises(
            InputError, match='evaluator late has version "1" in the run and "2" here'
        ):
            open_stored_work(plain, tasks)

    @pytest.mark.parametrize(
        ("change", "wrong"),
        [
            (
                lambda tasks: tasks[1].update(query="And now?"),
                r"task 't1', field query: is .* and \"And now\?\" here",
            ),
            (lambda tasks: tasks[2].update(id="t9"), "task 't9' is new, or at another position"),
            (
                lambda tasks: tasks[3]["responses"][0].update(text="else"),
                "response 't3/r0' is another one now",
            ),
            (
                lambda tasks: tasks[0]["responses"][0].update(labels={"gold": 1}),
                "response 't0/r0' is another one now",
            ),
            (lambda tasks: tasks.pop(), "task 't3' is gone"),
        ],
    )
    def test_another_task_is_named(
        self,
        tmp_path: Path,
        plain: Path,
        change: Callable[[list[dict[str, Any]]], object],
        wrong: str,
    ) -> None:
        other = make_tasks()
        change(other)
        with pytest.raises(
            InputError, match=rf"the tasks file is tasks\.jsonl \(\w{{12}}\) in the run .*{wrong}"
        ):
            open_stored_work(plain, write_tasks(tmp_path, other))

    def test_a_refused_run_is_unchanged_and_unlocked(
        self, tmp_path: Path, plain: Path, tasks: Path
    ) -> None:
        before = (plain / "run.sqlite").read_bytes()
        with pytest.raises(InputError):
            open_stored_work(plain, write_tasks(tmp_path, make_tasks(seed=1)))
        assert (plain / "run.sqlite").read_bytes() == before
        assert score(plain, tasks).stored_work.is_finished


def test_of_two_concurrent_sessions_one_creates_the_run(
    tmp_path: Path, tasks: Path, plain: Path
) -> None:
    with (
        open_job(tmp_path / "run", tasks) as first,
        open_job(tmp_path / "run", tasks) as second,
    ):
        scoring = asyncio.run(plan(*first))
        with pytest.raises(InputError, match="is being written by process"):
            asyncio.run(plan_and_score(*second))
        asyncio.run(scoring.score(lambda count: None))
    assert trace_contents(tmp_path / "run") == trace_contents(plain)
