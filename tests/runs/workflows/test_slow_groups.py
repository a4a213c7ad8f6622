"""With a slow group, later ones are stored when they end, are not repeated, and are read in the order of the tasks."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pytest
from aiohttp import web

from jurygraph.errors import BudgetExceeded
from jurygraph.interchange.tables import table_to_csv
from jurygraph.interchange.traces import export_traces_as_jsonl
from jurygraph.runs.export_table import TableName
from jurygraph.runs.integrity.deep_verification import verify_deep
from jurygraph.runs.run import Run
from jurygraph.runs.stored_groups import read_stored_groups
from jurygraph.runs.table_reader import open_export_table
from jurygraph.runs.workflows.forecasting import RemainingWorkEstimator
from jurygraph.runs.workflows.rescoring import rescore
from jurygraph.runs.writable_run import WritableRun
from jurygraph.studies import monitor
from jurygraph.studies.compared_responses import iter_compared_responses
from jurygraph.studies.reliability import read_scores, report
from tests.models.judge_scripts import response_in
from tests.models.server import Answer, Server, run_server, status
from tests.runs.judge import judge_by_request
from tests.runs.sample_runs import (
    FULL_CONFIG,
    REQUESTED,
    evaluator_config,
    make_tasks,
    open_job,
    score,
    scored_session,
    trace_contents,
    verify_run,
    write_tasks,
)
from tests.runs.test_calls import judge_config, tasks_with_rubrics

TASKS, SLOW = 12, {"t0", "t5"}
ALL = [f"t{number}" for number in range(TASKS)]


def never(response: str, message: str) -> bool:
    return False


class SlowJudge:
    """A judge that waits before it answers some requests, and refuses others; all the rest it answers at once.

    Both are chosen by the response and the last message of a request.
    """

    def __init__(self) -> None:
        self.holds: Callable[[str, str], bool] = lambda response, message: any(
            f"letter {name[1:]}," in response for name in SLOW
        )
        self.refuses: Callable[[str, str], bool] = never

    def __call__(self, body: dict[str, Any], number: int) -> Answer:
        shown = response_in(body), body["messages"][-1]["content"]
        if self.refuses(*shown):
            return status(401)
        answer = judge_by_request(body, number)

        async def wait(request: web.BaseRequest) -> web.StreamResponse:
            while self.holds(*shown):
                await asyncio.sleep(0.005)
            return await answer(request)

        return wait


@pytest.fixture
def judge() -> SlowJudge:
    return SlowJudge()


@pytest.fixture
def server(judge: SlowJudge) -> Iterator[Server]:
    with run_server(judge) as running:
        yield running


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_tasks(tmp_path, tasks_with_rubrics(TASKS))


def settings(server: Server, **more: Any) -> dict[str, Any]:
    """A config with two calls a response, and an evaluator without a model that records its requests."""
    config = judge_config(server, concurrency=16)
    return {
        **config,
        "evaluators": [*config["evaluators"], evaluator_config("same")],
        "reward": {"rubric": 1.0, "same": 0.5},
        **more,
    }


@pytest.fixture
def whole(judge: SlowJudge, server: Server, tasks: Path, tmp_path: Path) -> Path:
    """A run in which no group was slow."""
    judge.holds, holds = never, judge.holds
    score(tmp_path / "whole", tasks, settings(server))
    judge.holds = holds
    return tmp_path / "whole"


def scored_tasks(folder: Path) -> list[str]:
    """Return the tasks in the order in which their groups were stored."""
    with closing(Run.open(folder)) as run:
        return [record.key for record in run.ledger.records("group")]


def check_complete(folder: Path, whole: Path) -> None:
    """Check that a run equals another one, also to every reader, and that it verifies."""
    assert verify_run(folder).closed
    with closing(Run.open(folder)) as run, closing(Run.open(whole)) as other:
        found, expected = (
            [(trace.response_id, trace.digest) for trace in one.traces()] for one in (run, other)
        )
        assert found == expected
        assert verify_deep(run, lambda count: None) == verify_deep(other, lambda count: None)


def stop_after_quick_groups(folder: Path, *given: Any, **more: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        score(folder, *given, stop_after=TASKS - len(SLOW), **more)
    assert set(scored_tasks(folder)) == set(ALL) - SLOW
    verify_run(folder)


def requested_tasks() -> set[str]:
    """Return the tasks about which the evaluator without a model was asked in the last session."""
    return {responses[0].split("/")[0] for _, responses, _ in REQUESTED}


@pytest.mark.landing
def test_a_stopped_run_goes_on_with_the_tasks_that_are_missing(
    judge: SlowJudge, server: Server, tasks: Path, whole: Path, tmp_path: Path
) -> None:
    stop_after_quick_groups(tmp_path / "run", tasks, settings(server))
    for limit, missing in ((None, 2), (TASKS - 1, 2), (6, 2), (5, 1)):
        with open_job(tmp_path / "run", tasks, settings(server), limit=limit) as (job, stored):
            remaining = stored.remaining
            assert stored.tasks_done == TASKS - 2
            assert (remaining.tasks, remaining.responses) == (missing, 2 * missing)
            forecast = asyncio.run(RemainingWorkEstimator(job, stored).forecast(lambda count: None))
            assert forecast.tasks == missing
    judge.holds = never
    limited = score(tmp_path / "run", tasks, settings(server), limit=3)
    assert (limited.summary.tasks, requested_tasks()) == (TASKS - 1, {"t0"})
    assert score(tmp_path / "run", tasks, settings(server), limit=3).stored_work.is_finished
    scored = score(tmp_path / "run", tasks, settings(server))
    assert scored.summary.to_json() == score(whole, tasks, settings(server)).summary.to_json()
    check_complete(tmp_path / "run", whole)


@pytest.mark.landing
def test_a_run_is_watched_in_the_order_of_its_tasks(
    judge: SlowJudge, server: Server, tasks: Path, tmp_path: Path
) -> None:
    stop_after_quick_groups(tmp_path / "run", tasks, settings(server))
    seen: list[str] = []

    def finish() -> None:
        assert seen == [], "the first task is not scored yet"
        judge.holds = never
        score(tmp_path / "run", tasks, settings(server))

    for group in monitor.iter_scored_groups(tmp_path / "run", finish):
        seen.append(group[0].trace.task_id)
    assert seen == ALL


@pytest.mark.landing
def test_what_a_budget_cuts_off_is_completed_and_nothing_else(
    judge: SlowJudge, server: Server, tasks: Path, whole: Path, tmp_path: Path
) -> None:
    judge.holds, before = never, server.count
    with (
        pytest.raises(BudgetExceeded, match="finished groups are kept"),
        scored_session(tmp_path / "run", tasks, settings(server), max_calls=30),
    ):
        pass
    kept = set(scored_tasks(tmp_path / "run"))
    verify_run(tmp_path / "run")
    score(tmp_path / "run", tasks, settings(server))
    assert requested_tasks().isdisjoint(kept)
    assert server.count == 2 * before, "each request was sent once in each run"
    check_complete(tmp_path / "run", whole)


def copy_in_order(source: Path, folder: Path, order: Sequence[int]) -> Path:
    """Copy a run; the groups are stored in another order."""
    with (
        closing(Run.open(source)) as run,
        closing(WritableRun.create(folder, run.header, run.id)) as copy,
    ):
        names = [record.key for record in run.ledger.records("task")]
        for name in names:
            task = run.task(name)
            assert task is not None
            copy.ledger.append(*copy.plan_drafts(task, run.plan_of(name)))
        for number in order:
            scored = run.group_of(names[number])
            responses = [one.response for one in scored if one.response is not None]
            copy.ledger.append(
                *copy.group_drafts(
                    run.plan_of(names[number]), [one.trace for one in scored], responses
                )
            )
        copy.ledger.commit()
    return folder


@pytest.mark.landing
def test_readers_see_no_order_of_storing(tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path, make_tasks())
    score(tmp_path / "whole", tasks, FULL_CONFIG)
    expected = read_everything(tmp_path / "whole")
    folder = copy_in_order(tmp_path / "whole", tmp_path / "copy", (2, 3, 0, 1))
    assert scored_tasks(folder) == ["t2", "t3", "t0", "t1"]
    verify_run(folder)
    assert read_everything(folder) == expected
    assert (
        score(folder, tasks, FULL_CONFIG).summary
        == score(tmp_path / "whole", tasks, FULL_CONFIG).summary
    )
    with closing(Run.open(folder)) as run:
        rescore(run, tmp_path / "new", run.config, lambda count: None)
    verify_run(tmp_path / "new")
    assert trace_contents(tmp_path / "new") == trace_contents(folder)


def read_everything(folder: Path) -> list[Any]:
    """Return what each way of reading a run gives, without places in the chain."""
    with closing(Run.open(folder)) as run:
        exported = [{**json.loads(line), "previous": None} for line in export_traces_as_jsonl(run)]
        tables = []
        for name in get_args(TableName):
            with closing(open_export_table(run, name)) as table:
                tables.append(list(table_to_csv(table)))
        reward_lines = [
            (one.survey, one.body["statistics"], [t.body["reward"] for t in one.traces])
            for one in read_stored_groups(run)
        ]
        watched = [
            [one.trace.response_id for one in group] for group in monitor.iter_scored_groups(folder)
        ]
        return [
            exported,
            tables,
            reward_lines,
            watched,
            list(iter_compared_responses(run)),
            report(read_scores(run)).to_json() | {"run": ""},
        ]
