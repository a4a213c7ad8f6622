"""Files of a command: links in the folder of a run are not followed, and other users can read nothing."""

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import JURYGRAPH, Command, write_project
from tests.rows import all_rows

RECORDED = """\
evaluators: [maths.accuracy]
model: openai-compatible:http://127.0.0.1:9/v1#nobody
calls: {record: calls.jsonl, attempts: 1}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    task = {"id": "a", "query": "Ask.", "reference": "1", "responses": [{"id": "a/1", "text": "1"}]}
    return write_project(tmp_path, [task], "evaluators: [maths.accuracy]\n")


@all_rows("name", ["run.lock", "run.sqlite", "run.sqlite-wal", "config.yaml"])
def test_a_link_in_the_folder_of_a_run_is_refused(project: Path, run: Command, name: str) -> None:
    mine = project / "mine"
    mine.write_text("my thesis")
    for target in (mine, project / "nowhere"):
        folder = project / f"{target.name} {name}"
        folder.mkdir()
        (folder / name).symlink_to(target)
        ended = run("score", project / "tasks.jsonl", "--out", folder)
        assert ended.code == 2
        assert f"{folder / name}: is a symbolic link" in ended.err
    assert mine.read_text() == "my thesis"
    assert not (project / "nowhere").exists()


@pytest.mark.landing
@pytest.mark.parametrize("umask", ["000", pytest.param("022", marks=pytest.mark.exhaustive)])
def test_runs_recordings_and_the_cache_are_readable_by_their_owner_only(
    project: Path, umask: str
) -> None:
    (project / "jury.yaml").write_text(RECORDED)
    command = f'umask {umask}; exec "$0" "$@"'
    words = ["sh", "-c", command, JURYGRAPH, "score", "tasks.jsonl", "--out", "new/run"]
    environment = {**os.environ, "JURYGRAPH_CACHE": str(project / "cache")}
    done = subprocess.run(
        words, cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    modes = {
        str(path.relative_to(project)): stat.S_IMODE(path.stat().st_mode)
        for folder in ("new/run", "cache")
        for path in (project / folder, *(project / folder).iterdir())
    }
    modes["calls.jsonl"] = stat.S_IMODE((project / "calls.jsonl").stat().st_mode)
    assert {
        "new/run/run.sqlite",
        "new/run/run.lock",
        "new/run/config.yaml",
        "cache/cache.db",
    } <= modes.keys()
    assert {name: mode for name, mode in modes.items() if mode & 0o077} == {}


def test_an_export_follows_a_link_and_has_the_usual_mode(project: Path, run: Command) -> None:
    assert run("score", project / "tasks.jsonl", "--out", project / "run").code == 0
    (project / "there").mkdir()
    (project / "rewards.jsonl").symlink_to("there/rewards.jsonl")
    assert (
        run("export", project / "run", "--to", "jsonl", "--out", project / "rewards.jsonl").code
        == 0
    )
    assert json.loads((project / "there" / "rewards.jsonl").read_text())["response_id"] == "a/1"
    umask = os.umask(0o022)
    os.umask(umask)
    assert stat.S_IMODE((project / "there" / "rewards.jsonl").stat().st_mode) == 0o666 & ~umask
