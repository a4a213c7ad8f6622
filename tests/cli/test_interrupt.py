"""`jurygraph score` that is stopped by Ctrl-C, and commands on a run that another process writes.

That a killed run is continued is tested in `tests/runs`; that a call which hangs is a failure, in `tests/graphs`.
"""

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jurygraph.cli import interrupts
from jurygraph.runs.store.folder import acquire_lock, release_lock
from tests.cli.conftest import (
    JURYGRAPH,
    Command,
    folder_contents,
    run_command,
    traces,
    write_project,
)

NUMBER = 200  # more than are in work at once
TASKS = [
    {
        "id": f"t{i}",
        "query": "?",
        "responses": [{"id": f"t{i}/r{j}", "text": f"letter {i}, " * j} for j in range(2)],
    }
    for i in range(NUMBER)
]
PRESSING = """\
import os, signal
from pathlib import Path

import jurygraph as jg

PRESSED = Path(__file__).with_name("pressed")


def press():
    if not PRESSED.exists():
        PRESSED.touch()
        os.kill(os.getpid(), signal.SIGINT)


class AfterAnswers(jg.Evaluator):
    def answer(self, inputs):
        if inputs.response.id == "t59/r0":
            press()
        return min(1.0, len(inputs.response.text) / 100)


class WhilePlanning(jg.Evaluator):
    def questions(self, view):
        if view.id == "t199":
            press()
        return [self.question(view)]

    def answer(self, inputs):
        return 1.0
"""


@pytest.fixture
def ctrl_c(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a signal reach the command as in a process of its own, whose end is the end of this test's command."""
    monkeypatch.setattr(interrupts, "_exit_now", lambda: None)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def write_tasks(folder: Path, evaluator: str) -> tuple[object, ...]:
    """Return the command that scores the tasks by an evaluator that presses Ctrl-C once."""
    project = write_project(
        folder / "project", TASKS, f"evaluators: [manners.{evaluator}]\n", PRESSING
    )
    return "score", project / "tasks.jsonl", "--out"


@pytest.mark.usefixtures("ctrl_c")
def test_a_run_that_was_stopped_resumes_with_the_same_result(
    tmp_path: Path, run: Command, capfd: pytest.CaptureFixture[str]
):
    command = write_tasks(tmp_path, "AfterAnswers")
    stopped = run(*command, tmp_path / "run")
    assert (stopped.code, stopped.out) == (130, "")
    assert capfd.readouterr().err == (
        "stopping after the questions in flight, at most 5 s; press again to stop now\n"
    ), "at once, to the descriptor itself"
    assert "interrupted; finished tasks are kept in" in stopped.err
    kept = traces(run, tmp_path / "run")
    assert (
        f"{len(kept) // 2} of {NUMBER} tasks of the whole run are scored so far"
        in run("show", tmp_path / "run").err
    )
    assert run("verify", tmp_path / "run").code == 0
    resumed = run(*command, tmp_path / "run")
    unbroken = run(*command, tmp_path / "whole")
    assert f"{len(kept) // 2} tasks are scored already and are kept" in resumed.err
    assert (resumed.code, resumed.out) == (0, unbroken.out)
    assert sorted(folder_contents(tmp_path / "run")) == sorted(folder_contents(tmp_path / "whole"))
    whole = traces(run, tmp_path / "whole")
    assert traces(run, tmp_path / "run") == whole
    assert kept == [trace for trace in whole if trace in kept]
    assert 0 < len(kept) < len(whole)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_while_the_last_task_is_planned_ends_in_good_order(tmp_path: Path, run: Command):
    command = write_tasks(tmp_path, "WhilePlanning")
    stopped = run(*command, tmp_path / "run")
    assert (stopped.code, stopped.out) == (130, "")
    assert "interrupted; finished tasks are kept in" in stopped.err
    assert run(*command, tmp_path / "run").code == 0


@pytest.fixture
def written_run(scored_folder: Path, project: Path) -> Iterator[Path]:
    """A run of one task of two, which this process says that it is writing."""
    folder = project / "written"
    assert run_command("score", project / "tasks.jsonl", "--out", folder, "--limit", 1).code == 0
    lock = acquire_lock(folder / "run.lock")
    yield folder
    release_lock(lock)


def test_no_other_command_writes_a_run_that_is_being_scored(
    written_run: Path, project: Path, run: Command
):
    holder = rf"written: is being written by process {os.getpid()} on {re.escape(socket.gethostname())} since 2"
    before = folder_contents(written_run)
    for command in (
        ("close", written_run),
        ("erase", written_run, "--response", "door/a"),
        ("erase", written_run, "--task", "door"),
        ("score", project / "tasks.jsonl", "--out", written_run),
    ):
        ended = run(*command)
        assert (ended.code, ended.out) == (2, "")
        assert re.search(holder, ended.err)
    assert folder_contents(written_run) == before


def test_a_run_that_is_being_scored_can_be_read(written_run: Path, run: Command, tmp_path: Path):
    shown = run("show", written_run)
    assert len(shown.out.splitlines()) == 2 + 2
    assert "1 of 2 tasks of the whole run are scored" in shown.err
    for command in (
        ("explain", written_run, "--response", "door/a"),
        ("export", written_run, "--to", "csv"),
        ("export", written_run, "--to", "parquet", "-o", tmp_path / "x.parquet"),
        ("compare", written_run, written_run),
    ):
        assert run(*command).code == 0
    verified = run("verify", written_run, "--json")
    found = json.loads(verified.out)
    assert (found["traces"], found["closed"]) == (2, False)
    assert (
        "the run is not closed: more records may follow this head" in run("verify", written_run).err
    )


def start_scoring(project: Path, run: str) -> subprocess.Popen[str]:
    arguments = [JURYGRAPH, "score", project / "tasks.jsonl", "--out", project / run]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        arguments, stdout=pipe, stderr=pipe, text=True, preexec_fn=restore_ctrl_c
    )


