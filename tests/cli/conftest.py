"""A small project with evaluators of its own, so that a command can run without a worker process."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from jurygraph.cli import main

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
    return "bad" not in response.text


@jg.evaluator(layer="model")
def judge(task, response):
    raise AssertionError("there is no model to ask")
'''

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


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Command = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """Run a command as the console script does."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):  # a command sets them: its process is its own
        monkeypatch.setenv(name, "false")

    def command(*arguments: object) -> Ended:
        sys.modules.pop("manners", None)
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Ended(int(caught.value.code or 0), said.out, said.err)

    yield command
    sys.modules.pop("manners", None)


def write_project(folder: Path, tasks: list[dict] = TASKS, config: str = CONFIG) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manners.py").write_text(EVALUATORS)
    (folder / "jury.yaml").write_text(config)
    (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path / "project")


@pytest.fixture
def scored(project: Path, run: Command) -> Path:
    """The project's run."""
    assert run("score", project / "tasks.jsonl", "--out", project / "run").code == 0
    return project / "run"
