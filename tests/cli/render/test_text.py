"""Text from outside is escaped on a terminal by every command."""

import logging
import os
import pty
import re
import subprocess
import termios
from pathlib import Path

import pytest

from jurygraph.messages import escape_multiline_text
from tests.cli.conftest import JURYGRAPH, Command, write_project

HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]x[/]\r\n\t\u202e\x9b31m\x08\x7f"
COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def run_on_terminal(*arguments: object) -> str:
    """Return the output of a command whose standard output and error are a terminal."""
    here, there = pty.openpty()
    settings = termios.tcgetattr(there)
    settings[1] &= ~termios.OPOST  # or every line feed gets a carriage return
    termios.tcsetattr(there, termios.TCSANOW, settings)
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "dumb"}
    command = [JURYGRAPH, *map(str, arguments)]
    with subprocess.Popen(command, stdin=there, stdout=there, stderr=there, env=environment):
        os.close(there)
        written = b""
        while piece := _read(here):
            written += piece
    os.close(here)
    return written.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # Linux raises it after the other end was closed
        return b""


@pytest.fixture
def hostile(tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose ids, agents, texts, reasons and errors contain control characters."""
    evaluators = """\
import jurygraph as jg


def echo(task, response):
    if "fail" in response.id:
        raise ValueError(response.text)
    evidence = (jg.Evidence(quote=response.text, start=0, end=len(response.text), verified=True),)
    return jg.Verdict(score=0.5, reason=response.text, evidence=evidence)
"""
    responses = [
        {"id": f"{name}{HOSTILE}", "agent": HOSTILE, "text": f"{name} {HOSTILE}"}
        for name in ("a", "fail")
    ]
    tasks = [{"id": f"t{HOSTILE}", "query": HOSTILE, "responses": responses}]
    project = write_project(tmp_path / "project", tasks, "evaluators: [manners.echo]\n", evaluators)
    monkeypatch.chdir(project)
    monkeypatch.setenv("COLUMNS", "400")  # so that nothing is cut
    run("score", "tasks.jsonl", "--out", "run")
    return project / "run"


@pytest.mark.landing
@pytest.mark.parametrize(
    "command",
    [
        ("export", "--to", "csv"),
        pytest.param(("export", "--to", "verdicts", "--texts"), marks=pytest.mark.exhaustive),
        pytest.param(("export", "--to", "jsonl"), marks=pytest.mark.exhaustive),
        pytest.param(("show",), marks=pytest.mark.exhaustive),
        ("show", "--response", f"fail{HOSTILE}"),
        pytest.param(("explain", "--response", f"a{HOSTILE}"), marks=pytest.mark.exhaustive),
        ("show", "--response", HOSTILE),
    ],
    ids=["csv", "verdicts", "jsonl", "show", "show one", "explain", "an error"],
)
def test_no_command_writes_control_characters_to_a_terminal(
    hostile: Path, command: tuple[str, ...]
) -> None:
    written = run_on_terminal(command[0], hostile, *command[1:])
    assert "owned" in written
    assert COMMANDS.findall(written) == []


@pytest.mark.landing
def test_a_rendered_prompt_has_no_control_characters_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "values.json").write_text('{"query": "\\u001b[2J owned", "profile": "x\\u009b"}')
    written = run_on_terminal("prompts", "render", "profile", "--with", tmp_path / "values.json")
    assert "\\u001b[2J owned" in written
    assert COMMANDS.findall(written) == []


def test_files_and_pipes_get_the_content_unchanged(hostile: Path, run: Command) -> None:
    piped = run("export", hostile, "--to", "csv").out
    assert run("export", hostile, "--to", "csv", "-o", "x.csv").code == 0
    assert Path("x.csv").read_bytes().decode() == piped
    assert HOSTILE in piped


def test_control_characters_except_line_feeds_and_tabs_are_escaped() -> None:
    assert (
        escape_multiline_text("a\r\n\tb\r\x1b\x07\x9b\u202e")
        == "a\n\tb\\r\\u001b\\u0007\\u009b\\u202e"
    )


def test_log_warnings_are_escaped(run: Command, capsys: pytest.CaptureFixture[str]) -> None:
    run("--version")
    assert logging.lastResort is not None
    record = logging.LogRecord("x", logging.WARNING, "x", 1, "%s: is torn", (HOSTILE,), None)
    assert COMMANDS.findall(logging.lastResort.format(record)) == []


def test_the_traceback_of_a_bug_is_escaped(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(folder: object) -> None:
        raise RuntimeError(HOSTILE)

    monkeypatch.setattr("jurygraph.runs.run.Run.open", fail)
    ended = run("show", "run")
    assert (ended.code, "Traceback" in ended.err, COMMANDS.findall(ended.err)) == (70, True, [])
