"""`task_defaults` in a config: they complete tasks as if they were written there."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.errors import ConfigError, InputError
from jurygraph.runs.workflows.forecasting import RemainingWorkEstimator
from jurygraph.testing import ScriptedJudge
from tests.judges.few_shot.reviewers import judge_use, rows, write_history
from tests.runs.sample_runs import open_job, plan_and_score, scored_session, traces_of, write_tasks

HERE = "tests.runs.test_task_defaults"
RUBRIC = {"criteria": [{"id": "kind", "text": "It is kind.", "weight": 2.0}]}
OWN_RUBRIC = {"criteria": [{"id": "short", "text": "It is short.", "weight": 1.0}]}
LINES: list[dict[str, Any]] = [
    {"id": "bare", "query": "Write.", "responses": [{"id": "bare/a", "text": "dear you"}]},
    {
        "id": "own",
        "query": "Write.",
        "rubric": OWN_RUBRIC,
        "responses": [{"id": "own/a", "text": "hi"}],
    },
]
CONFIG: dict[str, Any] = {"evaluators": ["criteria"], "task_defaults": {"rubric": RUBRIC}}
JUDGE = {"kind": 0.9, "short": 0.25}


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_tasks(tmp_path, LINES)


def score(folder: Path, tasks: Path, config: Mapping[str, Any], **more: Any) -> list[jg.Trace]:
    with scored_session(folder, tasks, config, model=ScriptedJudge(JUDGE), **more):
        return traces_of(folder)


def results(traces: list[jg.Trace]) -> list[Any]:
    return [(trace.response_id, trace.plan_digest, trace.reward.value) for trace in traces]


def test_a_run_equals_that_of_tasks_with_the_defaults_written_in_them(
    tasks: Path, tmp_path: Path
) -> None:
    completed = score(tmp_path / "run", tasks, CONFIG)
    written = write_tasks(tmp_path, [{"rubric": RUBRIC, **line} for line in LINES], "written.jsonl")
    assert results(score(tmp_path / "other", written, {"evaluators": ["criteria"]})) == results(
        completed
    )
    task, response = jg.Task(id="bare", query="Write."), jg.Response(id="bare/a", text="dear you")
    with jg.Jury.from_config(CONFIG, model=ScriptedJudge(JUDGE)) as jury:
        for plan in (None, jury.prepare(task)):
            assert results(jury.score(task, [response], plan=plan)) == results(completed)[:1]


def test_a_run_is_resumed_with_the_same_defaults_alone(tasks: Path, tmp_path: Path) -> None:
    score(tmp_path / "run", tasks, CONFIG, limit=1)
    warm = {"criteria": [{**RUBRIC["criteria"][0], "text": "It is warm."}]}
    changed = r'config task_defaults.rubric.criteria\[0\].text is "It is kind." in the run and "It is warm." here'
    with pytest.raises(InputError, match=changed):
        score(tmp_path / "run", tasks, {**CONFIG, "task_defaults": {"rubric": warm}})
    assert len(score(tmp_path / "run", tasks, CONFIG)) == 2


def view_of(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
    return jg.Verdict(score=1.0, reason=f"{task.member} {task.facts}")


people = jg.evaluator(view_of, layer="check", audience="stakeholder", name="people", version="1")
raters = jg.evaluator(view_of, layer="check", audience="reviewer", name="raters", version="1")


def test_stakeholders_reviewers_and_facts_reach_their_evaluators() -> None:
    defaults = {"stakeholders": [{"id": "ann"}], "reviewers": ["rae"], "facts": {"price": 3}}
    config = {
        "evaluators": [f"{HERE}.people", f"{HERE}.raters"],
        "reward": {"stakeholders": 1, "raters": 1},
    }
    with jg.Jury.from_config({**config, "task_defaults": defaults}) as jury:
        (trace,) = jury.score(jg.Task(id="bare", query="Write."), ["dear you"])
    assert [verdict.reason for verdict in trace.verdicts] == [
        "ann {'price': 3}",
        "rae {'price': 3}",
    ]


def test_a_task_with_reviewers_of_its_own_does_not_need_those_of_the_config(tmp_path: Path) -> None:
    history = write_history(tmp_path, rows({"ann": (1, 2, 3), "ben": (3, 4, 5)}))
    config = {
        "evaluators": [judge_use("personalized", history=history)],
        "task_defaults": {"reviewers": ["BEN"]},
    }
    with jg.Jury.from_config(config) as jury:
        jury.prepare(jg.Task(id="own", query="Write.", reviewers=("ann",)))
        with pytest.raises(
            ConfigError, match=r"task_defaults.reviewers\[0\]: reviewer 'BEN' is not in history"
        ):
            jury.prepare(jg.Task(id="bare", query="Write."))
        with pytest.raises(
            jg.PlanError,
            match=r"'own': reviewer 'benn' is not in history\.jsonl \(.*\); did you mean ben",
        ):
            jury.prepare(jg.Task(id="own", query="Write.", reviewers=("benn",)))


FACTS = {"tables": {"hours": {"file": "none.csv", "key": ["name"]}}, "claims": {}}
ERRORS: list[tuple[dict[str, Any], str]] = [
    (
        {
            "evaluators": ["checks.constraints"],
            "derivers": ["facts.claims"],
            "task_defaults": {"facts": FACTS},
        },
        r"task_defaults.facts.tables.hours.file: none.csv: there is no such file",
    ),
    (
        {
            "evaluators": [f"{HERE}.people"],
            "weights": {"method": "fixed", "fixed": {"ann": 1.0, "benn": 1.0}},
        },
        r"weights.fixed.benn: no task has a stakeholder 'benn'; did you mean ben\?",
    ),
]


@pytest.mark.parametrize(("config", "error"), ERRORS)
def test_an_error_in_the_config_is_found_by_a_dry_run_and_with_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any], error: str
) -> None:
    monkeypatch.chdir(tmp_path)
    constraint = {"id": "brief", "kind": "hard", "check": {"text": "a"}}
    lines = [
        {**LINES[0], "id": name, "stakeholders": [{"id": name, "constraints": [constraint]}]}
        for name in ("ann", "ben")
    ]
    for line in lines:
        line["responses"] = [{"id": f"{line['id']}/a", "text": "a"}]
    tasks = write_tasks(tmp_path, lines)
    with open_job(tmp_path / "run", tasks, config, limit=1) as (job, stored):
        for act in (
            RemainingWorkEstimator(job, stored).forecast(lambda count: None),
            plan_and_score(job, stored),
        ):
            with pytest.raises(ConfigError, match=error):
                asyncio.run(act)
    assert not (tmp_path / "run").exists()
