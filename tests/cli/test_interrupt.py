"""A run that is stopped, read or started twice by other processes."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from tests.cli.conftest import JURYGRAPH, Command, folder_contents, run_command, traces, write_project

pytestmark = pytest.mark.exhaustive

TASKS = [
    {
        "id": f"t{i}",
        "query": "?",
        "responses": [{"id": f"t{i}/r{j}", "text": f"letter {i}, " * 3 * j} for j in range(2)],
    }
    for i in range(200)  # more than are in work at once
]
SLOW = (
    "import time\nfrom pathlib import Path\n\n"
    "def polite(task, response):\n    time.sleep(0.03)\n    return min(1.0, len(response.text) / 10)\n"
)


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    project = write_project(tmp_path / "project", TASKS, "evaluators: [manners.polite]\n")
    (project / "manners.py").write_text(SLOW)
    return project


def start_scoring(project: Path, run: str) -> subprocess.Popen[str]:
    arguments = [JURYGRAPH, "score", project / "tasks.jsonl", "--out", project / run]
    pipe = subprocess.PIPE
    return subprocess.Popen(arguments, stdout=pipe, stderr=pipe, text=True, preexec_fn=restore_ctrl_c)


def restore_ctrl_c() -> None:
    """Handle Ctrl-C in a child process even if the tests run in the background, where it is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def count_groups(folder: Path) -> int:
    """Return the number of groups of a run on disk."""
    address = f"file:{folder / 'run.sqlite'}?mode=ro"
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(address, uri=True)) as ledger:
        return ledger.execute("SELECT count(*) FROM records WHERE kind = 'group'").fetchone()[0]
    return 0


@contextmanager
def start_unfinished_run(project: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a run and wait until its first groups are on disk; kill the process at the end."""
    process = start_scoring(project, "run")
    try:
        until = time.monotonic() + 60
        while not count_groups(project / "run"):
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.01)
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def stopped_writer(slow: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that is paused in the middle of a run."""
    with start_unfinished_run(slow) as process:
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        yield process


@pytest.mark.parametrize(
    ("sign", "code"),
    [
        pytest.param(signal.SIGINT, 130, id="Ctrl-C"),
        pytest.param(signal.SIGKILL, -9, id="killed"),
    ],
)
def test_a_stopped_run_resumes_with_the_same_result_as_an_uninterrupted_one(
    slow: Path, sign: signal.Signals, code: int
):
    with start_unfinished_run(slow) as process:
        process.send_signal(sign)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "")
    assert "Traceback" not in err
    if sign == signal.SIGINT:
        acknowledged = err.index("stopping after the questions in flight, at most 5 s; press again to stop now")
        assert acknowledged < err.index("interrupted; finished tasks are kept in")
    kept = traces(run_command, slow / "run")
    assert f"{len(kept) // 2} of {len(TASKS)} tasks are scored so far" in run_command("show", slow / "run").err
    assert run_command("verify", slow / "run").code == 0
    resumed = run_command("score", slow / "tasks.jsonl", "--out", slow / "run")
    unbroken = run_command("score", slow / "tasks.jsonl", "--out", slow / "whole")
    assert f"{len(kept) // 2} tasks are scored already and are kept" in resumed.err
    assert (resumed.code, resumed.out) == (unbroken.code, unbroken.out) == (0, unbroken.out)
    assert sorted(folder_contents(slow / "run")) == sorted(folder_contents(slow / "whole"))
    whole = traces(run_command, slow / "whole")
    assert traces(run_command, slow / "run") == whole
    assert kept == [trace for trace in whole if trace in kept]
    assert 0 < len(kept) < len(whole)
    assert run_command("verify", slow / "run").code == 0


INTERRUPTED = """
import os, signal, jurygraph as jg

class Polite(jg.Evaluator):
    def questions(self, view):
        if view.id == "t59":
            os.kill(os.getpid(), signal.SIGINT)
        return [self.question(view)]

    def answer(self, inputs):
        return 1.0
"""


def test_ctrl_c_while_the_last_task_is_planned_ends_in_good_order(tmp_path: Path):
    project = write_project(tmp_path, TASKS, "evaluators: [manners.Polite]\n", INTERRUPTED)
    process = start_scoring(project, "run")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, "Traceback" in err) == (130, "", False)
    assert "interrupted; finished tasks are kept in" in err


HANGING = """\
import asyncio, re, time

def hangs(task, response):
    time.sleep(1000)

async def waits(task, response):
    await asyncio.sleep(1000)

async def clings(task, response):
    while True:
        try:
            await asyncio.sleep(1000)
        except BaseException:
            pass

async def blocks(task, response):
    time.sleep(1000)

def bomb(task, response):
    return re.match("(a+)+$", "a" * 60 + "!") is None

def polite(task, response):
    return 1.0
"""


