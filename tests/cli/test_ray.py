"""`score --engine ray`, where Ray is installed (extra `ray`): a lost worker costs nothing but time."""

import os
import signal
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.conftest import run_command, write_project
from tests.cli.test_processes import SLOW, TASKS, count_traces, digests, start, wait_until

pytestmark = pytest.mark.heavy


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install ray")
def test_a_lost_worker_of_ray_is_replaced_and_its_shard_goes_on(tmp_path: Path) -> None:
    project = write_project(tmp_path / "project", TASKS, "evaluators: [own.slow]\n")
    (project / "own.py").write_text(SLOW)
    tasks = project / "tasks.jsonl"
    words = ("score", tasks, "--out", "run", "--engine", "ray", "--shards", 2)
    process = start(*words, cwd=tmp_path)
    wait_until(
        lambda: process.poll() is not None or count_traces(tmp_path / "run.shards" / "1") > 2, 240
    )
    if process.poll() is None:
        worker = parent_of_command("run.shards/1")
        os.kill(worker, signal.SIGKILL)
    _, err = process.communicate(timeout=240)
    if "Ray did not start" in err:
        pytest.skip(f"this machine cannot start a cluster: {err}")
    assert process.returncode == 0, err
    assert run_command("score", tasks, "--out", tmp_path / "whole").code == 0
    assert digests(tmp_path / "run") == digests(tmp_path / "whole")


def parent_of_command(words: str) -> int:
    """Return the process that started the one whose command line has these words."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().decode(errors="replace")
            if words in command and "jurygraph.cli.shard_worker" in command:
                return int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended
    raise AssertionError(f"no process has {words} in its command")
