"""The steps of a stored run."""

from pathlib import Path

import numpy as np
import pytest

from jurygraph.agents.data_analyzer import TrainingStep
from jurygraph.errors import InputError
from jurygraph.studies.monitor import (
    LabelledSteps,
    iter_scored_groups,
    iter_training_steps,
    read_component_weights,
    split_steps_by_task_count,
)
from tests.cli.conftest import Command, run_command
from tests.runs.sample_runs import make_tasks, score, write_tasks


def read_steps(folder: Path) -> list[TrainingStep]:
    """Return the steps of two tasks."""
    groups = split_steps_by_task_count(iter_scored_groups(folder), 2)
    return list(iter_training_steps(groups, read_component_weights(folder)))


def test_a_step_has_rewards_components_lengths_and_tasks(scored_folder: Path) -> None:
    (step,) = read_steps(scored_folder)
    assert step.rewards.tolist() == pytest.approx([0.5, 0.0, -0.25, -0.5])
    assert {name: column.tolist() for name, column in step.components.items()} == {
        "polite": [1.0, 0.0, 0.25, 0.0],
        "shaky": [1.0, 0.0, 1.0, 1.0],
    }
    assert step.lengths.tolist() == [40.0, 13.0, 12.0, 0.0]
    assert sorted(step.groups.tolist()) == [0, 0, 1, 1]


def test_failed_rewards_and_erased_lengths_are_nan(project: Path, run: Command) -> None:
    lines = (project / "tasks.jsonl").read_text().replace("bad: the door", "crash")
    (project / "tasks.jsonl").write_text(lines)
    (project / "jury.yaml").write_text(
        (project / "jury.yaml").read_text() + "failure: {rule: strict}\n"
    )
    run("score", project / "tasks.jsonl", "--out", project / "run")
    assert run_command("erase", project / "run", "--response", "salt/a").code == 0
    (step,) = read_steps(project / "run")
    assert np.isnan(step.rewards).tolist() == [False, True, False, False]
    assert np.isnan(step.lengths).tolist() == [False, False, True, False]


def steps_of(folder: Path, *labels: list[int]) -> list[list[str]]:
    """Return the tasks of each step of a run whose responses to a task have these values of the label `step`."""
    tasks = make_tasks(tasks=len(labels), size=2)
    for task, values in zip(tasks, labels, strict=True):
        for response, value in zip(task["responses"], values, strict=True):
            response["labels"] = {"step": value}
    score(folder / "run", write_tasks(folder, tasks))
    steps = LabelledSteps(folder / "run", "step")
    return [[group[0].trace.task_id for group in step.groups] for step in steps]


def test_tasks_in_a_row_with_the_same_label_are_a_step(tmp_path: Path) -> None:
    assert steps_of(tmp_path, [1, 1], [1, 1], [2, 2], [5, 5]) == [["t0", "t1"], ["t2"], ["t3"]]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            [[1, 1], [2, 2], [1, 1]],
            "task 't2': label 'step' is 1 again, after others; order tasks by it",
        ),
        ([[1, 1], [2, 7]], "task 't1': its responses differ in label 'step'"),
    ],
)
def test_labels_that_give_no_order_are_refused(
    labels: list[list[int]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        steps_of(tmp_path, *labels)


def test_a_run_is_followed_until_it_is_closed_without_blocking_its_writer(tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path, make_tasks(tasks=4))
    score(tmp_path / "run", tasks, limit=2)
    waits = []

    def wait() -> None:
        """Continue the run, as another process would."""
        waits.append(len(waits))
        score(tmp_path / "run", tasks, limit=None if waits[1:] else 3)

    groups = iter_scored_groups(tmp_path / "run", wait)
    assert [group[0].trace.task_id for group in groups] == ["t0", "t1", "t2", "t3"]
    assert len(waits) == 2


def test_all_components_of_a_run_have_a_weight(scored_folder: Path) -> None:
    assert read_component_weights(scored_folder) == {"polite": 1.0, "shaky": -0.5}
