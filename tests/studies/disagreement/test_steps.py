"""Runs cut into steps, by a label or every N tasks."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.workflows.rescoring import apply_settings, rescore
from jurygraph.studies.disagreement import Samples, StepRule, read_samples
from tests.graphs.scripted import evaluator_use
from tests.runs.sample_runs import score, write_tasks

CONFIG: dict[str, Any] = {
    "evaluators": [evaluator_use("right"), evaluator_use("neat")],
    "reward": {"right": 1.0, "neat": 0.5},
}


def task_line(name: str, *scores: tuple[Any, Any], labels: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a task; each response has the scores that it gets for `right` and `neat`."""
    return {
        "id": name,
        "query": "What is right?",
        "responses": [
            {
                "id": f"{name}/{index}",
                "text": f"answer {index}",
                "data": {"right": right, "neat": neat},
                "labels": labels or {},
            }
            for index, (right, neat) in enumerate(scores)
        ],
    }


def score_run(folder: Path, *lines: dict[str, Any]) -> Path:
    score(folder / "run", write_tasks(folder, lines), CONFIG)
    return folder / "run"


def samples_of(folder: Path, **rule: Any) -> Samples:
    with closing(Run.open(folder)) as run:
        return read_samples(run, StepRule(**rule))


def test_every_n_tasks_are_a_step_and_tasks_with_failed_rewards_count(tmp_path: Path) -> None:
    lines = (task_line(name, ("response" if name == "a" else 1.0, 1.0)) for name in "abcde")
    samples = samples_of(score_run(tmp_path, *lines), every=2)
    assert dict(zip(samples.groups, samples.steps.tolist(), strict=True)) == {"b": 1, "c": 2, "d": 2, "e": 3}


def test_a_label_gives_the_step_of_a_response(tmp_path: Path) -> None:
    labels_by_task = {"a": {"at": 7}, "b": {"at": 2.5}, "c": {}}
    lines = (task_line(name, (1.0, 1.0), labels=labels) for name, labels in labels_by_task.items())
    samples = samples_of(score_run(tmp_path, *lines), label="at")
    assert samples.steps.tolist() == [7.0, 2.5]
    assert samples.left_out == {"responses without the label at": 1}


@pytest.mark.parametrize("value", ["3", True, None, [3]])
def test_a_label_that_is_not_a_number_is_refused(tmp_path: Path, value: Any) -> None:
    folder = score_run(tmp_path, task_line("a", (1.0, 1.0), labels={"at": value}))
    with pytest.raises(InputError, match=r"label 'at' of response 'a/0' is .*, which is no step"):
        samples_of(folder, label="at")


def test_an_erased_response_keeps_its_reward_and_components(tmp_path: Path) -> None:
    folder = score_run(tmp_path, task_line("a", (1.0, 1.0), (0.5, 0.5)))
    erase(folder, "response", "a/0", "")
    samples = samples_of(folder)
    assert samples.rewards.tolist() == [1.5, 0.75]
    assert samples.values.tolist() == [[1.0, 1.0], [0.5, 0.5]]


def test_a_rescored_run_gives_its_own_rewards(tmp_path: Path) -> None:
    folder = score_run(tmp_path, task_line("a", (0.5, 1.0), (0.0, 1.0)))
    with closing(Run.open(folder)) as run:
        rescore(run, tmp_path / "rescored", apply_settings(run.config, ["reward.right=2"]), lambda count: None)
    assert samples_of(tmp_path / "rescored").rewards.tolist() == [1.5, 0.5]


def test_progress_is_reported_once_per_task(tmp_path: Path) -> None:
    progress: list[int] = []
    folder = score_run(tmp_path, task_line("a", (1.0, 1.0)), task_line("b", (1.0, 1.0), (0.0, 1.0)))
    with closing(Run.open(folder)) as run:
        read_samples(run, StepRule(), report=progress.append)
    assert progress == [1, 1]


def test_a_rule_has_a_label_or_a_number_of_tasks_but_not_both() -> None:
    assert not StepRule().has_steps
    assert StepRule(label="at").has_steps
    assert StepRule(every=1).has_steps
    with pytest.raises(InputError, match="by a label or every N tasks, not both"):
        StepRule(label="at", every=2)
    with pytest.raises(InputError, match="cannot be cut every 0 tasks"):
        StepRule(every=0)
