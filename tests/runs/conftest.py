"""Runs to look at, made once; and for those that ask a model, a server and a cache of their own."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.models.server import Server, serving
from tests.runs.judge import by_what_is_shown
from tests.runs.made import PLAIN, RICH, lines, score, write_tasks


@pytest.fixture(scope="session")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    tasks = write_tasks(folder, lines())
    score(folder / "plain", tasks, PLAIN)
    score(folder / "rich", tasks, RICH)
    return folder


@pytest.fixture
def copied(_made: Path, tmp_path: Path) -> Callable[[str], Path]:
    """A copy of one of the runs, to do with as one likes."""

    def copy(name: str) -> Path:
        shutil.copytree(_made / name, tmp_path / name)
        return tmp_path / name

    return copy


@pytest.fixture
def plain(copied: Callable[[str], Path]) -> Path:
    return copied("plain")


@pytest.fixture
def rich(copied: Callable[[str], Path]) -> Path:
    return copied("rich")


@pytest.fixture
def tasks(_made: Path) -> Path:
    return _made / "tasks.jsonl"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def server() -> Iterator[Server]:
    """It judges by what it is shown."""
    with serving(by_what_is_shown) as running:
        yield running
