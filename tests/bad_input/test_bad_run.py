"""A run folder that cannot be used is refused in one line, and nothing is half-written."""

import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from jurygraph.runs.run import Run
from tests.bad_input.conftest import Command, listing, unprivileged_user
from tests.bad_input.test_bad_input import open_project, project, score
from tests.command import run_command

__all__ = ["open_project", "project"]


def test_a_folder_without_write_access_is_refused(
    run: Command, open_project: Path, tmp_path: Path
) -> None:
    # imports what that user may not read
    assert run("score", open_project / "tasks.jsonl", "--out", tmp_path / "other").code == 0
    before = listing(open_project)
    with unprivileged_user():
        ended = score(run, open_project)
    assert (ended.code, ended.out) == (2, "")
    message = f"error: {open_project}/run: .*; name a folder that you may write to with --out"
    assert re.fullmatch(message, ended.err.splitlines()[-1])
    assert listing(open_project) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """A file system of so many kB, where the machine lets us make one."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(kilobytes: int) -> Path:
        command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip(
                "a file system cannot be made here; the limit on a file's size stands in for it below"
            )
        return folder

    yield mount
    subprocess.run(["umount", "--lazy", str(folder)], capture_output=True, check=False)


def with_long_responses(project: Path) -> Path:
    tasks = [
        {
            "id": f"t{t}",
            "query": "?",
            "responses": [{"id": f"t{t}/r", "text": f"please {t} " + "x" * 20_000}],
        }
        for t in range(20)
    ]
    (project / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    (project / "jury.yaml").write_text("evaluators: [judges.polite]\n")
    return project


@pytest.mark.landing
def test_a_full_disk_is_reported_before_scoring(
    run: Command, project: Path, small_disk: Callable[[int], Path]
) -> None:
    out = small_disk(30) / "run"
    ended = run("score", project / "tasks.jsonl", "--out", out)
    assert (ended.code, ended.out) == (2, "")
    assert (
        ended.err.splitlines()[-1]
        == f"error: {out}: the disk is full; free some space and run the same command again"
    )
    assert list(out.parent.iterdir()) == []


@pytest.mark.landing
def test_a_disk_that_becomes_full_keeps_what_was_scored(
    run: Command, project: Path, small_disk: Callable[[int], Path]
) -> None:
    disk = small_disk(500)
    command = ("score", with_long_responses(project) / "tasks.jsonl", "--out", disk / "run")
    ended = run(*command)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[-1].endswith(
        "the disk is full; free some space and run the same command again"
    )
    subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
    assert run("verify", disk / "run").code == 0
    assert run(*command).code == 0
    assert run("verify", disk / "run").code == 0
    with closing(Run.open(disk / "run")) as found:
        assert found.tasks_scored == 20


@pytest.mark.landing
def test_a_file_size_limit_acts_like_a_full_disk(project: Path) -> None:
    def limit_file_size() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    out = with_long_responses(project) / "run"
    script = str(Path(sys.executable).with_name("jurygraph"))
    command = [script, "score", str(project / "tasks.jsonl"), "--out", str(out)]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # a cut .pyc would stay
    done = subprocess.run(
        command, preexec_fn=limit_file_size, env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(
        r"run\.sqlite: cannot be (read or )?written \(.*\); look after the disk", done.stderr
    )
    assert run_command(*command[1:])[0] == 0
    with closing(Run.open(out)) as found:
        assert found.tasks_scored == 20
