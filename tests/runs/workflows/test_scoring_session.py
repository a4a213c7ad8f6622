"""Scoring into a run: nothing is written too early, requested twice or lost."""

import asyncio
import json
import shutil
from collections.abc import Callable, Hashable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.errors import InputError, PlanError
from jurygraph.graphs import prepare_graph
from jurygraph.runs.reports.summary import Forecast
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.scoring_session import ScoringSession
from jurygraph.schema import Question
from jurygraph.sources import open_tasks
from tests.runs.sample_runs import (
    FULL_CONFIG,
    REQUESTED,
    SIMPLE_CONFIG,
    evaluator_config,
    make_tasks,
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
    session = score(tmp_path / "run", tasks, config)
    asked = {question_and_response[1][0][:2] for question_and_response in REQUESTED}
    assert asked == {f"t{t}" for t in range(4)} - stored
    whole = score(tmp_path / "whole", tasks, config)
    assert trace_contents(tmp_path / "run") == trace_contents(tmp_path / "whole")
    assert session.summary.to_json() == whole.summary.to_json()
    assert session.summary.lowest == whole.summary.lowest
    assert verify_run(tmp_path / "run").traces == 12


def test_a_complete_run_is_unchanged(plain: Path, tasks: Path) -> None:
    before = (plain / "run.sqlite").read_bytes()
    session = score(plain, tasks)
    assert session.is_finished
    assert REQUESTED == []
    assert session.summary.responses == 12
    assert (plain / "run.sqlite").read_bytes() == before


def test_a_limited_run_can_be_completed(tmp_path: Path, tasks: Path, plain: Path) -> None:
    score(tmp_path / "run", tasks, limit=1)
    run = Run.open(tmp_path / "run")
    assert (run.tasks_scored, run.is_closed) == (1, False)
    assert score(tmp_path / "run", tasks, limit=1).is_finished
    score(tmp_path / "run", tasks)
    assert trace_contents(tmp_path / "run") == trace_contents(plain)
    assert Run.open(tmp_path / "run").is_closed


def open_session(folder: Path, tasks: Path, config: dict = SIMPLE_CONFIG) -> ScoringSession:
    with jg.Jury.from_config(config) as jury, open_tasks(tasks) as work:
        return ScoringSession(folder, jury, work)


class TestChangedInputs:
    def test_another_config_is_reported(self, plain: Path, tasks: Path) -> None:
        other = {**SIMPLE_CONFIG, "reward": {**SIMPLE_CONFIG["reward"], "same": 2.0}, "scale": 3.0}
        wrong = r"reward\.same is 0\.5 in the run and 2\.0 here; config scale is .*use another --out, or --branch"
        with pytest.raises(InputError, match=wrong):
            open_session(plain, tasks, other)

    def test_another_version_of_an_evaluator_is_reported(
        self, plain: Path, tasks: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tests.graphs.scripted.ScriptedEvaluator.version", "2")
        with pytest.raises(
            InputError, match='evaluator late has version "1" in the run and "2" here'
        ):
            open_session(plain, tasks)

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
            open_session(plain, write_tasks(tmp_path, other))

    def test_a_refused_run_is_unchanged_and_unlocked(
        self, tmp_path: Path, plain: Path, tasks: Path
    ) -> None:
        before = (plain / "run.sqlite").read_bytes()
        with pytest.raises(InputError):
            open_session(plain, write_tasks(tmp_path, make_tasks(seed=1)))
        assert (plain / "run.sqlite").read_bytes() == before
        assert score(plain, tasks).is_finished


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
        assert Run.open(tmp_path / "run").tasks_planned == 1

    def test_an_interrupted_planning_starts_again(
        self, tmp_path: Path, plain: Path, tasks: Path
    ) -> None:
        folder = tmp_path / "run"
        folder.mkdir()
        (folder / "run.lock").write_text('{"pid": 1, "host": "here", "since": "yesterday"}')
        shutil.copy(plain / "config.yaml", folder)
        score(folder, tasks)
        assert trace_contents(folder) == trace_contents(plain)

    def test_a_file_changed_while_scoring_stops_the_run_without_loss(self, tmp_path: Path) -> None:
        tasks = write_tasks(tmp_path, make_tasks(tasks=40))
        with (
            jg.Jury.from_config(SIMPLE_CONFIG) as jury,
            open_tasks(tasks) as work,
            closing(ScoringSession(tmp_path / "run", jury, work)) as session,
        ):
            asyncio.run(session.prepare(lambda count: None))
            write_tasks(tmp_path, make_tasks(tasks=40, seed=1))
            with pytest.raises(InputError, match="changed"):
                asyncio.run(session.score(lambda count: None))
        verify_run(tmp_path / "run")


class TestConcurrentSessions:
    def test_of_two_concurrent_sessions_one_creates_the_run(
        self, tmp_path: Path, tasks: Path, plain: Path
    ) -> None:
        with (
            jg.Jury.from_config(SIMPLE_CONFIG) as jury,
            open_tasks(tasks) as work,
            closing(ScoringSession(tmp_path / "run", jury, work)) as first,
            closing(ScoringSession(tmp_path / "run", jury, work)) as second,
        ):
            asyncio.run(first.prepare(lambda count: None))
            with pytest.raises(InputError, match="is being written by process"):
                asyncio.run(second.prepare(lambda count: None))
            asyncio.run(first.score(lambda count: None))
        assert trace_contents(tmp_path / "run") == trace_contents(plain)


class TestForecast:
    @pytest.mark.parametrize(
        ("fields", "size", "requests"),
        [
            ({"scope": "pair"}, 1, 1),
            ({"scope": "group", "samples": 3}, 1, 1),
            ({"scope": "pair", "pairs": "unordered"}, 2, 1),
            ({"scope": "pair", "pairs": "unordered", "needs": ("x",)}, 2, 2),
            ({"scope": "pair", "pairs": "unordered"}, 3, 3),
            ({"samples": 2}, 3, 6),
        ],
    )
    def test_verdicts_never_exceed_the_forecast(
        self, fields: dict, size: int, requests: int
    ) -> None:
        with jg.Jury.from_config({"evaluators": [evaluator_config("own")]}) as jury:
            plan = jury.prepare(jg.Task(id="t", query="?"))
            question = Question.model_validate(plan.survey.questions[0].model_dump() | fields)
            survey = plan.survey.model_copy(update={"questions": (question,)})
            expected = Forecast()
            expected.add_group(survey.questions, size, jury.evaluators)
        assert expected.verdicts == requests


def test_the_header_describes_the_inputs(plain: Path) -> None:
    header = json.loads(Run.open(plain).ledger.record_at(1).body)
    assert header["evaluators"]["tone"].items() >= {"version": "1", "audience": "task"}.items()
    assert header["combiners"].keys() >= {"mean"}
    assert header["config"]["reward"] == SIMPLE_CONFIG["reward"]
    assert (header["base"], header["branch"]) == (None, None)
