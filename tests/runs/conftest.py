"""Stored runs, created once per session; tests with a model get their own server and cache."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.models.server import Server, run_server
from tests.runs.judge import judge_by_request
from tests.runs.sample_runs import FULL_CONFIG, SIMPLE_CONFIG, make_tasks, score, write_tasks


@pytest.fixture(scope="session")
def _stored_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    tasks = write_tasks(folder, make_tasks())
    score(folder / "plain", tasks, SIMPLE_CONFIG)
    score(folder / "rich", tasks, FULL_CONFIG)
    return folder


@pytest.fixture
def copy_run(_stored_runs: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that copies one of the stored runs, so that a test may change it."""

    def copy(name: str) -> Path:
        shutil.copytree(_stored_runs / name, tmp_path / name)
        return tmp_path / name

    return copy


@pytest.fixture
def plain(copy_run: Callable[[str], Path]) -> Path:
    return copy_run("plain")


@pytest.fixture
def rich(copy_run: Callable[[str], Path]) -> Path:
    return copy_run("rich")


@pytest.fixture
def tasks(_stored_runs: Path) -> Path:
    return _stored_runs / "tasks.jsonl"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def server() -> Iterator[Server]:
    """A server whose judge derives its reply from the request."""
    with run_server(judge_by_request) as running:
        yield running
