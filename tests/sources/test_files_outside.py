"""Table files of tasks must be below the folder of the tasks, however they are named."""

import json
from pathlib import Path
from typing import Any

import pytest

from jurygraph import InputError
from jurygraph.sources import open_task_source, read_config, read_tasks
from jurygraph.sources.task_tables import (
    find_outside_table_error,
    folder_of_tasks_file,
    locate_table_files,
)
from jurygraph.sources.tasks import TaskLinesFile
from tests.rows import all_rows

OUTSIDE = [
    "../outside/places.csv",
    "tables/../../outside/places.csv",
    "link.csv",
    "linked/places.csv",
    "/etc/hostname",
]
BELOW = ["places.csv", "tables/places.csv", "back/tables/places.csv", "{folder}/places.csv"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a table in it and another outside."""
    project = tmp_path / "project"
    (project / "tables").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    for folder in (project, project / "tables", tmp_path / "outside"):
        (folder / "places.csv").touch()
    (project / "link.csv").symlink_to(tmp_path / "outside" / "places.csv")
    (project / "linked").symlink_to(tmp_path / "outside")
    (project / "back").symlink_to(project)
    monkeypatch.chdir(project)
    return project


def facts(file: str) -> dict[str, Any]:
    return {"tables": {"places": {"key": ["name"], "file": file}}}


@all_rows("file", OUTSIDE)
def test_a_file_outside_is_refused_with_line_and_field(project: Path, file: str) -> None:
    line = {
        "id": "a",
        "query": "Where to?",
        "facts": facts(file),
        "responses": [{"id": "a/1", "text": "There."}],
    }
    tasks = project / "tasks.jsonl"
    tasks.write_text(json.dumps(line) + "\n")
    with pytest.raises(InputError) as refused:
        open_task_source(tasks)
    assert str(refused.value) == (
        f"tasks.jsonl, line 1, field facts.tables.places.file: is '{file}', which is not below {project}; move the "
        "file there, or allow files elsewhere with --allow-files-outside"
    )
    with open_task_source(tasks, allow_files_outside=True) as work:
        assert len(list(work.pairs())) == 1


def test_a_file_is_looked_for_in_the_folder_of_the_tasks_and_then_in_the_current_one(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert locate_table_files(facts("places.csv"), project) is None
    monkeypatch.chdir(project.parent)
    path = str(project / "places.csv")
    assert locate_table_files(facts("places.csv"), project) == facts(path)
    assert locate_table_files(facts(path), project) is None
    name = f"{project.name}/places.csv"
    assert locate_table_files(facts(name), project) is None
    assert find_outside_table_error(facts(name), project) is None
    missing = find_outside_table_error(facts("plaecs.csv"), project)
    assert missing is not None
    assert missing.problem == f"is 'plaecs.csv', which is neither in {project} nor in {Path.cwd()}"
    for file, folder in (("/gone.csv", project), ("../gone.csv", project.parent)):
        outside = find_outside_table_error(facts(file), folder)
        assert outside is not None
        assert outside.problem == f"is '{file}', which is not below {folder}"
    line = {
        "id": "a",
        "query": "Where to?",
        "facts": facts("places.csv"),
        "responses": [{"id": "a/1", "text": "There."}],
    }
    tasks = project / "tasks.jsonl"
    tasks.write_text(json.dumps(line) + "\n")
    ((task, _),) = read_tasks(tasks)
    assert task.facts == facts(path)
    with TaskLinesFile(tasks, folder=project) as lines:
        assert [entry.facts for entry in lines] == [facts(path)]
        assert [task.facts for _, task in lines.tasks()] == [facts(path)]
    config = project / "jury.yaml"
    config.write_text(
        json.dumps(
            {"evaluators": ["maths.accuracy"], "task_defaults": {"facts": facts("places.csv")}}
        )
    )
    assert read_config(config).task_defaults.facts == facts(path)
    too_long = find_outside_table_error(facts("../" + "x" * 5000), project)
    assert too_long is not None
    assert str(too_long.remedy).startswith("move the file there")


@all_rows("file", BELOW)
def test_a_file_below_is_read(project: Path, file: str) -> None:
    assert find_outside_table_error(facts(file.format(folder=project)), project) is None


@all_rows("tasks", ["-", "/dev/null"])
def test_tasks_from_a_stream_may_use_files_of_the_current_folder(project: Path, tasks: str) -> None:
    assert find_outside_table_error(facts("places.csv"), folder_of_tasks_file(tasks)) is None
    assert find_outside_table_error(facts("link.csv"), folder_of_tasks_file(tasks)) is not None
