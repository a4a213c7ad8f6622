"""Verdicts of several calls in a run: every call is on the bill once, and each way through the run keeps them."""

from pathlib import Path

import pytest

from jurygraph.testing import ScriptedJudge
from tests.graphs.test_evaluator_calls import (
    CONFIG,
    GROUPS,
    MARK,
    REPAIRED,
    WITH_SUMMARY,
    config,
    listed,
)
from tests.models.server import reply_with, run_server
from tests.runs.sample_runs import (
    rescore_run,
    scored_session,
    task_line,
    traces_of,
    verify_deeply,
    write_tasks,
)


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_tasks(tmp_path, [task_line(group.task, group.responses) for group in GROUPS])


def test_every_call_is_on_the_bill_once(tasks: Path, tmp_path: Path) -> None:
    for settings in (WITH_SUMMARY, config("Together", "Careless"), config("broken", "blocking")):
        judge = ScriptedJudge(REPAIRED)
        folder = tmp_path / settings["evaluators"][0]["name"]
        with scored_session(folder, tasks, settings, model=judge) as scored:
            sent = scored.summary.bill.costs_by_source["sent"].number
        assert sent == len(judge.requests) == len(listed(traces_of(folder)))


def test_a_run_from_the_cache_lists_the_same_calls(tasks: Path, tmp_path: Path) -> None:
    with run_server(
        lambda body, number: reply_with(MARK if "response_format" in body else "a text")
    ) as server:
        settings = {**CONFIG, "model": f"openai-compatible:{server.url}#tiny"}
        for name in ("cold", "warm"):
            with scored_session(tmp_path / name, tasks, settings):
                pass
        cold, warm = (traces_of(tmp_path / name) for name in ("cold", "warm"))
        assert server.count == len(listed(warm))
    assert [[one.calls for one in trace.verdicts] for trace in warm] == [
        [one.calls for one in trace.verdicts] for trace in cold
    ]


def test_each_way_through_a_run_keeps_the_calls(tasks: Path, tmp_path: Path) -> None:
    folder, judge = tmp_path / "run", ScriptedJudge(REPAIRED)
    with scored_session(folder, tasks, WITH_SUMMARY, model=judge):
        sent = len(judge.requests)
    verdicts = [trace.verdicts for trace in traces_of(folder)]
    deep = verify_deeply(folder)
    assert (deep.recomputed, deep.needing_model) == (sum(map(len, verdicts)), 0)
    with scored_session(folder, tasks, WITH_SUMMARY, model=judge) as resumed:
        assert resumed.summary.bill.costs_by_source["sent"].number == sent
    rescored = rescore_run(folder, tmp_path / "rescored", "reward.five=2")
    assert [trace.verdicts for trace in traces_of(rescored)] == verdicts
    branched = tmp_path / "branched"
    with scored_session(branched, tasks, WITH_SUMMARY, folder, model=judge):
        assert [trace.verdicts for trace in traces_of(branched)] == verdicts
    assert verify_deeply(branched).recomputed == deep.recomputed
    assert len(judge.requests) == sent
