"""The steps of a stored run."""

from pathlib import Path

import numpy as np
import pytest

from jurygraph.studies.monitor import analyzer_steps, penalty_components, read_groups, steps_by_number
from tests.cli.conftest import Command, run_command


def test_a_step_has_rewards_components_lengths_and_tasks(scored_folder: Path) -> None:
    (step,) = analyzer_steps(steps_by_number(read_groups(scored_folder), 2))
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
    (project / "jury.yaml").write_text((project / "jury.yaml").read_text() + "failure: {rule: strict}\n")
    run("score", project / "tasks.jsonl", "--out", project / "run")
    assert run_command("erase", project / "run", "--response", "salt/a").code == 0
    (step,) = analyzer_steps(steps_by_number(read_groups(project / "run"), 2))
    assert np.isnan(step.rewards).tolist() == [False, True, False, False]
    assert np.isnan(step.lengths).tolist() == [False, False, True, False]


def test_components_of_negative_weight_are_penalties(scored_folder: Path) -> None:
    assert penalty_components(scored_folder) == {"shaky"}
