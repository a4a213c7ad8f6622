"""A run of one original and two variants, for tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.graphs.scripted import evaluator_use
from tests.runs.sample_runs import score, write_tasks

CONFIG: dict[str, Any] = {"evaluators": [evaluator_use("judge")], "reward": {"judge": 1.0}}
SEED = {"seed": "t/r"}
RESPONSES: list[dict[str, Any]] = [
    {"id": "t/r", "text": "it is r", "data": {"judge": 0.5, "advice": 0.5}, "labels": SEED},
    {
        "id": "t/a",
        "text": "it is a",
        "data": {"judge": 0.4, "advice": 0.5},
        "labels": {**SEED, "family": "order"},
    },
    {
        "id": "t/b",
        "text": "it is b",
        "data": {"judge": 0.6, "advice": 0.5},
        "labels": {**SEED, "family": "order", "version": 1},
    },
]


def labelled_run(
    folder: Path,
    config: Mapping[str, Any] = CONFIG,
    responses: Sequence[Mapping[str, Any]] = RESPONSES,
) -> Path:
    """Score the responses into a run of this folder, and return it."""
    tasks = write_tasks(folder, [{"id": "t", "query": "What?", "responses": list(responses)}])
    score(folder / "run", tasks, config)
    return folder / "run"
