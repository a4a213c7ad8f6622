"""Replies during planning are durable before they are used, also without a cache."""

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from jurygraph import Jury
from jurygraph.errors import BudgetExceeded
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.workflows.scoring_session import ScoringSession
from jurygraph.sources import open_tasks
from tests.models.server import Server
from tests.runs.sample_runs import verify_run
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

    async def expected(folder: Path) -> int:
        jury = Jury.from_config(uncached)
        with open_tasks(str(tasks)) as work, closing(ScoringSession(folder, jury, work)) as session:
            forecast = await session.forecast(lambda count: None)
        assert forecast.model is not None
        return forecast.model.low.calls

    assert asyncio.run(expected(tmp_path / "run")) < asyncio.run(expected(tmp_path / "other"))


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
