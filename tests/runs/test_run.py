"""A stored run returns what was written into it."""

from contextlib import closing
from pathlib import Path

import pytest

import jurygraph as jg
from jurygraph.errors import InputError, TraceMismatch
from jurygraph.runs.run import Run
from jurygraph.runs.store.ledger import Ledger
from jurygraph.runs.table_reader import open_export_table
from jurygraph.sources import read_tasks
from tests.runs.sample_runs import (
    FULL_CONFIG,
    SIMPLE_CONFIG,
    make_tasks,
    score,
    trace_contents,
    write_tasks,
)
from tests.runs.store.test_ledger import execute_sql


@pytest.mark.parametrize("config", [SIMPLE_CONFIG, FULL_CONFIG], ids=["plain", "rich"])
def test_traces_equal_those_of_the_jury(tmp_path: Path, config: dict) -> None:
    tasks = write_tasks(tmp_path, make_tasks())
    score(tmp_path / "run", tasks, config)
    with jg.Jury.from_config(config) as jury:
        given = [
            trace for task, responses in read_tasks(tasks) for trace in jury.score(task, responses)
        ]
    assert trace_contents(tmp_path / "run") == [trace.model_dump_json() for trace in given]


def test_plans_and_tasks_equal_those_of_the_jury(rich: Path, tasks: Path) -> None:
    run = Run.open(rich)
    with jg.Jury.from_config(FULL_CONFIG) as jury:
        for task, _ in read_tasks(tasks):
            assert run.task(task.id) == task
            assert run.plan_of(task.id) == jury.prepare(task)
            assert run.plan_of(task.id).digest == jury.prepare(task).digest


def test_every_trace_has_the_link_of_the_previous_record(plain: Path) -> None:
    run = Run.open(plain)
    links = {record.seq: record.link.hex() for record in run.ledger.records()}
    before = {record.key: links[record.seq - 1] for record in run.ledger.records("trace")}
    assert {trace.response_id: trace.previous for trace in run.traces()} == before


def test_an_unknown_id_is_refused_with_the_nearest_one(plain: Path) -> None:
    with pytest.raises(InputError, match=r"there is no response 't2/r9'; did you mean t2/r"):
        Run.open(plain).find_trace("t2/r9")
    with pytest.raises(InputError, match=r"did you mean t1/r"):
        Run.open(plain).find_trace("t1@2/r0")
    with pytest.raises(
        InputError, match=r"^response_id: is an int; use the `response_id` of a trace"
    ):
        Run.open(plain).explain(1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "method", ["task", "task_with_planning_results", "plan_of", "decision_of", "group_of"]
)
def test_an_unknown_task_is_refused_with_the_nearest_one(plain: Path, method: str) -> None:
    run = Run.open(plain)
    with pytest.raises(InputError, match=r"there is no task 't11'; did you mean t\d\?"):
        getattr(run, method)("t11")
    with pytest.raises(InputError, match=r"^task_id: is an int; use the `task_id` of a trace"):
        getattr(run, method)(9)
    execute_sql(plain / "run.sqlite", "DELETE FROM records WHERE kind = 'task'")
    with pytest.raises(InputError, match="there is no task 't9'; use the `task_id` of a trace"):
        getattr(run, method)("t9")
    with pytest.raises(TraceMismatch, match="records of it are lost"):
        getattr(run, method)("t1")


def test_a_closed_run_says_so(plain: Path) -> None:
    with Run.open(plain) as run:
        pass
    for read in (
        lambda: run.find_trace("t2/r1"),
        lambda: run.task("t2"),
        lambda: list(run.traces()),
    ):
        with pytest.raises(
            InputError, match=r"plain.*: this run is closed; use it inside its `with` block"
        ):
            read()


@pytest.mark.landing
def test_a_run_explains_as_its_traces_do(rich: Path, tasks: Path) -> None:
    run = Run.open(rich)
    with jg.Jury.from_config(FULL_CONFIG) as jury:
        for task, responses in read_tasks(tasks):
            traces = jury.score(task, responses)
            for trace in traces:
                one, other = run.explain(trace.response_id), trace.explain(group=traces)
                assert (one.sentences(), one.what_if()) == (other.sentences(), other.what_if())


@pytest.mark.parametrize(
    "change",
    [
        *("body = body || ' ' WHERE key = 't1/r1'", "key = key || ' ' WHERE key = 't1/r1'"),
        *("at = at + 1 WHERE key = 't1/r1'", "link = zeroblob(32) WHERE key = 't1/r1'"),
        *(f"body = body || ' ' WHERE kind = '{kind}'" for kind in ("decision", "survey", "task")),
    ],
)
def test_records_are_checked_when_read(plain: Path, change: str) -> None:
    execute_sql(plain / "run.sqlite", f"UPDATE records SET {change}")
    with pytest.raises(TraceMismatch, match=r"record \d+"):
        list(Run.open(plain).traces())


def test_an_emptied_file_is_damage_and_no_run_that_was_never_made(plain: Path) -> None:
    (plain / "run.sqlite").write_bytes(b"")
    with pytest.raises(
        TraceMismatch, match=r"run\.sqlite: is empty, but config\.yaml shows that there was a run"
    ):
        Run.open(plain)


def test_a_lost_trace_is_not_reported_as_unknown(plain: Path) -> None:
    execute_sql(plain / "run.sqlite", "DELETE FROM records WHERE key = 't1/r1'")
    with pytest.raises(TraceMismatch, match="1 of its 12 traces are missing"):
        Run.open(plain).find_trace("t1/r1")


def test_a_closed_run_without_its_groups_is_read_as_damage_to_the_end(plain: Path) -> None:
    """A table of what is left would look complete."""
    execute_sql(plain / "run.sqlite", "DELETE FROM records WHERE kind = 'group'")
    with (
        closing(Run.open(plain)) as run,
        pytest.raises(TraceMismatch, match="12 of its 12 traces are missing"),
    ):
        open_export_table(run, "rewards")


def test_a_run_killed_during_creation_is_not_a_run_yet(tmp_path: Path, tasks: Path) -> None:
    for content in (b"", None):
        folder = tmp_path / f"run-{content is None}"
        folder.mkdir()
        if content is None:
            Ledger.create(folder / "run.sqlite").close()
        else:
            (folder / "run.sqlite").write_bytes(content)
        with pytest.raises(InputError, match="contains no run yet"):
            Run.open(folder)
        score(folder, tasks)
        assert Run.open(folder).is_closed
