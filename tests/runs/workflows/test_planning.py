"""All tasks are planned or none; replies are durable before they are used, also without a cache."""

import asyncio
import shutil
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.errors import BudgetExceeded, PlanError
from jurygraph.graphs import prepare_graph
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.workflows.forecasting import RemainingWorkEstimator
from tests.models.server import Server
from tests.runs.sample_runs import (
    FULL_CONFIG,
    make_tasks,
    open_job,
    score,
    trace_contents,
    verify_run,
    write_tasks,
)
from tests.runs.test_profiles import (
    READS,
    profile_config,
    run,
    score_profiles,
    server,
    stored_keys,
    tasks,
)

__all__ = ["run", "server", "tasks"]  # fixtures

TASKS = 3
UNCACHED = {"cache": False, "concurrency": 1}


def planning_calls(folder: Path) -> list[str]:
    """Return the names of the files that hold the calls of planning."""
    return sorted(path.name for path in folder.glob("planning.sqlite*"))


def test_a_limit_reached_while_planning_keeps_the_replies(
    server: Server, tasks: Path, tmp_path: Path
) -> None:
    uncached = profile_config(server, calls=UNCACHED)
    for sitting in (1, 2):
        with pytest.raises(
            BudgetExceeded,
            match=r"the limit of 4 calls is reached.*: it continues with the stored replies",
        ):
            score_profiles(tmp_path / "run", tasks, uncached, max_calls=4)
        assert server.count == 4 * sitting
        assert [path.name for path in (tmp_path / "run").iterdir()] == ["planning.sqlite"]
    score_profiles(tmp_path / "run", tasks, uncached, max_calls=1)
    assert server.count == TASKS * READS
    assert verify_run(tmp_path / "run").closed
    assert planning_calls(tmp_path / "run") == []


def test_a_dry_run_does_not_count_stored_replies(
    server: Server, tasks: Path, tmp_path: Path
) -> None:
    uncached = profile_config(server, calls=UNCACHED)
    with pytest.raises(BudgetExceeded):
        score_profiles(tmp_path / "run", tasks, uncached, max_calls=READS)

    def expected(folder: Path) -> int:
        with open_job(folder, tasks, uncached) as (job, stored):
            forecast = asyncio.run(RemainingWorkEstimator(job, stored).forecast(lambda count: None))
        assert forecast.model is not None
        return forecast.model.low.calls

    assert expected(tmp_path / "run") < expected(tmp_path / "other")


def test_replies_to_another_config_are_not_copied(
    server: Server, tasks: Path, tmp_path: Path
) -> None:
    with pytest.raises(BudgetExceeded):
        score_profiles(tmp_path / "run", tasks, profile_config(server, calls=UNCACHED), max_calls=4)
    score_profiles(
        tmp_path / "run",
        tasks,
        profile_config(server, calls={**UNCACHED, "parameters": {"seed": 1}}),
    )
    assert server.count == 4 + TASKS * READS
    assert len(stored_keys(tmp_path / "run")) == TASKS * READS
    assert planning_calls(tmp_path / "run") == []


def test_an_erasure_removes_stored_planning_calls(
    server: Server, tasks: Path, tmp_path: Path
) -> None:
    uncached = profile_config(server, calls=UNCACHED)
    score_profiles(tmp_path / "run", tasks, uncached, limit=2)
    with pytest.raises(BudgetExceeded):
        score_profiles(tmp_path / "run", tasks, uncached, max_calls=1)
    assert planning_calls(tmp_path / "run") == ["planning.sqlite"]
    erase(tmp_path / "run", "task", "t0", "")
    assert planning_calls(tmp_path / "run") == []


class TestAtomicPlanning:
    def test_a_failed_planning_leaves_nothing_behind(self, tmp_path: Path) -> None:
        given = make_tasks()
        given[2]["rubric"]["edges"].append({"parent": "more", "child": "core", "kind": "weak"})
        with pytest.raises(
            PlanError, match=r"^tasks.jsonl, line 3: task 't2', component 'rubric': .*cycle"
        ):
            score(tmp_path / "new" / "run", write_tasks(tmp_path, given), FULL_CONFIG)
        assert [path.name for path in tmp_path.iterdir()] == ["tasks.jsonl"]

    def test_later_tasks_are_planned_all_or_none(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tasks = write_tasks(tmp_path, make_tasks())
        score(tmp_path / "run", tasks, limit=1)
        decision_key = prepare_graph.decision_key

        def fail_on_third(task: jg.Task, *rest: Any) -> Hashable:
            if task.id == "t3":
                raise PlanError("no")
            return decision_key(task, *rest)

        monkeypatch.setattr(prepare_graph, "decision_key", fail_on_third)
        with pytest.raises(PlanError, match="line 4: no"):
            score(tmp_path / "run", tasks)
        assert Run.open(tmp_path / "run").planned_task_count == 1

    def test_an_interrupted_planning_starts_again(self, tmp_path: Path, plain: Path) -> None:
        folder = tmp_path / "run"
        folder.mkdir()
        (folder / "run.lock").write_text('{"pid": 1, "host": "here", "since": "yesterday"}')
        shutil.copy(plain / "config.yaml", folder)
        score(folder, write_tasks(tmp_path, make_tasks()))
        assert trace_contents(folder) == trace_contents(plain)
