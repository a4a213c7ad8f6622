"""Scoring into a run: nothing is written too early, nothing is asked twice, nothing is lost."""

import asyncio
import json
import os
import re
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.errors import InputError, PlanError
from jurygraph.runs.reports.estimate import Forecast
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.session import ScoringSession
from jurygraph.schema import Question
from jurygraph.sources import read_work
from tests.runs.made import ASKED, PLAIN, RICH, checked, contents, counted, lines, score, write_tasks


def test_a_run_is_two_files_and_a_lock(plain: Path) -> None:
    assert sorted(path.name for path in plain.iterdir()) == ["config.yaml", "run.lock", "run.sqlite"]
    assert (plain / "run.lock").read_bytes() == b""


@pytest.mark.parametrize("stop_after", [1, 2, 3])
@pytest.mark.parametrize("config", [PLAIN, RICH], ids=["plain", "rich"])
def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path, config: dict, stop_after: int) -> None:
    tasks = write_tasks(tmp_path, lines())
    with pytest.raises(KeyboardInterrupt):
        score(tmp_path / "run", tasks, config, stop_after=stop_after)
    assert Run.open(tmp_path / "run").tasks_scored == stop_after
    checked(tmp_path / "run")
    session = score(tmp_path / "run", tasks, config)
    assert {question_and_response[1][0][:2] for question_and_response in ASKED} == {
        f"t{t}" for t in range(stop_after, 4)
    }
    whole = score(tmp_path / "whole", tasks, config)
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")
    assert session.summary == whole.summary
    assert checked(tmp_path / "run").traces == 12


def test_a_complete_run_is_left_alone(plain: Path, tasks: Path) -> None:
    before = (plain / "run.sqlite").read_bytes()
    session = score(plain, tasks)
    assert session.is_finished
    assert ASKED == []
    assert session.summary.responses == 12
    assert (plain / "run.sqlite").read_bytes() == before


def test_a_run_of_some_tasks_can_be_carried_on_to_all(tmp_path: Path, tasks: Path, plain: Path) -> None:
    score(tmp_path / "run", tasks, limit=1)
    run = Run.open(tmp_path / "run")
    assert (run.tasks_scored, run.is_closed) == (1, False)
    assert score(tmp_path / "run", tasks, limit=1).is_finished
    score(tmp_path / "run", tasks)
    assert contents(tmp_path / "run") == contents(plain)
    assert Run.open(tmp_path / "run").is_closed


def sat(folder: Path, tasks: Path, config: dict = PLAIN) -> ScoringSession:
    with jg.Jury.from_config(config) as jury, read_work(tasks) as work:
        return ScoringSession(folder, jury, work)