def restore_ctrl_c() -> None:
    """Handle Ctrl-C in a child process even if the tests run in the background, where it is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


HANGING = """\
import asyncio, time
from pathlib import Path

def hang():
    Path(__file__).with_name("hangs").touch()

def hangs(task, response):
    hang()
    time.sleep(1000)

async def clings(task, response):
    hang()
    while True:
        try:
            await asyncio.sleep(1000)
        except BaseException:
            pass

async def blocks(task, response):
    hang()
    time.sleep(1000)

def polite(task, response):
    return 1.0
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "presses"), [("hangs", 1), ("hangs", 2), ("clings", 1), ("blocks", 1)]
)
def test_ctrl_c_ends_a_command_whose_evaluator_hangs(tmp_path: Path, name: str, presses: int):
    tasks = [
        {"id": name, "query": "?", "responses": [{"id": f"{name}/a", "text": "text"}]}
        for name in ("t0", "t1")
    ]
    config = f"evaluators: [manners.polite, {{use: manners.{name}, name: it}}]\nreward: {{polite: 1.0, it: 1.0}}\n"
    project = write_project(tmp_path / "project", tasks, config, HANGING)
    process = start_scoring(project, "run")
    try:
        until = time.monotonic() + 60
        while not (project / "hangs").exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        assert process.stderr is not None
        for message in ("stopping after the questions in flight", "stopped; run the same command")[
            :presses
        ]:
            process.send_signal(signal.SIGINT)
            while message not in process.stderr.readline():
                assert process.poll() is None
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, "Traceback" in err) == (130, False), err
    resumed = run_command("score", project / "tasks.jsonl", "--out", project / "run", "--dry-run")
    assert resumed.code == 0, resumed.err


@pytest.mark.exhaustive
@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_while_modules_are_imported_is_acknowledged(project: Path, presses: int):
    (project / "manners.py").write_text(
        "import time\nprint('imported', flush=True)\ntime.sleep(60)\n"
    )
    process = start_scoring(project, "run")
    assert process.stderr is not None
    assert process.stderr.readline() == "imported\n"
    for _ in range(presses):
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.startswith("stopping; press again to stop now\n")
    assert "Traceback" not in err
    assert not (project / "run").exists()


@pytest.mark.landing
def test_a_closed_pipe_is_not_reported_as_a_bug(scored_folder: Path):
    shown = subprocess.run(
        f"{JURYGRAPH} show {scored_folder} --json | head -c 1",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (shown.stdout, shown.stderr) == ("{", "")
