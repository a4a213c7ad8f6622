"""A run that is stopped from outside, in a process of its own."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import write_project

JURYGRAPH = str(Path(sys.executable).with_name("jurygraph"))
TASKS = [
    {"id": f"t{i}", "query": "?", "responses": [{"id": f"t{i}/r{j}", "text": "please " * j} for j in range(2)]}
    for i in range(60)
]
SLOW = (
    "import time\n\ndef polite(task, response):\n    time.sleep(0.03)\n    return min(1.0, len(response.text) / 10)\n"
)


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    project = write_project(tmp_path / "project", TASKS, "evaluators: [manners.polite]\n")
    (project / "manners.py").write_text(SLOW)
    return project


def command(project: Path, run: str) -> list[str]:
    return [JURYGRAPH, "score", str(project / "tasks.jsonl"), "--out", str(project / run)]


def stopped(project: Path, sign: signal.Signals) -> subprocess.CompletedProcess[str]:
    """Start a run, and stop it when the first groups are on disk."""
    process = subprocess.Popen(command(project, "run"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    traces, until = project / "run" / "traces.jsonl", time.monotonic() + 60
    while not (traces.exists() and traces.stat().st_size):
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(sign)
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)], ids=["Ctrl-C", "killed"])
def test_a_stopped_run_resumes_and_ends_like_an_unbroken_one(slow: Path, sign: signal.Signals, code: int):
    ended = stopped(slow, sign)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert "Traceback" not in ended.stderr
    kept = (slow / "run" / "traces.jsonl").read_bytes()
    status = json.loads((slow / "run" / "run.json").read_text())["status"]
    if sign == signal.SIGINT:
        assert status == "interrupted"
        assert "interrupted; what was scored is kept in" in ended.stderr
    resumed = subprocess.run(command(slow, "run"), capture_output=True, text=True, check=True)
    unbroken = subprocess.run(command(slow, "whole"), capture_output=True, text=True, check=True)
    assert "tasks are scored already and stay as they are" in resumed.stderr
    assert resumed.stdout == unbroken.stdout
    traces = (slow / "run" / "traces.jsonl").read_bytes()
    assert traces == (slow / "whole" / "traces.jsonl").read_bytes()
    assert 0 < len(kept) < len(traces)


def test_a_run_that_another_process_writes_is_refused_and_left_alone(slow: Path):
    first = subprocess.Popen(command(slow, "run"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    traces, until = slow / "run" / "traces.jsonl", time.monotonic() + 60
    while not (traces.exists() and traces.stat().st_size):
        assert time.monotonic() < until
        time.sleep(0.01)
    first.send_signal(signal.SIGSTOP)  # so that it is surely still at work
    try:
        before = {path.name: path.read_bytes() for path in (slow / "run").iterdir()}
        second = subprocess.run(command(slow, "run"), capture_output=True, text=True, check=False)
        after = {path.name: path.read_bytes() for path in (slow / "run").iterdir()}
    finally:
        first.send_signal(signal.SIGCONT)
    out, _ = first.communicate(timeout=60)
    assert (second.returncode, second.stdout) == (2, "")
    assert "is being written by another process" in second.stderr
    assert after == before
    assert first.returncode == 0
    unbroken = subprocess.run(command(slow, "whole"), capture_output=True, text=True, check=True)
    assert out == unbroken.stdout
    assert traces.read_bytes() == (slow / "whole" / "traces.jsonl").read_bytes()


def test_progress_is_told_in_plain_lines_where_there_is_no_terminal(slow: Path):
    ended = subprocess.run([*command(slow, "run"), "--limit", "1"], capture_output=True, text=True, check=True)
    assert "\x1b" not in ended.stderr + ended.stdout
    assert ended.stdout.startswith("agent")


def test_a_reader_that_stops_reading_is_no_bug(slow: Path):
    subprocess.run([*command(slow, "run"), "--limit", "3"], capture_output=True, check=True)
    shown = subprocess.run(
        f"{JURYGRAPH} show {slow / 'run'} --json | head -c 1", shell=True, capture_output=True, text=True, check=True
    )
    assert (shown.stdout, shown.stderr) == ("{", "")
