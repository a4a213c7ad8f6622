"""A run that is killed at any moment goes on and ends like one that was not."""

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
from tests.runs.made import checked, contents

pytestmark = pytest.mark.slow

KILLS = 50

EVALUATORS = '''\
import os, time
import jurygraph as jg

def slow(task, response):
    """Takes a moment, and writes down that it was asked."""
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
    (tmp_path / "jury.yaml").write_text("evaluators: [own.slow, own.better]\nreward: {slow: 1.0, better: 0.5}\n")
    tasks = [
        {
            "id": f"t{t}",
            "query": "?",
            "responses": [{"id": f"t{t}/r{r}", "text": "x" * draw.randrange(300)} for r in range(4)],
        }
        for t in range(250)
    ]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return tmp_path


def command(project: Path, name: str) -> list[str]:
    script = str(Path(sys.executable).with_name("jurygraph"))
    return [script, "score", str(project / "tasks.jsonl"), "--out", str(project / name)]


def begun(project: Path, name: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "ASKED": str(project / f"{name}.asked")}
    return subprocess.Popen(command(project, name), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(project: Path, name: str) -> None:
    process = begun(project, name)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said.decode()


def held(project: Path, name: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until the process has signed the run's lock, or ended."""
    lock = project / name / "run.lock"
    while process.poll() is None and f'"pid": {process.pid},' not in (lock.read_text() if lock.exists() else ""):
        time.sleep(0.005)


def scored(project: Path, name: str) -> int:
    try:
        return Run.open(project / name).ledger.count_records("trace")
    except InputError:
        return 0  # it is not there yet


def test_killed_at_fifty_moments_it_ends_like_an_unbroken_one(project: Path) -> None:
    finish(project, "unbroken")
    whole = contents(project / "unbroken")
    draw = random.Random(11)
    kills = midway = again = 0
    name = "killed-0"
    while kills < KILLS:
        process = begun(project, name)
        held(project, name, process)
        time.sleep(draw.uniform(0.0, 2.5))
        ended = process.poll() is not None
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += not ended
        midway += not ended and 0 < scored(project, name) < 1000
        if scored(project, name):
            checked(project / name)
        if ended:
            assert contents(project / name) == whole
            again += 1
            name = f"killed-{again}"
    assert midway >= KILLS / 5, "many kills came while traces were written, the others while it planned"
    finish(project, name)
    assert contents(project / name) == whole
    found = checked(project / name)
    assert (found.traces, found.closed) == (1000, True)
    asked = (project / f"{name}.asked").read_text().split()
    assert set(asked) == {f"t{t}/r{r}" for t in range(250) for r in range(4)}


def test_of_two_processes_on_one_run_the_second_is_told_who_holds_it(project: Path) -> None:
    first = begun(project, "run")
    held(project, "run", first)
    second = begun(project, "run")
    _, said = second.communicate(timeout=60)
    assert second.returncode == 2
    assert f"is being written by process {first.pid} on ".encode() in said
    first.communicate(timeout=300)
    assert first.returncode == 0
    assert checked(project / "run").traces == 1000
    asked = (project / "run.asked").read_text().split()
    assert len(asked) == len(set(asked)) == 1000, "nothing was asked twice"
