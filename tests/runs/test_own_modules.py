"""Runs whose config names modules of its own folder: they are imported from there, wherever the run is read."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import ConfigError, InputError
from jurygraph.runs.run import Run
from jurygraph.sources.user_modules import module_name_in_config
from tests.runs.sample_runs import (
    evaluator_config,
    make_tasks,
    rescore_run,
    score,
    verify_run,
    write_tasks,
)

OWN_COMBINER = """\
from jurygraph.decision.combiners import Component, Mean


class Half(Mean):
    name = "half"

    def combine(self, cells, params):
        whole = super().combine(cells, params)
        return Component(whole.value * 0.5, whole.present, whole.parts)
"""


def forget_modules() -> None:
    """Let modules be imported anew, as in a new process."""
    for name in [name for name in sys.modules if module_name_in_config(name) != name]:
        del sys.modules[name]


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    forget_modules()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run whose rewards were computed by a combiner in the folder of the config."""
    project = tmp_path / "project"
    tasks = write_tasks(project, make_tasks(tasks=1))
    (project / "own.py").write_text(OWN_COMBINER)
    component = {"combiner": "own.Half", "inputs": {"same": "same"}}
    config = {
        "evaluators": [evaluator_config("same")],
        "components": {"half": component},
        "reward": {"half": 1.0},
    }
    (project / "jury.yaml").write_text(json.dumps(config))
    score(project / "run", tasks, project / "jury.yaml")
    forget_modules()
    return project / "run"


def explain_response(folder: Path) -> None:
    with closing(Run.open(folder)) as run:
        explanation = run.explain("t0/r0")
        assert explanation.sentences() != explanation.sentences(what_if=True)


READERS: list[Callable[[Path], Any]] = [
    verify_run,
    explain_response,
    lambda folder: rescore_run(folder, folder.parent / "again"),
]


def test_a_combiner_is_imported_from_its_folder_at_scoring(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.py").write_text("raise SystemExit('this is another module')\n")
    monkeypatch.chdir(tmp_path)
    for read in READERS:
        read(run)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (None, ConfigError, "unknown combiner 'own.Half'"),
        (
            OWN_COMBINER.replace("* 0.5", "* 0.25"),
            InputError,
            "was decided with combiner own.Half of version",
        ),
    ],
    ids=["missing", "changed"],
)
def test_a_missing_or_changed_combiner_is_refused(
    run: Path, source: str | None, error: type[Exception], message: str
) -> None:
    (run.parent / "own.py").unlink()
    if source is not None:
        (run.parent / "own.py").write_text(source)
    for read in READERS:
        with pytest.raises(error, match=message):
            read(run)
        forget_modules()
    assert not (run.parent / "again").exists()


def test_a_missing_folder_is_named_where_its_evaluators_are_needed(tmp_path: Path) -> None:
    project = tmp_path / "project"
    tasks = write_tasks(project, make_tasks(tasks=1))
    (project / "manners.py").write_text("def polite(task, response):\n    return 0.5\n")
    (project / "jury.yaml").write_text("evaluators: [manners.polite]\n")
    score(tmp_path / "run", tasks, project / "jury.yaml")
    forget_modules()
    project.rename(tmp_path / "gone")
    verify_run(tmp_path / "run")
    missing = rf"evaluators\[0\] names 'manners', which this run looks for in {project}; that folder is missing"
    with closing(Run.open(tmp_path / "run")) as run, pytest.raises(InputError, match=missing):
        run.modules()
