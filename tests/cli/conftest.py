"""A small project with evaluators of its own, so that a command can run without a worker process."""

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.command import JURYGRAPH, CommandResult, run_command
from tests.models.server import Server

__all__ = ["JURYGRAPH", "CommandResult", "run_command"]

EVALUATORS = '''\
import jurygraph as jg


def polite(task, response):
    """0.25 for every "please", and a quote of the first one."""
    start = response.text.find("please")
    evidence = () if start < 0 else (jg.Evidence(quote="please", start=start, end=start + 6, verified=True),)
    return jg.Verdict(score=min(1.0, 0.25 * response.text.count("please")), evidence=evidence, reason="counted")


def shaky(task, response):
    if "crash" in response.text:
        raise RuntimeError("the crash that was asked for")
    if "offline" in response.text:
        raise ConnectionError("the service cannot be reached")
    return "bad" not in response.text


@jg.evaluator(layer="model")
def judge(task, response):
    raise AssertionError("there is no model to ask")
'''

CALL_LOGGING_EVALUATORS = '''\
from pathlib import Path

import jurygraph as jg

CALLS = Path(__file__).with_name("calls")


def note(*words):
    with CALLS.open("a") as file:
        file.write(" ".join(words) + "\\n")


@jg.evaluator(version="1")
def echo(task, response):
    """A third, and the response in its own words."""
    note("echo", response.id)
    evidence = [jg.Evidence(quote=response.text[:9], start=0, end=9)] if len(response.text) > 9 else []
    return jg.Verdict(score=1 / 3, reason=f"it says: {response.text}", evidence=evidence)


@jg.evaluator(version="1", scope="pair", pairs="unordered")
def better(task, first, second):
    """The longer one is better by two thirds; the other one is quoted."""
    note("better", *sorted((first.id, second.id)))
    longer = len(first.text) > len(second.text)
    return jg.Verdict(score=2 / 3 if longer else 1 / 3, reason=f"weighed against: {second.text}")
'''
"""Evaluators that record their calls in a file next to them."""

CONFIG = "evaluators: [manners.polite, manners.shaky]\nreward: {polite: 1.0, shaky: -0.5}\n"

TASKS = [
    {
        "id": "door",
        "query": "Ask for the door to be closed.",
        "responses": [
            {"id": "door/a", "agent": "alice", "text": "the door, please, please, please, please"},
            {"id": "door/b", "agent": "bob", "text": "bad: the door"},
        ],
    },
    {
        "id": "salt",
        "query": "Ask for the salt.",
        "responses": [
            {"id": "salt/a", "agent": "alice", "text": "salt, please"},
            {"id": "salt/b", "agent": "bob", "text": ""},
        ],
    },
]

SECRET = "Dear Mr Quill, the heating at 12 Larch Lane is off."
LETTERS = [
    {
        "id": "letter",
        "query": "Write to the landlord of 12 Larch Lane.",
        "responses": [
            {
                "id": "letter/a",
                "agent": "alice",
                "text": SECRET,
                "data": {"phone": "0171 555 0100"},
                "labels": {"gold": "by Mrs Hollis"},
            },
            {"id": "letter/b", "agent": "bob", "text": "please, it is cold in here"},
            {"id": "letter/c", "agent": "carol", "text": SECRET},
        ],
    },
    {
        "id": "note",
        "query": "Write a note to the neighbours.",
        "responses": [
            {"id": "note/a", "agent": "alice", "text": f"As I wrote to him: {SECRET}"},
            {"id": "note/b", "agent": "bob", "text": ""},
        ],
    },
]
LETTERS_CONFIG = "evaluators: [manners.echo, manners.better]\nreward: {echo: 0.1, better: 0.7}\n"


Command = Callable[..., CommandResult]


@pytest.fixture
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the replies of models in a folder of the test's own."""
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def run() -> Command:
    """Run a command as the console script does."""
    return run_command


def run_new_process(*arguments: object) -> CommandResult:
    """Run a command in a new process, which imports everything itself."""
    done = subprocess.run(
        [JURYGRAPH, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    return CommandResult(done.returncode, done.stdout, done.stderr)


def write_project(
    folder: Path, tasks: list[dict] = TASKS, config: str = CONFIG, evaluators: str = EVALUATORS
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manners.py").write_text(evaluators)
    (folder / "jury.yaml").write_text(config)
    (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path / "project")


@pytest.fixture(scope="session")
def scored_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = write_project(tmp_path_factory.mktemp("scored") / "project")
    assert run_command("score", project / "tasks.jsonl", "--out", project / "run").code == 0
    return project / "run"


@pytest.fixture
def scored_folder(project: Path, scored_once: Path) -> Path:
    """The run of the project."""
    return shutil.copytree(scored_once, project / "run")


@pytest.fixture(scope="session")
def letters_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = write_project(
        tmp_path_factory.mktemp("written") / "letters",
        LETTERS,
        LETTERS_CONFIG,
        CALL_LOGGING_EVALUATORS,
    )
    assert run_command("score", "tasks.jsonl", "--out", "run", cwd=project).code == 0
    return project


@pytest.fixture
def letters_folder(tmp_path: Path, letters_once: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of letters with personal names, in the folder of its project."""
    project = shutil.copytree(letters_once, tmp_path / "letters")
    monkeypatch.chdir(project)
    return project / "run"


def read_calls(project: Path) -> list[str]:
    """Return the evaluator calls of a project since the last look, and forget them."""
    noted = project / "calls"
    found = sorted(noted.read_text().splitlines()) if noted.exists() else []
    noted.unlink(missing_ok=True)
    return found


def traces(run: Command, folder: Path) -> list[dict[str, Any]]:
    """Return every trace of the run in a folder, without its place in the hash chain.

    `run` is the fixture that runs a command, not a run.
    """
    ended = run("show", folder, "--json")
    assert ended.code == 0, ended.err
    shown = [json.loads(line) for line in ended.out.splitlines()]
    return [{name: value for name, value in trace.items() if name != "previous"} for trace in shown]


def change_ledger(folder: Path, statement: str, *values: object) -> None:
    """Change the ledger of a run directly."""
    with closing(sqlite3.connect(folder / "run.sqlite")) as ledger, ledger:
        assert ledger.execute(statement, values).rowcount, "nothing was changed"


def folder_contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file in a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def check_nothing_is_written(
    folder: Path,
    command: Callable[..., CommandResult],
    options: list[str],
    server: Server,
    code: int,
    message: str,
) -> None:
    """Check how a command ends without a result, and that it writes nothing; `down` names the model of the server."""
    before = folder_contents(folder)
    ended = command(
        *(f"openai-compatible:{server.url}#down" if word == "down" else word for word in options)
    )
    assert (ended.code, ended.out) == (code, "")
    assert message in ended.err
    assert folder_contents(folder) == before
