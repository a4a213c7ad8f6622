"""Replies during planning are durable before they are used, also without a cache."""

import asyncio
import json
import signal
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph import Jury
from jurygraph.errors import BudgetExceeded
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.workflows.scoring_session import ScoringSession
from jurygraph.sources import open_tasks
from tests.agents.parser import parser_script
from tests.models.server import Answer, Server, run_server, slow
from tests.runs.sample_runs import trace_contents, verify_run, write_tasks
from tests.runs.test_profiles import (
    READS,
    TENSIONS,
    make_profile_tasks,
    profile_config,
    run,
    score_profiles,
    server,
    start_scoring,
    stored_keys,
    tasks,
    verify_deeply,
    wait_until,
)

__all__ = ["run", "server", "tasks"]  # fixtures

TASKS = 3
UNCACHED = {"cache": False, "concurrency": 1}


def planning_calls(folder: Path) -> list[str]:
    """Return the names of the files that hold the calls of planning."""
    return sorted(path.name for path in folder.glob("planning.sqlite*"))


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "sign",
    [pytest.param(signal.SIGKILL, id="killed"), pytest.param(signal.SIGINT, id="Ctrl-C", marks=pytest.mark.exhaustive)],
)
def test_an_interrupted_planning_repeats_no_request(
    tmp_path: Path, tasks: Path, run: Path, server: Server, sign: signal.Signals
) -> None:
    read = parser_script(tensions=TENSIONS)

    def script(body: dict[str, Any], number: int) -> Answer:
        return slow(60, read(body, number)) if is_held and number == 6 else read(body, number)

    is_held = True
    with run_server(script) as own:
        uncached = profile_config(own, calls={**UNCACHED, "timeout": 120.0})
        (tmp_path / "jury.yaml").write_text(json.dumps(uncached))
        (tmp_path / "stopped").mkdir()
        (tmp_path / "stopped" / "jury.yaml").write_text(json.dumps(uncached))
        stopped = write_tasks(tmp_path / "stopped", make_profile_tasks())
        with start_scoring(tmp_path / "stopped", stopped) as process:
            wait_until(lambda: own.count == 6)
            process.send_signal(sign)
            _, message = process.communicate()
        if sign == signal.SIGINT:
            assert process.returncode == 130
            assert (
                b"nothing was written except 5 replies of the model; run the same command again to continue" in message
            )
        is_held = False
        score_profiles(tmp_path / "stopped" / "run", stopped, uncached)
        assert own.count == TASKS * READS + 1, "but for the one that was under way"
    assert planning_calls(tmp_path / "stopped" / "run") == []
    assert verify_run(tmp_path / "stopped" / "run").closed
    assert stored_keys(tmp_path / "stopped" / "run")
    assert len(trace_contents(tmp_path / "stopped" / "run")) == len(trace_contents(run))
    verify_deeply(tmp_path / "stopped" / "run")


def test_a_limit_reached_while_planning_keeps_the_replies(server: Server, tasks: Path, tmp_path: Path) -> None:
    uncached = profile_config(server, calls=UNCACHED)
    for sitting in (1, 2):
        with pytest.raises(
            BudgetExceeded, match=r"the limit of 4 calls is reached.*: it continues with the stored replies"
        ):
            score_profiles(tmp_path / "run", tasks, uncached, max_calls=4)
        assert server.count == 4 * sitting
        assert [path.name for path in (tmp_path / "run").iterdir()] == ["planning.sqlite"]
    score_profiles(tmp_path / "run", tasks, uncached, max_calls=1)
    assert server.count == TASKS * READS
    assert verify_run(tmp_path / "run").closed
    assert planning_calls(tmp_path / "run") == []


def test_a_dry_run_does_not_count_stored_replies(server: Server, tasks: Path, tmp_path: Path) -> None:
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


def test_replies_to_another_config_are_not_copied(server: Server, tasks: Path, tmp_path: Path) -> None:
    with pytest.raises(BudgetExceeded):
        score_profiles(tmp_path / "run", tasks, profile_config(server, calls=UNCACHED), max_calls=4)
    score_profiles(tmp_path / "run", tasks, profile_config(server, calls={**UNCACHED, "parameters": {"seed": 1}}))
    assert server.count == 4 + TASKS * READS
    assert len(stored_keys(tmp_path / "run")) == TASKS * READS
    assert planning_calls(tmp_path / "run") == []


def test_an_erasure_removes_stored_planning_calls(server: Server, tasks: Path, tmp_path: Path) -> None:
    uncached = profile_config(server, calls=UNCACHED)
    score_profiles(tmp_path / "run", tasks, uncached, limit=2)
    with pytest.raises(BudgetExceeded):
        score_profiles(tmp_path / "run", tasks, uncached, max_calls=1)
    assert planning_calls(tmp_path / "run") == ["planning.sqlite"]
    erase(tmp_path / "run", "task", "t0", "")
    assert planning_calls(tmp_path / "run") == []
