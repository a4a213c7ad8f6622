"""The steps of a training that was recorded: of all ranks, in the order of time, also after a restart."""

import asyncio
import csv
import math
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.errors import InputError
from jurygraph.integrations.trl import reward_function
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.erasure import erase
from jurygraph.studies.disagreement import collect_component_samples
from jurygraph.studies.monitor import (
    LabelledSteps,
    iter_scored_groups,
    iter_training_steps,
    read_component_weights,
    read_steps,
    split_steps_by_task_count,
)
from tests.command import run_command
from tests.integrations.trainers import CONFIG, Trainer

TASK = jg.Task(id="eggs", query="How many eggs are left?")
TRAINING_CONFIG = {**CONFIG, "failure": {"rule": "decisive"}}
"""The config as a trainer records with it."""


@pytest.fixture
def train(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what records a training: two groups of two for each step, of a prompt that recurs and of a new one."""

    def record(
        folder: Path, steps: Iterable[int], rank: int = 0, process: int | None = None
    ) -> None:
        monkeypatch.setenv("RANK", str(rank))
        name = "{rank}" if process is None else "{pid}"
        if process is not None:
            monkeypatch.setattr(os, "getpid", lambda: process)
        function = reward_function(CONFIG, record=folder / name)
        for step in steps:
            prompts = [f"{rank}: ?"] * 2 + [f"{rank}: {step}?"] * 2
            columns = Trainer(num_generations=2).columns(step)
            completions = [f"{step}: it is {reward}" for reward in (0.25, 0.5, 1.0, 0.0)]
            asyncio.run(function(prompts=prompts, completions=completions, **columns))
        function.close()

    return record


def test_the_groups_of_several_runs_cannot_be_counted(train: Any, tmp_path: Path) -> None:
    for rank in (0, 1):
        train(tmp_path, (8,), rank)
    problem = "has several runs, whose groups have no common order in time; give their label"
    with pytest.raises(InputError, match=problem):
        list(iter_scored_groups(tmp_path))
    with Run.open(tmp_path) as run, pytest.raises(InputError, match=problem):
        collect_component_samples(run, every=2)


def count_groups(steps: LabelledSteps) -> dict[Any, int]:
    """Return the number of groups of each step, in the order of the steps."""
    return {step.name: len(step.groups) for step in steps}


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_step_has_the_groups_of_all_ranks(train: Any, ranks: int, tmp_path: Path) -> None:
    for rank in range(ranks):
        train(tmp_path, (8, 9, 10), rank)
    steps = LabelledSteps(tmp_path, "step")
    assert list(count_groups(steps).items()) == [(step, 2 * ranks) for step in (8, 9, 10)]
    assert steps.notes == []


def test_ranks_without_the_last_steps_and_ranks_that_are_not_there_are_named(
    train: Any, tmp_path: Path
) -> None:
    for rank, last in ((0, 10), (1, 8), (2, 8), (4, 9), (5, 10)):
        train(tmp_path, range(8, last + 1), rank)
    steps = LabelledSteps(tmp_path, "step")
    assert count_groups(steps) == {8: 10, 9: 6, 10: 4}
    assert steps.notes == [
        "runs end at different steps, so that the last ones lack groups: "
        "0, 5 at step 10; 1, 2 at step 8; 4 at step 9",
        "there are no groups of rank 3",
    ]


def test_steps_that_a_restart_repeats_have_the_groups_of_both_sessions(
    train: Any, tmp_path: Path
) -> None:
    for rank in (0, 1):
        train(tmp_path, (8, 9, 10, 11), rank)
        train(tmp_path, (10, 11, 12), rank)
    for folder, ranks in ((tmp_path, 2), (tmp_path / "1", 1)):
        steps = LabelledSteps(folder, "step")
        expected = {8: 2, 9: 2, 10: 4, 11: 4, 12: 2}
        assert count_groups(steps) == {step: ranks * count for step, count in expected.items()}
        assert steps.notes == [
            "steps recorded again, as after a restart: 10 to 11; all their groups count "
            "without --sessions last"
        ]
        steps, notes = read_steps(folder, None, None, None, only_last_session=True)
        assert {step.name: len(step.groups) for step in steps} == dict.fromkeys(
            (10, 11, 12), 2 * ranks
        )
        assert len(notes) == 1  # what a step is
    train(tmp_path, (11, 12), rank=1)
    with Run.open(tmp_path / "1") as run:
        labels = [trace.labels for trace in run.traces() if trace.labels["step"] == 11]
    assert Counter(label.get("session") for label in labels) == {None: 4, 2: 4, 3: 4}
    for labels, count in (
        (["session=3"], 8),
        (["session=1"], 16),
        (["step=11", "session=1"], 4),
        (["session=3", "step=12"], 4),
    ):
        options = [word for label in labels for word in ("--label", label)]
        shown = run_command("show", tmp_path / "1", *options, "--json")
        assert len(shown.out.splitlines()) == count
    table = run_command("show", tmp_path / "1", "--label", "step=11").out.splitlines()
    assert "label.session" in table[0]
    only = run_command("show", tmp_path / "1", "--label", "step=8")
    assert "label.session" not in only.out
    exported = run_command("export", tmp_path / "1", "--to", "csv").out.splitlines()
    sessions = Counter(row["label.session"] for row in csv.DictReader(exported))
    assert sessions == {"1": 16, "2": 12, "3": 8}
    apart = run_command("show", tmp_path / "1", "--label", "session=3", "--label", "step=8")
    assert "no response has all of the labels session=3, step=8; leave one out" in apart.err
    explained = run_command("explain", tmp_path / "1", "--label", "step=8", "--limit", 1).out
    assert explained.splitlines()[1] == "Labels: step 8, session 1. Prompt: 1: ?"


@pytest.mark.parametrize("is_followed", [False, True])
def test_evaluations_are_no_part_of_the_trend(
    train: Any, tmp_path: Path, is_followed: bool
) -> None:
    train(tmp_path, (8, 9))
    evaluated = jg.Response(id="r", text="9: it is 0.5", labels={"step": 9, "phase": "eval"})

    def evaluate_and_close() -> None:
        with jg.Jury(**TRAINING_CONFIG) as jury, jury.record(tmp_path / "0") as recorder:
            jury.score(TASK, [evaluated])
            recorder.close_run()

    if not is_followed:
        with jg.Jury(**TRAINING_CONFIG) as jury, jury.record(tmp_path / "evaluated"):
            jury.score(TASK, [evaluated], step=9)
        steps, _ = read_steps(tmp_path / "evaluated", None, None, None, only_last_session=True)
        assert list(steps) == []
        evaluate_and_close()
    steps = LabelledSteps(tmp_path / "0", "step", evaluate_and_close if is_followed else None)
    assert count_groups(steps) == {8: 2, 9: 2}
    notes = ["1 group of evaluations (label phase=eval) left out"]
    assert steps.notes == notes
    counted_notes: list[str] = []
    counted = split_steps_by_task_count(iter_scored_groups(tmp_path / "0", notes=counted_notes), 1)
    assert len(list(counted)) == 4
    assert counted_notes == notes


def test_the_only_session_is_found_and_not_told(train: Any, tmp_path: Path) -> None:
    train(tmp_path, (8,))
    shown = run_command("show", tmp_path / "0", "--label", "session=1", "--json")
    assert len(shown.out.splitlines()) == 4
    explained = run_command("explain", tmp_path / "0", "--label", "step=8", "--limit", 1).out
    assert explained.splitlines()[1] == "Labels: step 8. Prompt: 0: ?"


def test_the_steps_that_there_are_come_by_their_number(train: Any, tmp_path: Path) -> None:
    train(tmp_path, (22, 8, 100, 3, 1, 25))
    shown = run_command("show", tmp_path / "0", "--label", "step=9")
    assert "no response has the label step=9; values of step: 1, 3, 8, 22, 25, 1 more" in shown.err


def test_a_label_session_of_another_meaning_is_no_session(tmp_path: Path) -> None:
    with jg.Jury.from_config(CONFIG) as jury, jury.record(tmp_path / "run"):
        for chat in (4712, 4711, None):
            labels = {"step": 1} if chat is None else {"step": 1, "session": chat}
            jury.score(TASK, [jg.Response(id=f"r{chat}", text="it is 1.0", labels=labels)])
    steps = LabelledSteps(tmp_path / "run", "step")
    assert count_groups(steps) == {1: 3}
    assert steps.notes == []
    steps.only_last_session = True
    assert count_groups(steps) == {1: 3}
    shown = run_command("show", tmp_path / "run", "--label", "session=1")
    assert "no response has the label session=1; values of session: " in shown.err


def test_a_rank_ends_at_its_last_step_and_not_where_its_restart_ended(
    train: Any, tmp_path: Path
) -> None:
    for rank in (0, 1):
        train(tmp_path, range(8, 13), rank)
    train(tmp_path, (9, 10), rank=1)
    steps = LabelledSteps(tmp_path, "step")
    assert count_groups(steps)[10] == 6
    assert steps.notes == [
        "steps recorded again, as after a restart: 9 to 10; all their groups count "
        "without --sessions last"
    ]


def test_a_last_step_that_a_restart_repeats_and_a_step_that_is_missing_are_named(
    train: Any, tmp_path: Path
) -> None:
    train(tmp_path, (1, 2, 3, 4))
    train(tmp_path, (4, 5, 7, 8, 9, 12))
    steps = LabelledSteps(tmp_path / "0", "step")
    assert count_groups(steps)[4] == 4
    assert steps.notes == [
        "steps recorded again, as after a restart: 4; all their groups count "
        "without --sessions last",
        "there are no groups of step 6, 10 to 11",
    ]


def test_a_restart_has_the_number_of_another_process(train: Any, tmp_path: Path) -> None:
    train(tmp_path, (8, 9, 10), process=9000)
    train(tmp_path, (10, 11), process=812)
    steps = LabelledSteps(tmp_path, "step")
    assert list(count_groups(steps).items()) == [(8, 2), (9, 2), (10, 4), (11, 2)]
    assert steps.notes == [
        "steps recorded again, as after a restart: 10; all their groups count "
        "without --sessions last"
    ]
    steps.only_last_session = True
    assert count_groups(steps) == {10: 2, 11: 2}
    with pytest.raises(InputError, match="leave out --follow, --every and --step-label"):
        read_steps(tmp_path, None, 4, None, only_last_session=True)


def test_processes_that_record_at_the_same_time_are_no_restart(tmp_path: Path) -> None:
    with (
        jg.Jury(**CONFIG, record=tmp_path / "31") as first_jury,
        jg.Jury(**CONFIG, record=tmp_path / "32") as second_jury,
    ):
        for step, jury in ((1, first_jury), (1, second_jury), (2, second_jury), (2, first_jury)):
            name = f"{step} of {id(jury)}"
            jury.score(TASK, [jg.Response(id=name, text="1", labels={"step": step})])
        jury.score(TASK, [jg.Response(text="1", labels={"step": 3})])
    steps = LabelledSteps(tmp_path, "step")
    assert count_groups(steps) == {1: 2, 2: 2, 3: 1}
    assert steps.notes == [
        "runs end at different steps, so that the last ones lack groups: 31 at step 3; 32 at step 2"
    ]


def test_a_training_that_is_followed_repeats_the_steps_of_a_restart(
    train: Any, tmp_path: Path
) -> None:
    train(tmp_path, (8, 9))

    def go_on() -> None:
        train(tmp_path, (8, 9, 10))
        with jg.Jury(**TRAINING_CONFIG) as jury, jury.record(tmp_path / "0") as recorder:
            recorder.close_run()

    steps = LabelledSteps(tmp_path / "0", "step", go_on)
    assert [step.name for step in steps] == [8, 9, 8, 9, 10]
    assert steps.notes == [
        "steps recorded again, as after a restart, are more steps here; without --follow they are joined"
    ]


def test_steps_that_are_no_numbers_come_as_they_first_occur(tmp_path: Path) -> None:
    for rank in ("1", "2"):
        with jg.Jury(**CONFIG, record=tmp_path / rank) as jury:
            for number, stage in enumerate(("warm", 10, "cold"), 1):
                response = jg.Response(id=f"{rank}/{stage}", text="1", labels={"stage": stage})
                jury.score(TASK, [response], step=number)
    assert list(count_groups(LabelledSteps(tmp_path, "stage"))) == ["warm", 10, "cold"]


def test_a_group_whose_responses_were_erased_is_of_the_step_around_it(
    train: Any, tmp_path: Path
) -> None:
    train(tmp_path, (8, 9))
    with Run.open(tmp_path / "0") as run:
        names = [trace.response_id for trace in run.traces()]
    for name in (*names[:2], *names[-2:]):
        erase(tmp_path / "0", "response", name, "asked for")
    assert count_groups(LabelledSteps(tmp_path, "step")) == {8: 2, 9: 2}


def test_groups_without_the_label_are_of_the_step_that_they_were_recorded_with(
    tmp_path: Path,
) -> None:
    with jg.Jury(**CONFIG, record=tmp_path) as jury:
        for step in (20, 3):
            jury.score(TASK, ["1", "2"], step=step)
        steps = LabelledSteps(tmp_path, "step")
        assert count_groups(steps) == {3: 1, 20: 1}
        assert steps.notes == [
            "no label 'step': a step is the `step=` that groups were recorded with, else their task's count"
        ]
        with pytest.raises(InputError, match="has no label 'epoch'; its labels: none"):
            count_groups(LabelledSteps(tmp_path, "epoch"))
        jury.score(TASK, [jg.Response(text="1", labels={"step": 7})])
        with pytest.raises(InputError, match="has label 'step', and groups before it have none"):
            count_groups(LabelledSteps(tmp_path, "step"))


def test_without_a_label_groups_come_in_the_order_of_time_or_are_refused(
    train: Any, tmp_path: Path
) -> None:
    train(tmp_path, (9, 8, 10))
    labels = [group[0].trace.labels["step"] for group in iter_scored_groups(tmp_path)]
    assert labels == [9, 9, 8, 8, 10, 10]
    train(tmp_path, (9,), rank=1)
    with pytest.raises(InputError, match="no common order in time; give their label, such as --st"):
        next(iter_scored_groups(tmp_path))


TRAINING_NOTE = "steps are those of the responses' label 'step'; --every N counts tasks instead"


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_label_of_trainers_is_the_step_by_default(
    train: Any, tmp_path: Path, ranks: int
) -> None:
    for rank in range(ranks):
        train(tmp_path, (8, 9), rank)
    names = [trace.response_id for trace in Run.open(tmp_path / "0").traces()]
    erase(tmp_path / "0", "response", names[0], "asked for")
    steps, notes = read_steps(tmp_path, None, None, None)
    assert [(step.name, len(step.groups)) for step in steps] == [(8, 2 * ranks), (9, 2 * ranks)]
    assert notes == [TRAINING_NOTE]
    steps, notes = read_steps(tmp_path / "0", None, 4, None)
    assert [(step.name, len(step.groups)) for step in steps] == [(None, 4)]
    assert notes == ["steps are counted from 1, of 4 tasks each"]
    steps, notes = read_steps(tmp_path, "step", None, None)
    assert (len(list(steps)), notes) == (2, [])


@pytest.mark.parametrize("label", [None, "step"])
def test_groups_without_the_label_of_a_training_are_left_out_and_counted(
    train: Any, tmp_path: Path, label: str | None
) -> None:
    with jg.Jury(**TRAINING_CONFIG) as jury, jury.record(tmp_path / "0"):
        jury.score(TASK, ["1", "2"])
    train(tmp_path, (8, 9))
    with jg.Jury(**TRAINING_CONFIG) as jury, jury.record(tmp_path / "0"):
        jury.score(TASK, ["1"])
    steps, notes = read_steps(tmp_path / "0", label, None, None)
    assert [(step.name, len(step.groups)) for step in steps] == [(8, 2), (9, 2)]
    left_out = "3 responses of groups without the label 'step' left out"
    assert notes == [*([] if label else [TRAINING_NOTE]), left_out]


def test_the_first_group_of_a_run_that_is_followed_tells_whether_it_has_steps(
    train: Any, tmp_path: Path
) -> None:
    train(tmp_path, (8,))

    def go_on() -> None:
        train(tmp_path, (9,))
        with jg.Jury(**TRAINING_CONFIG) as jury, jury.record(tmp_path / "0") as recorder:
            recorder.close_run()

    steps, notes = read_steps(tmp_path / "0", None, None, go_on)
    assert [(step.name, len(step.groups)) for step in steps] == [(8, 2), (9, 2)]
    assert notes == [TRAINING_NOTE]


def test_a_component_that_the_first_steps_lack_is_watched(tmp_path: Path) -> None:
    accuracy = {"use": "maths.accuracy", "if_missing": "not_applicable"}
    config = {
        "evaluators": [*CONFIG["evaluators"], accuracy],
        "reward": {"graded": 1.0, "accuracy": -0.5},
    }
    with jg.Jury(**config, record=tmp_path) as jury:
        for step, reference in enumerate((None, "1", None, "1")):
            task = jg.Task(id=f"t{step}", query="3 - 2?", reference=reference)
            text = "the answer is 1" if step < 3 else "the answer is 3"
            jury.score(task, [jg.Response(text=text, labels={"step": step})])
    weights = read_component_weights(tmp_path)
    assert weights == {"accuracy": -0.5, "graded": 1.0}
    steps = iter_training_steps(LabelledSteps(tmp_path, "step"), weights)
    values = [float(step.components["accuracy"][0]) for step in steps]
    # In the last the reward failed: what the failure rule made of its components is no value.
    assert values == pytest.approx([math.nan, 1.0, math.nan, math.nan], nan_ok=True)
