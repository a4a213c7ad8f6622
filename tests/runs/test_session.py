"""Scoring into a run: nothing is written too early, nothing is asked twice."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from jurygraph import InputError, PlanError
from jurygraph.runs import Run, Session, forecast
from jurygraph.schema import Config, EvaluatorUse, Question
from tests.runs.made import CONFIG, HandJury, lines, plan, work


def sit(folder: Path, jury: HandJury, given=None, limit: int | None = None) -> Session:
    async def both() -> None:
        await session.prepare()
        await session.score(lambda count: None)

    session = Session(folder, jury, given or work(), limit)
    asyncio.run(both())
    return session


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    sit(tmp_path / "whole", HandJury())
    return tmp_path / "whole"


def test_a_run_holds_its_manifest_config_plans_and_traces(whole: Path):
    assert sorted(path.name for path in whole.iterdir()) == ["config.yaml", "plans.jsonl", "run.json", "traces.jsonl"]
    run = Run.open(whole)
    assert (run.manifest.status, run.manifest.done.tasks, run.manifest.done.responses) == ("complete", 4, 8)
    assert run.manifest.finished is not None
    assert run.config() == CONFIG
    assert list(run.plans()) == ["t0", "t1", "t2", "t3"]
    assert [trace.response_id for trace in run.traces()] == [f"t{i}/r{j}" for i in range(4) for j in range(2)]


def test_times_stand_in_the_manifest_alone(whole: Path, tmp_path: Path):
    sit(tmp_path / "again", HandJury())
    for name in ("traces.jsonl", "plans.jsonl", "config.yaml"):
        assert (whole / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_nothing_is_written_before_every_task_is_planned(tmp_path: Path):
    session = Session(tmp_path / "run", HandJury(), work())
    asyncio.run(session.prepare())
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_run_keeps_what_it_had(tmp_path: Path):
    with pytest.raises(KeyboardInterrupt):
        sit(tmp_path / "run", HandJury(stop_after=2))
    run = Run.open(tmp_path / "run")
    assert (run.manifest.status, run.manifest.done.tasks, run.manifest.asked.tasks) == ("interrupted", 2, 4)
    assert len(lines(tmp_path / "run")) == 4


@pytest.mark.parametrize("torn", [0, 1, 40, 1000])
def test_it_goes_on_where_it_was_and_ends_like_an_unbroken_one(tmp_path: Path, whole: Path, torn: int):
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        sit(folder, HandJury(stop_after=3))
    traces = (folder / "traces.jsonl").read_bytes()
    (folder / "traces.jsonl").write_bytes(traces[: len(traces) - torn])
    jury = HandJury()
    session = sit(folder, jury)
    assert jury.planned == jury.asked == (["t3"] if torn == 0 else ["t2", "t3"])
    assert (folder / "traces.jsonl").read_bytes() == (whole / "traces.jsonl").read_bytes()
    assert session.summary == sit(tmp_path / "other", HandJury()).summary


def test_a_complete_run_asks_nothing_again(whole: Path):
    before = {path.name: path.read_bytes() for path in whole.iterdir()}
    session = Session(whole, HandJury(), work())
    assert session.finished
    assert session.pending == []
    assert session.summary.responses == 8
    assert {path.name: path.read_bytes() for path in whole.iterdir()} == before


def test_a_run_of_some_tasks_can_be_carried_on_to_all(tmp_path: Path, whole: Path):
    sit(tmp_path / "run", HandJury(), limit=1)
    assert Run.open(tmp_path / "run").manifest.asked.tasks == 1
    jury = HandJury()
    sit(tmp_path / "run", jury)
    assert jury.asked == ["t1", "t2", "t3"]
    assert (tmp_path / "run" / "traces.jsonl").read_bytes() == (whole / "traces.jsonl").read_bytes()
    assert list(Run.open(tmp_path / "run").plans()) == ["t0", "t1", "t2", "t3"]
    assert Session(tmp_path / "run", HandJury(), work(), limit=2).finished


OTHER = Config(evaluators=(EvaluatorUse(use="own.tone"),), reward={"tone": 2.0}, scale=2.0)


@pytest.mark.parametrize(
    ("jury", "given", "message"),
    [
        (HandJury(OTHER), work(), "config reward.tone is none in the run and 2.0 here; config scale is 1.0 in the run"),
        (HandJury(version="2"), work(), 'evaluator own.tone has version "1" in the run and "2" here'),
        (HandJury(), work(sha256="f" * 64), r"the tasks file is tasks.jsonl \(0{12}\) in the run and"),
    ],
    ids=["config", "evaluator version", "tasks file"],
)
def test_other_settings_are_refused_and_named(whole: Path, jury: HandJury, given, message: str):
    with pytest.raises(InputError, match=message) as caught:
        Session(whole, jury, given)
    assert str(caught.value).endswith("use another --out")


def test_another_plan_for_a_task_that_is_still_to_come_is_refused(tmp_path: Path):
    with pytest.raises(KeyboardInterrupt):
        sit(tmp_path / "run", HandJury(stop_after=1))
    with pytest.raises(InputError, match="the plan of task 't1' is another one now"):
        sit(tmp_path / "run", HandJury(note="other"))


def test_a_folder_that_is_no_run_stays_as_it_is(tmp_path: Path):
    (tmp_path / "letters").write_text("dear")
    with pytest.raises(InputError, match="is no run, and not empty"):
        Session(tmp_path, HandJury(), work())
    with pytest.raises(InputError, match="is no run, and not empty"):
        Session(tmp_path / "letters", HandJury(), work())


def test_an_empty_folder_is_filled_and_stays_the_folder_that_it_was(tmp_path: Path, whole: Path):
    (tmp_path / "run").mkdir(mode=0o750)
    before = (tmp_path / "run").stat()
    sit(tmp_path / "run", HandJury())
    after = (tmp_path / "run").stat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == sorted(p.name for p in whole.iterdir())
    assert Run.open(tmp_path / "run").manifest.status == "complete"


def test_the_folder_one_stands_in_can_be_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    sit(Path(), HandJury())
    assert Run.open(Path()).manifest.status == "complete"
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


def test_a_folder_that_cannot_be_filled_stays_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(path: Path, target: Path) -> None:
        if target.name == "run.json":
            raise OSError(28, "No space left on device")
        os.rename(path, target)

    (tmp_path / "run").mkdir()
    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(OSError, match="No space"):
        sit(tmp_path / "run", HandJury())
    assert list((tmp_path / "run").iterdir()) == []


@pytest.mark.parametrize("there", [False, True])
def test_of_two_who_begin_at_once_the_second_is_refused(tmp_path: Path, there: bool):
    folder = tmp_path / "run"
    if there:
        folder.mkdir()
    first, second = (Session(folder, HandJury(), work()) for _ in range(2))
    asyncio.run(first.prepare())
    asyncio.run(second.prepare())
    asyncio.run(first.score(lambda count: None))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(InputError, match="is being written by another process"):
        asyncio.run(second.score(lambda count: None))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_run_that_is_held_is_refused_until_it_is_let_go(tmp_path: Path):
    with pytest.raises(KeyboardInterrupt):
        sit(tmp_path / "run", HandJury(stop_after=1))
    first = Session(tmp_path / "run", HandJury(), work())
    with pytest.raises(InputError, match=r"run: is being written by another process"):
        Session(tmp_path / "run", HandJury(), work())
    first.close()
    sit(tmp_path / "run", HandJury())


def test_a_task_that_cannot_be_planned_is_named_by_its_line(tmp_path: Path):
    class Planless(HandJury):
        async def aprepare(self, task):
            raise PlanError(f"task {task.id!r}: no")

    given = work()
    session = Session(tmp_path / "run", Planless(), given)
    with pytest.raises(PlanError, match=r"^tasks.jsonl: task 't0': no$"):
        asyncio.run(session.prepare())
    given.lines["t0"] = 7
    with pytest.raises(PlanError, match=r"^tasks.jsonl, line 7: task 't0': no$"):
        asyncio.run(session.prepare())


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
def test_the_forecast_of_a_question_is_never_below_what_is_asked(tmp_path: Path, fields, size: int, asked: int):
    session = Session(tmp_path / "run", HandJury(), work(tasks=1, responses=size))
    planned = plan(session.pending[0][0])
    question = Question(id="q", evaluator="own.tone", version="1", subject="q", view="v", **fields)
    survey = planned.survey.model_copy(update={"questions": (question,)})
    session.plans.append(planned.model_copy(update={"survey": survey}))
    assert forecast(session).verdicts == asked


def test_a_run_is_made_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("jurygraph.runs.run.write_whole", full)
    with pytest.raises(OSError, match="No space"):
        sit(tmp_path / "run", HandJury())
    assert list(tmp_path.iterdir()) == []


def test_the_forecast_counts_what_would_be_asked(tmp_path: Path):
    questions = [
        Question(id="one", evaluator="own.tone", version="1", subject="one", view="v"),
        Question(id="pair", evaluator="own.tone", version="1", subject="pair", view="v", scope="pair", samples=2),
        Question(
            id="half", evaluator="own.tone", version="1", subject="half", view="v", scope="pair", pairs="unordered"
        ),
        Question(id="all", evaluator="own.tone", version="1", subject="all", view="v", scope="group"),
    ]
    jury = HandJury()
    jury.evaluators["own.tone"].asks_model = True
    session = Session(tmp_path / "run", jury, work(tasks=2, responses=3))
    for task, _ in session.pending:
        planned = plan(task)
        survey = planned.survey.model_copy(update={"questions": tuple(questions)})
        session.plans.append(planned.model_copy(update={"survey": survey}))
    expected = forecast(session)
    assert (expected.tasks, expected.responses, expected.questions) == (2, 6, 8)
    assert expected.verdicts == expected.asked_of_model == 2 * (3 + 12 + 3 + 3)
    assert expected.model_calls == 0


def test_the_manifest_is_plain_json(whole: Path):
    content = json.loads((whole / "run.json").read_text())
    assert content["schema_version"] == 1
    assert content["tasks"] == {"name": "tasks.jsonl", "sha256": "0" * 64}
    assert content["evaluators"] == {"own.tone": "1"}
