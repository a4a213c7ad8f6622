"""What a model answers while tasks are planned is durable before it is used, without a cache too."""

import asyncio
import json
import signal
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph import Jury
from jurygraph.errors import BudgetExceeded, InputError
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.workflows.session import ScoringSession
from jurygraph.sources import read_work
from tests.agents.parser import parsing
from tests.models.server import Answer, Server, serving, slow
from tests.runs.made import checked, contents, write_tasks
from tests.runs.test_profiles import (
    READS,
    TENSIONS,
    deep,
    kept,
    lines,
    run,
    scoring,
    server,
    settings,
    sit,
    tasks,
    wait,
)

__all__ = ["run", "server", "tasks"]  # fixtures

TASKS = 3
UNCACHED = {"cache": False, "concurrency": 1}


def answers(folder: Path) -> list[str]:
    """The files in which answers are kept while a run is planned."""
    return sorted(path.name for path in folder.glob("planning.sqlite*"))


@pytest.mark.parametrize(
    "sign",
    [pytest.param(signal.SIGKILL, id="killed"), pytest.param(signal.SIGINT, id="Ctrl-C", marks=pytest.mark.slow)],
)
def test_stopped_while_profiles_are_read_it_asks_nothing_again(
    tmp_path: Path, tasks: Path, run: Path, server: Server, sign: signal.Signals
) -> None:
    read = parsing(tensions=TENSIONS)

    def script(body: dict[str, Any], number: int) -> Answer:
        return slow(60, read(body, number)) if is_held and number == 6 else read(body, number)

    is_held = True
    with serving(script) as own:
        uncached = settings(own, calls={**UNCACHED, "timeout": 120.0})
        (tmp_path / "jury.yaml").write_text(json.dumps(uncached))
        (tmp_path / "stopped").mkdir()
        (tmp_path / "stopped" / "jury.yaml").write_text(json.dumps(uncached))
        stopped = write_tasks(tmp_path / "stopped", lines())
        with scoring(tmp_path / "stopped", stopped) as process:
            wait(lambda: own.count == 6)
            process.send_signal(sign)
            _, said = process.communicate()
        if sign == signal.SIGINT:
            assert process.returncode == 130
            assert b"nothing was written except 5 replies of the model; run the same command again to continue" in said
        is_held = False
        sit(tmp_path / "stopped" / "run", stopped, uncached)
        assert own.count == TASKS * READS + 1, "but for the one that was under way"
    assert answers(tmp_path / "stopped" / "run") == []
    assert checked(tmp_path / "stopped" / "run").closed
    assert kept(tmp_path / "stopped" / "run")
    assert len(contents(tmp_path / "stopped" / "run")) == len(contents(run))
    deep(tmp_path / "stopped" / "run")


def test_a_limit_that_is_reached_while_it_plans_leaves_the_answers_for_the_next_time(
    server: Server, tasks: Path, tmp_path: Path
) -> None:
    uncached = settings(server, calls=UNCACHED)
    for sitting in (1, 2):
        with pytest.raises(
            BudgetExceeded, match=r"the limit of 4 calls is reached.*: it continues with the stored replies"
        ):
            sit(tmp_path / "run", tasks, uncached, max_calls=4)
        assert server.count == 4 * sitting
        assert [path.name for path in (tmp_path / "run").iterdir()] == ["planning.sqlite"]
    sit(tmp_path / "run", tasks, uncached, max_calls=1)
    assert server.count == TASKS * READS
    assert checked(tmp_path / "run").closed
    assert answers(tmp_path / "run") == []


def test_a_run_that_has_no_plans_yet_says_how_to_go_on(server: Server, tasks: Path, tmp_path: Path) -> None:
    with pytest.raises(BudgetExceeded):
        sit(tmp_path / "run", tasks, settings(server, calls=UNCACHED), max_calls=4)
    with pytest.raises(InputError, match="planning was interrupted; run `jurygraph score` again"):
        Run.open(tmp_path / "run")


def test_a_dry_run_does_not_count_what_was_answered_already(server: Server, tasks: Path, tmp_path: Path) -> None:
    uncached = settings(server, calls=UNCACHED)
    with pytest.raises(BudgetExceeded):
        sit(tmp_path / "run", tasks, uncached, max_calls=READS)

    async def expected(folder: Path) -> int:
        jury = Jury.from_config(uncached)
        with read_work(str(tasks)) as work, closing(ScoringSession(folder, jury, work)) as session:
            forecast = await session.forecast(lambda count: None)
        assert forecast.model is not None
        return forecast.model.low.calls

    assert asyncio.run(expected(tmp_path / "run")) < asyncio.run(expected(tmp_path / "other"))


def test_answers_to_another_config_are_left_out_of_the_run(server: Server, tasks: Path, tmp_path: Path) -> None:
    with pytest.raises(BudgetExceeded):
        sit(tmp_path / "run", tasks, settings(server, calls=UNCACHED), max_calls=4)
    sit(tmp_path / "run", tasks, settings(server, calls={**UNCACHED, "parameters": {"seed": 1}}))
    assert server.count == 4 + TASKS * READS
    assert len(kept(tmp_path / "run")) == TASKS * READS
    assert answers(tmp_path / "run") == []


def test_what_is_erased_lies_in_no_answers_of_a_planning_that_was_stopped(
    server: Server, tasks: Path, tmp_path: Path
) -> None:
    uncached = settings(server, calls=UNCACHED)
    sit(tmp_path / "run", tasks, uncached, limit=2)
    with pytest.raises(BudgetExceeded):
        sit(tmp_path / "run", tasks, uncached, max_calls=1)
    assert answers(tmp_path / "run") == ["planning.sqlite"]
    erase(tmp_path / "run", "task", "t0", "")
    assert answers(tmp_path / "run") == []