class TestOtherSettings:
    def test_another_config_is_shown(self, plain: Path, tasks: Path) -> None:
        with pytest.raises(
            InputError, match=r"config reward\.same is 0\.5 in the run and 2\.0 here; config scale is"
        ) as caught:
            sat(plain, tasks, {**PLAIN, "reward": {**PLAIN["reward"], "same": 2.0}, "scale": 3.0})
        assert str(caught.value).endswith("use another --out, or --branch to request only what changed")

    def test_another_version_of_an_evaluator_is_shown(
        self, plain: Path, tasks: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tests.graphs.cast.Told.version", "2")
        with pytest.raises(InputError, match='evaluator late has version "1" in the run and "2" here'):
            sat(plain, tasks)

    def test_another_task_is_shown(self, tmp_path: Path, plain: Path) -> None:
        other = lines()
        other[1]["query"], other[2]["id"], other[3]["responses"][0]["text"] = "And now?", "t9", "something else"
        with pytest.raises(InputError) as caught:
            sat(plain, write_tasks(tmp_path, other))
        said = str(caught.value)
        assert re.search(r"the tasks file is tasks\.jsonl \(\w{12}\) in the run and tasks\.jsonl \(\w{12}\) here", said)
        assert (
            'task \'t1\', field query: is "How would one say the number 1, and to whom?" in the run and "And now?" here'
            in said
        )
        assert "task 't9' is new, or at another position" in said
        assert "response 't3/r0' is another one now" in said

    def test_a_task_that_is_gone_is_named(self, tmp_path: Path, plain: Path) -> None:
        with pytest.raises(InputError, match="task 't3' is gone"):
            sat(plain, write_tasks(tmp_path, lines()[:3]))

    def test_the_run_stays_as_it_was_and_can_be_locked_again(self, tmp_path: Path, plain: Path, tasks: Path) -> None:
        before = (plain / "run.sqlite").read_bytes()
        with pytest.raises(InputError):
            sat(plain, write_tasks(tmp_path, lines(seed=1)))
        assert (plain / "run.sqlite").read_bytes() == before
        assert score(plain, tasks).is_finished


class TestNothingTooEarly:
    def test_a_task_that_cannot_be_planned_leaves_nothing_behind(self, tmp_path: Path) -> None:
        given = lines()
        given[2]["rubric"]["edges"].append({"parent": "more", "child": "core", "kind": "weak"})
        with pytest.raises(PlanError, match=r"^tasks.jsonl, line 3: task 't2', component 'rubric': .*cycle"):
            score(tmp_path / "new" / "run", write_tasks(tmp_path, given), RICH)
        assert [path.name for path in tmp_path.iterdir()] == ["tasks.jsonl"]

    def test_a_folder_that_was_there_stays_and_is_empty(self, tmp_path: Path) -> None:
        given = lines()
        given[2]["rubric"]["edges"].append({"parent": "more", "child": "core", "kind": "weak"})
        (tmp_path / "run").mkdir()
        with pytest.raises(PlanError):
            score(tmp_path / "run", write_tasks(tmp_path, given), RICH)
        assert list((tmp_path / "run").iterdir()) == []

    def test_what_is_planned_later_is_planned_whole_or_not_at_all(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tasks = write_tasks(tmp_path, lines())
        score(tmp_path / "run", tasks, limit=1)
        prepare = jg.Jury.aprepare

        async def failing(jury: jg.Jury, task: jg.Task, *rest: Any) -> jg.Plan:
            if task.id == "t3":
                raise PlanError("no")
            return await prepare(jury, task, *rest)

        monkeypatch.setattr(jg.Jury, "aprepare", failing)
        with pytest.raises(PlanError, match="line 4: no"):
            score(tmp_path / "run", tasks)
        assert Run.open(tmp_path / "run").tasks_planned == 1

    def test_a_folder_that_is_no_run_stays_as_it_is(self, tmp_path: Path, tasks: Path) -> None:
        (tmp_path / "letters").write_text("dear")
        wrong = {
            tmp_path: "is neither a run nor empty; name another folder",
            tmp_path / "letters": "is a file; name a folder",
        }
        for folder, said in wrong.items():
            with pytest.raises(InputError, match=said):
                score(folder, tasks)
        assert (tmp_path / "letters").read_text() == "dear"

    def test_a_run_that_was_stopped_while_it_planned_is_begun_anew(
        self, tmp_path: Path, plain: Path, tasks: Path
    ) -> None:
        folder = tmp_path / "run"
        folder.mkdir()
        (folder / "run.lock").write_text('{"pid": 1, "host": "here", "since": "yesterday"}')
        shutil.copy(plain / "config.yaml", folder)
        score(folder, tasks)
        assert contents(folder) == contents(plain)

    def test_an_empty_folder_stays_the_folder_that_it_was(self, tmp_path: Path, tasks: Path) -> None:
        (tmp_path / "run").mkdir(mode=0o750)
        before = (tmp_path / "run").stat()
        score(tmp_path / "run", tasks)
        after = (tmp_path / "run").stat()
        assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)

    def test_the_folder_one_stands_in_can_be_filled(
        self, tmp_path: Path, tasks: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")
        score(Path(), tasks)
        assert Run.open(Path()).is_closed

    def test_a_file_that_changes_while_it_is_scored_stops_the_run_and_loses_nothing(self, tmp_path: Path) -> None:
        tasks = write_tasks(tmp_path, lines(tasks=40))
        with (
            jg.Jury.from_config(PLAIN) as jury,
            read_work(tasks) as work,
            closing(ScoringSession(tmp_path / "run", jury, work)) as session,
        ):
            asyncio.run(session.prepare(lambda count: None))
            write_tasks(tmp_path, lines(tasks=40, seed=1))
            with pytest.raises(InputError, match="changed"):
                asyncio.run(session.score(lambda count: None))
        checked(tmp_path / "run")


class TestTwoAtOnce:
    def test_the_second_is_told_who_writes(self, tmp_path: Path, tasks: Path) -> None:
        with (
            jg.Jury.from_config(PLAIN) as jury,
            read_work(tasks) as work,
            closing(ScoringSession(tmp_path / "run", jury, work)) as first,
        ):
            asyncio.run(first.prepare(lambda count: None))
            with pytest.raises(InputError, match=f"is being written by process {os.getpid()} on "):
                sat(tmp_path / "run", tasks)
            asyncio.run(first.score(lambda count: None))
        checked(tmp_path / "run")

    def test_of_two_that_begin_at_once_one_makes_the_run(self, tmp_path: Path, tasks: Path, plain: Path) -> None:
        with (
            jg.Jury.from_config(PLAIN) as jury,
            read_work(tasks) as work,
            closing(ScoringSession(tmp_path / "run", jury, work)) as first,
            closing(ScoringSession(tmp_path / "run", jury, work)) as second,
        ):
            asyncio.run(first.prepare(lambda count: None))
            with pytest.raises(InputError, match="is being written by process"):
                asyncio.run(second.prepare(lambda count: None))
            asyncio.run(first.score(lambda count: None))
        assert contents(tmp_path / "run") == contents(plain)


class TestForecast:
    @pytest.mark.parametrize(
        ("fields", "size", "asked"),
        [
            ({"scope": "pair"}, 1, 1),
            ({"scope": "group", "samples": 3}, 1, 1),
            ({"scope": "pair", "pairs": "unordered"}, 2, 1),
            ({"scope": "pair", "pairs": "unordered", "needs": ("x",)}, 2, 2),
            ({"scope": "pair", "pairs": "unordered"}, 3, 3),
            ({"samples": 2}, 3, 6),
        ],
    )
    def test_a_question_is_never_asked_more_often(self, fields: dict, size: int, asked: int) -> None:
        with jg.Jury.from_config({"evaluators": [counted("own")]}) as jury:
            plan = jury.prepare(jg.Task(id="t", query="?"))
            question = Question.model_validate(plan.survey.questions[0].model_dump() | fields)
            survey = plan.survey.model_copy(update={"questions": (question,)})
            expected = Forecast().with_group(survey.questions, size, jury.evaluators)
        assert expected.verdicts == asked

    def test_it_counts_what_is_left_and_writes_nothing(self, tmp_path: Path, tasks: Path) -> None:
        with (
            jg.Jury.from_config(PLAIN) as jury,
            read_work(tasks) as work,
            closing(ScoringSession(tmp_path / "run", jury, work, limit=3)) as session,
        ):
            expected = asyncio.run(session.forecast(lambda count: None))
        assert expected.to_json() == {
            "tasks": 3,
            "responses": 9,
            "questions": 9,
            "verdicts": 36,
            "model_verdicts": 0,
            "model": None,
        }
        assert list(tmp_path.iterdir()) == []


def test_the_header_says_what_the_run_was_made_from(plain: Path) -> None:
    header = json.loads(Run.open(plain).ledger.record_at(1).body)
    assert header["evaluators"]["tone"] == {"version": "1", "audience": "task"}
    assert header["combiners"].keys() >= {"mean"}
    assert header["config"]["reward"] == PLAIN["reward"]
    assert (header["base"], header["branch"]) == (None, None)
