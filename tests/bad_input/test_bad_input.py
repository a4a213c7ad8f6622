"""Every kind of bad input: exit code 2, one line that says where and what would be right, and nothing written.

A kind is a folder in `cases`, which contains the files that make the project in `good` invalid, with a row in
`refusals.py`; or a function in `built.py`. `{folder}` is the folder of the project.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bad_input.built import BUILT
from tests.bad_input.conftest import Command, listing, unprivileged_user
from tests.bad_input.refusals import STORED, Refusal
from tests.command import CommandResult
from tests.rows import all_rows

HERE = Path(__file__).parent
REFUSALS = {**STORED, **{kind: built.refusal for kind, built in BUILT.items()}}

WITHOUT_A_LINE = set(
    """
    a_config_of_megabytes a_config_that_is_a_folder a_config_that_is_not_there
    a_file_that_is_not_there a_folder a_gzip_file_that_is_cut_short a_parquet_file an_empty_file
    apart_empty config_empty reward_left_out run_is_a_file run_is_a_folder_of_something_else
    """.split()
)
"""Kinds of input in which there is no line that could be named: there is none, or what is wrong is not there."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in which nothing is wrong."""
    return Path(
        shutil.copytree(
            HERE / "good", tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__")
        )
    )


def score(run: Command, project: Path) -> CommandResult:
    """Score the tasks of a project, whatever form they have; with its responses and profiles, if they stand apart."""
    tasks = next(iter(sorted(project.glob("tasks.*"))), project / "tasks.jsonl")
    placed = {
        "--responses": project / "responses.jsonl",
        "--profiles-from": project / "profiles.jsonl",
    }
    more = [word for option, file in placed.items() if file.exists() for word in (option, file)]
    return run("score", tasks, "--config", project / "jury.yaml", "--out", project / "run", *more)


def refuse(run: Command, project: Path, refusal: Refusal) -> None:
    """Score it, and find it refused in one line that names this place and this remedy."""
    before = listing(project)
    ended = score(run, project)
    message = ended.err.splitlines()[-1]
    place, remedy = (text.replace("{folder}", str(project)) for text in refusal)
    assert message.startswith(f"error: {place}: ")
    assert message.endswith(remedy)
    assert (ended.code, ended.out) == (2, "")
    assert listing(project) == before


def test_every_case_has_a_row() -> None:
    assert sorted(STORED) == sorted(folder.name for folder in (HERE / "cases").iterdir())


@pytest.mark.parametrize("kind", STORED)
def test_an_invalid_file_is_refused(run: Command, project: Path, kind: str) -> None:
    shutil.copytree(HERE / "cases" / kind, project, dirs_exist_ok=True)
    refuse(run, project, STORED[kind])


@pytest.mark.landing
@pytest.mark.parametrize("kind", BUILT)
def test_a_file_of_another_kind_is_refused(run: Command, project: Path, kind: str) -> None:
    BUILT[kind].make(project)
    refuse(run, project, BUILT[kind].refusal)


@all_rows("kind", [*REFUSALS])
def test_a_refusal_names_the_file_and_the_line(kind: str) -> None:
    place = REFUSALS[kind].place
    if kind in WITHOUT_A_LINE:
        assert re.fullmatch(r"(\{folder\}/)?[\w.]+(, key [\w.]+)?", place)
    else:
        assert re.fullmatch(r"[\w.]+, line \d+(, (field|key) .+)?", place)


@pytest.fixture
def open_project() -> Iterator[Path]:
    """A project in a folder that everybody may enter."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        shutil.copytree(HERE / "good", project, ignore=shutil.ignore_patterns("__pycache__"))
        for path in (Path(folder), project):
            path.chmod(0o755)
        yield project


@pytest.mark.parametrize("name", ["tasks.jsonl", "jury.yaml"])
def test_a_file_without_read_access_is_refused(run: Command, open_project: Path, name: str) -> None:
    (open_project / name).chmod(0)
    with unprivileged_user():
        refuse(run, open_project, Refusal(f"{{folder}}/{name}", "ask for permission to read it"))


def test_tasks_and_responses_cannot_share_standard_input(run: Command, project: Path) -> None:
    ended = run(
        "score",
        "-",
        "--responses",
        "-",
        "--config",
        project / "jury.yaml",
        "--out",
        project / "run",
    )
    assert (ended.code, ended.out) == (2, "")
    wrong = "tasks and responses cannot both come from standard input; put one of them in a file"
    assert ended.err == f"error: {wrong}\n"


def test_a_limit_of_no_tasks_is_refused(run: Command, project: Path) -> None:
    before = listing(project)
    ended = run("score", project / "tasks.jsonl", "--out", project / "run", "--limit", 0)
    assert (ended.code, ended.out) == (2, "")
    wrong = (
        r"Error: Invalid value for '--limit': (.*greater than or equal to 1|0 is not in the range)"
    )
    assert re.match(wrong, ended.err.splitlines()[-1])
    assert listing(project) == before


def test_the_project_behind_the_cases_is_valid(run: Command, project: Path) -> None:
    ended = score(run, project)
    assert ended.code == 0
    assert "error" not in ended.err


@pytest.mark.parametrize(
    "text",
    ["", " ", "\\u0000", "\\ufeff", "x" * 10**6],
    ids=["none", "blank", "NUL", "mark", "long"],
)
def test_any_text_of_a_response_is_accepted(run: Command, project: Path, text: str) -> None:
    given = (project / "tasks.jsonl").read_text().replace("Salt!", text)
    (project / "tasks.jsonl").write_text(given)
    assert score(run, project).code == 0


def test_changes_by_editors_are_accepted(run: Command, project: Path) -> None:
    given = (project / "tasks.jsonl").read_bytes()
    (project / "tasks.jsonl").write_bytes(b"\xef\xbb\xbf" + given.replace(b"\n", b"\r\n\r\n"))
    assert score(run, project).code == 0
