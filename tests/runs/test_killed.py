"""A run that is killed at any moment can be resumed and ends like an uninterrupted one."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from tests.runs.sample_runs import trace_contents, verify_run

pytestmark = pytest.mark.exhaustive

KILLS = 50

EVALUATORS = '''\
import os, time
import jurygraph as jg

def slow(task, response):
    """Takes a moment, and waits while it is held; writes down that it was asked."""
    while os.path.exists(os.environ["ASKED"] + ".hold"):
        time.sleep(0.01)
    with open(os.environ["ASKED"], "a") as file:
        file.write(response.id + "\\n")
    time.sleep(0.003)
    return jg.Verdict(score=(len(response.text) * 37 % 101) / 101, reason=f"about {response.text!r}")

@jg.evaluator(scope="pair")
def better(task, first, second):
    return (len(first.text) * 17 + len(second.text) * 5) % 11 / 11
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    draw = random.Random(7)
    (tmp_path / "own.py").write_text(EVALUATORS)
    (tmp_path / "jury.yaml").write_text(
        "evaluators: [own.slow, own.better]\nreward: {slow: 1.0, better: 0.5}\n"
    )
    tasks = [
        {
            "id": f"t{t}",
            "query": "?",
            "responses": [
                {"id": f"t{t}/r{r}", "text": "x" * draw.randrange(300)} for r in range(4)
            ],
        }
        for t in range(250)
    ]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return tmp_path


def command(project: Path, name: str) -> list[str]:
    script = str(Path(sys.executable).with_name("jurygraph"))
    return [script, "score", str(project / "tasks.jsonl"), "--out", str(project / name)]


def start(project: Path, name: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "ASKED": str(project / f"{name}.asked")}
    return subprocess.Popen(
        command(project, name), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def finish(project: Path, name: str) -> None:
    process = start(project, name)
    _, message = process.communicate(timeout=300)
    assert process.returncode == 0, message.decode()


def wait_for_lock(project: Path, name: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until the process has written into the run's lock, or ended."""
    lock = project / name / "run.lock"
    while process.poll() is None and f'"pid": {process.pid},' not in (
        lock.read_text() if lock.exists() else ""
    ):
        time.sleep(0.005)


def measure_run(project: Path, name: str) -> float:
    """Return the seconds of a whole run from its lock on, by which kills are spread on any machine."""
    process = start(project, name)
    wait_for_lock(project, name, process)
    begun = time.monotonic()
    process.communicate()
    return time.monotonic() - begun


def count_traces(project: Path, name: str) -> int:
    try:
        return Run.open(project / name).ledger.count_records("trace")
    except InputError:
        return 0  # it does not exist yet


def test_a_run_killed_at_fifty_moments_equals_an_uninterrupted_one(project: Path) -> None:
    length = measure_run(project, "unbroken")
    whole = trace_contents(project / "unbroken")
    draw = random.Random(11)
    kills = midway = again = 0
    name = "killed-0"
    while kills < KILLS:
        process = start(project, name)
        wait_for_lock(project, name, process)
        # each start goes on where the one before ended: less is left to do
        time.sleep(draw.uniform(0.0, length / 2))
        ended = process.poll() is not None
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += not ended
        midway += not ended and 0 < count_traces(project, name) < 1000
        if count_traces(project, name):
            verify_run(project / name)
        if ended:
            assert trace_contents(project / name) == whole
            again += 1
            name = f"killed-{again}"
    assert midway >= KILLS / 5, (
        "many kills came while traces were written, the others while it planned"
    )
    finish(project, name)
    assert trace_contents(project / name) == whole
    found = verify_run(project / name)
    assert (found.traces, found.closed) == (1000, True)
    requests = (project / f"{name}.asked").read_text().split()
    assert set(requests) == {f"t{t}/r{r}" for t in range(250) for r in range(4)}
