"""Stakeholders and reviewers that no task or no history has are refused, with the nearest name and the place."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.judges.few_shot.reviewers import judge_use, rows, write_history

EVALUATOR = """\
import jurygraph as jg


@jg.evaluator(audience="stakeholder")
def content(task, response):
    return 0.5
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "served.py").write_text(EVALUATOR)
    write_tasks(tmp_path, ("first", {"stakeholders": ["ann", "ben"]}), ("second", {"stakeholders": ["cyd"]}))
    weigh(tmp_path, ann=2.0, ben=1.0, cyd=1.0)
    return tmp_path


def write_tasks(folder: Path, *tasks: tuple[str, dict[str, list[str]]]) -> None:
    lines = []
    for name, people in tasks:
        line: dict[str, Any] = {"id": name, "query": "Write.", "responses": [{"id": f"{name}/a", "text": "So be it."}]}
        line |= {"stakeholders": [{"id": person} for person in people.get("stakeholders", ())]}
        lines.append(json.dumps(line | {"reviewers": people.get("reviewers", [])}) + "\n")
    (folder / "tasks.jsonl").write_text("".join(lines))


def weigh(folder: Path, **fixed: float) -> None:
    weights = {"method": "fixed", "fixed": fixed}
    (folder / "jury.yaml").write_text(f"evaluators: [served.content]\n\nweights: {json.dumps(weights)}\n")


@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--limit", "1")])
def test_a_weight_of_a_stakeholder_that_no_task_has_is_refused(project: Path, run: Command, more: Any) -> None:
    weigh(project, ann=1.0, ben=1.0, cyd=1.0, benn=1.0)
    refused = run("score", "tasks.jsonl", "--out", "run", *more)
    problem = "no task has a stakeholder 'benn'; did you mean 'ben'?"
    assert (refused.code, (project / "run").exists()) == (2, False)
    assert f"jury.yaml, line 3, key weights.fixed.benn: {problem}" in refused.err


def test_a_reviewer_who_is_not_in_the_history_is_refused(project: Path, run: Command) -> None:
    history = write_history(project, rows({"ann": (1, 2, 3), "ben": (3, 4, 5)}))
    (project / "jury.yaml").write_text(json.dumps({"evaluators": [judge_use("personalized", history=history)]}))
    write_tasks(project, ("first", {"reviewers": ["ann"]}), ("second", {"reviewers": ["ben", "benn"]}))
    refused = run("score", "tasks.jsonl", "--out", "run")
    assert (refused.code, (project / "run").exists()) == (2, False)
    problem = "task 'second': reviewer 'benn' is not in history.jsonl; did you mean ben?"
    assert f"tasks.jsonl, line 2: {problem}" in refused.err
    assert run("doctor", "--config", "jury.yaml").code == 0


DEFAULTS = {
    "task_defaults.reviewers[1]: reviewer 'BEN' is not in history.jsonl; did you mean ben?": """\
evaluators: [{use: personalized, params: {history: history.jsonl, dimensions: {q: {text: Good?, scale: [1, 5]}}}}]
task_defaults:
  reviewers:
    - ann
    - BEN  # here
""",
    "task_defaults.facts.tables.hours.file: none.csv: there is no such file": """\
evaluators: [checks.constraints]
derivers: [facts.claims]
task_defaults:
  stakeholders: [{id: ann, constraints: [{id: brief, kind: hard, check: {text: a}}]}]
  facts:
    tables:
      hours:
        file: none.csv  # here
        key: [name]
    claims: {}
""",
    "task_defaults.stakeholders[1]: constraint 'brief' of 'ben', field check.function: there is no 'short'": """\
evaluators: [checks.constraints]
task_defaults:
  stakeholders:
    - id: ann
    - id: ben  # here
      constraints: [{id: brief, kind: hard, check: {function: short}}]
""",
    "task_defaults.stakeholders: weights.fixed names no weight for stakeholder 'ben'": """\
evaluators: [served.content]
weights: {method: fixed, fixed: {ann: 1}}
task_defaults:
  stakeholders: [{id: ann}, {id: ben}]  # here
""",
    "task_defaults.rubric: ": """\
evaluators: [criteria]
task_defaults:
  rubric:  # here
    criteria: [{id: a, text: Right., weight: 1}, {id: b, text: Kind., weight: 1}]
    edges: [{parent: a, child: b, kind: weak}, {parent: b, child: a, kind: weak}]
""",
    "components.total.inputs.met: task ": """\
evaluators: [criteria]
task_defaults: {rubric: {criteria: [{id: a, text: Right., weight: 1}]}}
components:
  total:
    inputs:
      met: critera  # here
reward: {total: 1}
""",
}


@pytest.mark.parametrize("problem", DEFAULTS)
def test_an_error_in_the_parts_that_a_config_gives_to_tasks_names_its_line(
    project: Path, run: Command, problem: str
) -> None:
    write_history(project, rows({"ann": (1, 2, 3), "ben": (3, 4, 5), "bee": (3, 4, 5)}))
    write_tasks(project, ("first", {}))
    lines = DEFAULTS[problem].splitlines()
    (project / "jury.yaml").write_text(DEFAULTS[problem])
    line = 1 + next(number for number, text in enumerate(lines) if text.endswith("# here"))
    score = "score tasks.jsonl --out run"
    for command in (score, f"{score} --dry-run"):
        ended = run(*command.split())
        assert (ended.code, (project / "run").exists()) == (2, False), ended.out
        assert f"jury.yaml, line {line}, key {problem}" in ended.out + ended.err
        assert "tasks.jsonl, line" not in ended.err


def test_a_task_with_reviewers_of_its_own_does_not_need_those_of_the_config(project: Path, run: Command) -> None:
    write_history(project, rows({"ann": (1, 2, 3), "ben": (3, 4, 5)}))
    (project / "jury.yaml").write_text(next(text for problem, text in DEFAULTS.items() if "BEN" in problem))
    write_tasks(project, ("first", {"reviewers": ["ann"]}))
    assert run("score", "tasks.jsonl", "--out", "run", "--dry-run").code == 0
    write_tasks(project, ("first", {"reviewers": ["benn"]}))
    refused = run("score", "tasks.jsonl", "--out", "run")
    assert "tasks.jsonl, line 1: task 'first': reviewer 'benn' is not in history.jsonl" in refused.err
