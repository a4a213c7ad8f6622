"""Table files of tasks must be below the folder of the tasks, unless an option allows others."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import JURYGRAPH, Command, CommandResult
from tests.rows import all_rows

CONFIG = "derivers: [facts.claims]\nevaluators: [facts.confirmed]\n"
MODEL = "evaluators: [criteria]\nmodel: openai-compatible:http://127.0.0.1:9/v1#nobody\ncalls: {cache: false}\n"


def task(file: str) -> dict[str, object]:
    form = {"table": "places", "pattern": r"(?P<name>[^,]+), (?P<city>[^,]+)"}
    facts = {
        "tables": {"places": {"key": ["name", "city"], "file": file}},
        "claims": {"meals": {"at": ["$[*].meal"], "forms": [form]}},
    }
    rubric = {"criteria": [{"id": "short", "text": "It is short.", "weight": 1.0}]}
    response = {"id": "a/1", "text": "", "data": [{"meal": "Coco Bambu, Rockford"}]}
    return {"id": "a", "query": "Where to?", "facts": facts, "rubric": rubric, "responses": [response]}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a table in it and another outside."""
    project = tmp_path / "project"
    (project / "tables").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    for folder in (project, project / "tables", tmp_path / "outside"):
        (folder / "places.csv").write_text("name,city\nCoco Bambu,Rockford\n")
    (project / "jury.yaml").write_text(CONFIG)
    (project / "model.yaml").write_text(MODEL)
    (project / "link.csv").symlink_to(tmp_path / "outside" / "places.csv")
    (project / "linked").symlink_to(tmp_path / "outside")
    monkeypatch.chdir(project)
    return project


def score(run: Command, file: str, *options: str) -> CommandResult:
    Path("tasks.jsonl").write_text(json.dumps(task(file)) + "\n")
    return run("score", "tasks.jsonl", "--out", "run", *options)


OUTSIDE = ["../outside/places.csv", "tables/../../outside/places.csv", "link.csv", "linked/places.csv", "/etc/hostname"]


@all_rows("file, dry", [(file, dry) for file in OUTSIDE for dry in ((), ("--dry-run",))])
def test_a_table_file_outside_the_folder_of_the_tasks_is_refused_with_line_and_field(
    project: Path, run: Command, file: str, dry: tuple[str, ...]
) -> None:
    ended = score(run, file, *dry)
    assert (ended.code, ended.out) == (2, "")
    assert "error: tasks.jsonl, line 1, field facts.tables.places.file: " in ended.err
    assert f"is not below {project}; move the file there, or allow files elsewhere with --allow-files-outside" in (
        ended.err.replace("which ", "")
    )
    assert not (project / "run").exists()


@pytest.mark.parametrize("file", ["places.csv", "tables/places.csv", "./linked/../project/tables/places.csv", "WHOLE"])
def test_a_table_file_below_the_folder_of_the_tasks_is_read(project: Path, run: Command, file: str) -> None:
    if file.startswith("./linked"):
        (project / "linked").unlink()
        (project / "linked").symlink_to(project.parent / "project")
        file = "linked/tables/places.csv"
    ended = score(run, str(project / "places.csv") if file == "WHOLE" else file)
    assert ended.code == 0, ended.err


def test_an_option_allows_table_files_elsewhere(project: Path, run: Command) -> None:
    assert score(run, "../outside/places.csv", "--allow-files-outside").code == 0
    refused = run("verify", "run", "--deep")
    assert refused.code == 2
    assert "run: task 'a', field facts.tables.places.file: is '../outside/places.csv'" in refused.err
    assert run("verify", "run").code == 0
    assert run("verify", "run", "--deep", "--allow-files-outside").code == 0


@pytest.mark.exhaustive
def test_tasks_from_standard_input_may_use_files_of_the_current_folder(project: Path) -> None:
    for file, code in (("places.csv", 0), ("link.csv", 2)):
        words = [JURYGRAPH, "score", "-", "--config", "jury.yaml", "--out", "run"]
        done = subprocess.run(words, input=json.dumps(task(file)), capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        shutil.rmtree("run", ignore_errors=True)


def test_attack_refuses_files_outside_the_folder_of_its_tasks_too(project: Path, run: Command) -> None:
    (project / "tasks.jsonl").write_text(json.dumps(task("link.csv")) + "\n")
    command = ("attack", "--config", "model.yaml", "--tasks", "tasks.jsonl", "--dry-run")
    refused = run(*command)
    assert refused.code == 2
    assert "tasks.jsonl, line 1, field facts.tables.places.file: is 'link.csv'" in refused.err
    assert run(*command, "--allow-files-outside").code == 0