def write_hanging(folder: Path, use: str) -> Path:
    """Write a project whose first task is judged at once, and whose second by an evaluator that hangs."""
    tasks = [{"id": name, "query": "?", "responses": [{"id": f"{name}/a", "text": "text"}]} for name in ("t0", "t1")]
    config = f"evaluators: [manners.polite, {use}]\nreward: {{polite: 1.0, it: 1.0}}\n"
    project = write_project(folder / "project", tasks, config)
    (project / "manners.py").write_text(HANGING)
    return project


@pytest.mark.parametrize(
    ("name", "more"), [("hangs", ""), ("waits", ""), ("clings", ""), ("bomb", ", isolate: process")]
)
def test_an_evaluator_that_hangs_ends_as_a_named_failure_and_the_process_exits(tmp_path: Path, name: str, more: str):
    project = write_hanging(tmp_path, f"{{use: manners.{name}, name: it, timeout: 0.5{more}}}")
    with start_scoring(project, "run") as process:
        out, err = process.communicate(timeout=120)
    assert (process.returncode, "Traceback" in err) == (1, False), err
    assert "verdicts: 2 judged + 0 abstained + 2 failed" in out
    assert "failed verdicts: 2 of kind time-limit" in err


@pytest.mark.parametrize(
    ("name", "presses"), [("hangs", 1), ("hangs", 2), ("clings", 1), ("blocks", 1)], ids=lambda value: str(value)
)
def test_ctrl_c_ends_a_command_whose_evaluator_hangs(tmp_path: Path, name: str, presses: int):
    project = write_hanging(tmp_path, f"{{use: manners.{name}, name: it}}")
    process = start_scoring(project, "run")
    try:
        until = time.monotonic() + 60
        while not (project / "run" / "run.sqlite").exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        time.sleep(2)  # until the evaluator hangs; earlier, nothing has to be stopped
        assert process.stderr is not None
        for message in ("stopping after the questions in flight", "stopped; run the same command")[:presses]:
            process.send_signal(signal.SIGINT)
            while message not in process.stderr.readline():
                assert process.poll() is None
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, "Traceback" in err) == (130, False), err
    resumed = run_command("score", project / "tasks.jsonl", "--out", project / "run", "--dry-run")
    assert resumed.code == 0, resumed.err


def lock_message(process: subprocess.Popen[str]) -> str:
    return f"run: is being written by process {process.pid} on {socket.gethostname()} since 2"


def test_no_other_command_writes_a_run_that_is_being_scored(slow: Path, stopped_writer: subprocess.Popen[str]):
    before = folder_contents(slow / "run")
    for arguments in (("close",), ("erase", "--response", "t0/r0"), ("erase", "--task", "t0")):
        ended = run_command(arguments[0], slow / "run", *arguments[1:])
        assert (ended.code, ended.out) == (2, "")
        assert lock_message(stopped_writer) in ended.err
    assert folder_contents(slow / "run") == before


def test_a_locked_run_can_be_read(slow: Path, run: Command, stopped_writer: subprocess.Popen[str]):
    assert stopped_writer.returncode is None
    scored = count_groups(slow / "run")
    shown = run("show", slow / "run")
    assert len(shown.out.splitlines()) == 2 + 2 * scored
    assert f"{scored} of {len(TASKS)} tasks are scored" in shown.err
    assert run("explain", slow / "run", "--response", "t0/r0").code == 0
    assert len(run("export", slow / "run", "--to", "csv").out.splitlines()) == 1 + 2 * scored
    assert run("export", slow / "run", "--to", "parquet", "-o", slow / "x.parquet").code == 0
    assert run("compare", slow / "run", slow / "run").code == 0
    verified = json.loads(run("verify", slow / "run", "--json").out)
    assert (verified["traces"], verified["closed"]) == (2 * scored, False)
    assert "the run is not closed: more records may follow this head" in run("verify", slow / "run").err


def test_a_closed_pipe_is_not_reported_as_a_bug(slow: Path):
    assert run_command("score", slow / "tasks.jsonl", "--out", slow / "run", "--limit", 3).code == 0
    shown = subprocess.run(
        f"{JURYGRAPH} show {slow / 'run'} --json | head -c 1", shell=True, capture_output=True, text=True, check=True
    )
    assert (shown.stdout, shown.stderr) == ("{", "")


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_while_modules_are_imported_is_acknowledged(slow: Path, presses: int):
    (slow / "manners.py").write_text("import time\nprint('imported', flush=True)\ntime.sleep(60)\n" + SLOW)
    process = start_scoring(slow, "run")
    assert process.stderr is not None
    assert process.stderr.readline() == "imported\n"
    for _ in range(presses):
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.startswith("stopping; press again to stop now\n")
    assert "Traceback" not in err
    assert not (slow / "run").exists()
