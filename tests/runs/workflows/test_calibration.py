"""Scores that count through a map: in a rescored run, and in a new one whose config names the file of the map."""

import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import ConfigError
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.rescoring import rescore
from jurygraph.schema import ScoreCalibration
from jurygraph.sources.artifacts import calibrations_to_json
from tests.runs.sample_runs import (
    evaluator_config,
    make_tasks,
    score,
    traces_of,
    verify_run,
    write_tasks,
)

MAP = ScoreCalibration(method="isotonic", labels=40, scores=(0.25, 0.5), calibrated=(0.0, 1.0))
CONFIG = {"evaluators": [evaluator_config("same")], "reward": {"same": 2.0}}


def read_rewards(folder: Path) -> dict[str, float | None]:
    return {trace.response_id: trace.reward.value for trace in traces_of(folder)}


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """A task with responses that score 0.25, 0.375 and 0.5."""
    (task,) = make_tasks(tasks=1)
    for response, given in zip(task["responses"], (0.25, 0.375, 0.5), strict=True):
        response["data"]["same"] = given
    return write_tasks(tmp_path, [task])


def score_with(folder: Path, name: str, maps: Mapping[str, Any]) -> Path:
    (folder / "map.json").write_text(json.dumps(maps))
    (folder / "jury.yaml").write_text(json.dumps({**CONFIG, "calibration": "map.json"}))
    score(folder / name, folder / "tasks.jsonl", folder / "jury.yaml")
    return folder / name


def test_a_rescored_run_and_a_config_that_names_the_map_have_the_same_rewards(
    tasks: Path, tmp_path: Path
) -> None:
    score(tmp_path / "run", tasks, CONFIG)
    with closing(Run.open(tmp_path / "run")) as run:
        config = run.config.model_copy(update={"calibration": {"same": MAP}})
        rescore(run, tmp_path / "again", config, lambda count: None)
    assert read_rewards(tmp_path / "again") == {"t0/r0": 0.0, "t0/r1": 1.0, "t0/r2": 2.0}
    verify_run(tmp_path / "again")
    scored = score_with(tmp_path, "scored", json.loads(calibrations_to_json({"same": MAP})))
    assert read_rewards(scored) == read_rewards(tmp_path / "again")


@pytest.mark.usefixtures("tasks")
def test_a_changed_map_is_refused(tmp_path: Path) -> None:
    maps = json.loads(calibrations_to_json({"same": MAP}))
    maps["same"]["calibrated"][1] = 0.9
    with pytest.raises(ConfigError, match=r"key calibration.same.digest: is not that of the rest"):
        score_with(tmp_path, "scored", maps)
