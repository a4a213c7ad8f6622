"""A model server that goes away while a run is scored: the run waits, for a limited time, and can be stopped."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.conftest import JURYGRAPH, Command
from tests.cli.test_interrupt import restore_ctrl_c
from tests.models.judge_scripts import config, judge_reply, rubric
from tests.models.server import Answer, Server, run_server, slow

pytestmark = pytest.mark.exhaustive

TASKS, RESPONSES = 60, 4
QUESTIONS = TASKS * RESPONSES
BEFORE_OUTAGE = 60
"""Requests that reach the server before it goes away."""
SOON = 180.0
"""Seconds in which even a busy machine gets there."""


def judge_slowly(body: dict[str, Any], number: int) -> Answer:
    return slow(0.02, judge_reply(body))


class Ended(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


class Project:
    """Questions for a model server, and the command that sends them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        lines = []
        for number in range(TASKS):
            task = rubric("kind", name=f"t{number}", query=f"Write letter {number}.").model_dump(mode="json")
            task["responses"] = [{"id": f"t{number}/{n}", "text": f"Letter {number}, {n}."} for n in range(RESPONSES)]
            lines.append(json.dumps(task) + "\n")
        (folder / "tasks.jsonl").write_text("".join(lines))

    def write_config(self, url: str, **calls: Any) -> None:
        (self.folder / "jury.yaml").write_text(json.dumps(config(url, cache=False, **calls)))

    @contextmanager
    def start_scoring(self, *options: object) -> Iterator[subprocess.Popen[str]]:
        command = [JURYGRAPH, "score", self.folder / "tasks.jsonl", "--out", self.folder / "run", "--json", *options]
        environment = {**os.environ, "JURYGRAPH_CACHE": str(self.folder / "cache")}
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            list(map(str, command)), stdout=pipe, stderr=pipe, text=True, env=environment, preexec_fn=restore_ctrl_c
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    @contextmanager
    def start_scoring_until_outage(self, server: Server, **calls: Any) -> Iterator[subprocess.Popen[str]]:
        """Score until the server has answered for a while, and stop it."""
        self.write_config(server.url, **calls)
        with self.start_scoring() as process:
            wait_for_requests(server, BEFORE_OUTAGE, process)
            server.stop()
            yield process

    def score(self, *options: object) -> Ended:
        with self.start_scoring(*options) as process:
            return wait_for_end(process)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def wait_for_end(process: subprocess.Popen[str]) -> Ended:
    out, err = process.communicate(timeout=SOON)
    return Ended(process.returncode, out, err)


def wait_for_requests(server: Server, number: int, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + SOON
    while server.count < number:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.005)


def test_an_outage_of_five_seconds_fails_none_of_240_questions(project: Project, run: Command) -> None:
    with run_server(judge_slowly) as first, project.start_scoring_until_outage(first) as process:
        time.sleep(4.8)
        with run_server(judge_slowly, first.port) as second:
            found = wait_for_end(process)
    assert found.code == 0, found.err
    assert (found.result["responses"], found.result["rewards_failed"]) == (QUESTIONS, 0)
    assert found.err.count("requests wait for up to") == 1
    assert found.err.count("the model server answers again") == 1
    assert first.count + second.count <= QUESTIONS + 32  # those that were cut off are sent again


def test_a_run_stops_after_a_longer_outage_and_the_same_command_continues_it(project: Project) -> None:
    with (
        run_server(judge_slowly) as first,
        project.start_scoring_until_outage(first, outage={"wait": 1.0}) as process,
    ):
        stopped = wait_for_end(process)
    assert (stopped.code, stopped.out) == (3, "")
    assert "requests fail until it answers" in stopped.err
    assert stopped.err.count(f" s ({first.url}: connection refused): requests") == 2
    assert "finished groups are kept; run the same command again to continue" in stopped.err
    with run_server(judge_slowly, first.port) as second:
        found = project.score()
    assert (found.code, found.result["responses"], found.result["rewards_failed"]) == (0, QUESTIONS, 0), found.err
    assert first.count + second.count <= QUESTIONS + 32  # what was answered is not asked again
