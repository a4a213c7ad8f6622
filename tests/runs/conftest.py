"""Runs to look at, made once."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

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
