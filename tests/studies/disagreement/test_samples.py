"""Samples read from real runs, and their steps: by a label, or every N tasks."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.studies.disagreement import ComponentSamples, collect_component_samples
from tests.graphs.scripted import evaluator_use
from tests.runs.sample_runs import score, write_tasks

WEIGHTS = {"accuracy": 1.0, "format": 0.5, "steps": 0.5, "tone": 0.1, "repetition": -0.2}


def task_line(
    name: str, *scripts: dict[str, Any], labels: dict[str, Any] | None = None
) -> dict[str, Any]:
    plain = dict.fromkeys(WEIGHTS, 0.5)
    return {
        "id": name,
        "query": "What is right?",
        "responses": [
            {
                "id": f"{name}/{place}",
                "text": "an answer",
                "data": plain | script,
                "labels": labels or {},
            }
            for place, script in enumerate(scripts)
        ],
    }


def score_run(folder: Path, *lines: dict[str, Any], **weights: float) -> Path:
    weights = weights or WEIGHTS
    config = {
        "evaluators": [evaluator_use(name) for name in weights],
        "reward": weights,
        "failure": {"min_coverage": 0.3},
    }
    score(folder / "run", write_tasks(folder, lines), config)
    return folder / "run"


def samples_of(folder: Path, *components: str, **steps: Any) -> ComponentSamples:
    with closing(Run.open(folder)) as run:
        return collect_component_samples(run, components=components, **steps)


def test_the_three_components_of_the_paper_are_compared_if_all_count(tmp_path: Path) -> None:
    found = samples_of(
        score_run(
            tmp_path,
            task_line("b", {"accuracy": 1.0}, {"format": 0.0}),
            task_line("a", {"steps": 0.25}),
        )
    )
    assert found.components == ("accuracy", "format", "steps")
    assert found.units == ("task a", "task b", "task b")
    assert found.values.tolist() == [[0.5, 0.5, 0.25], [1.0, 0.5, 0.5], [0.5, 0.0, 0.5]]
    assert found.rewards == pytest.approx([0.825, 1.45, 0.7])
    assert found.steps is None
    assert found.left_out == {}


def test_all_counting_components_are_compared_if_one_of_the_three_does_not_count(
    tmp_path: Path,
) -> None:
    folder = score_run(
        tmp_path,
        task_line("a", {}, {}),
        accuracy=1.0,
        format=0.0,
        steps=0.5,
        tone=0.5,
        repetition=-0.5,
    )
    assert samples_of(folder).components == ("accuracy", "steps", "tone")


def test_omitted_responses_are_counted_by_reason(tmp_path: Path) -> None:
    every = dict.fromkeys(WEIGHTS, "response")
    labelled = task_line(
        "a", {}, {}, every, {"steps": "abstained"}, {"tone": "abstained"}, labels={"at": 3}
    )
    found = samples_of(score_run(tmp_path, labelled, task_line("b", {})), step_label="at")
    assert found.steps.tolist() == [3.0, 3.0, 3.0]
    assert found.left_out == {
        "responses whose reward failed": 1,
        "responses without the component steps": 1,
        "responses without the label at": 1,
    }


def test_an_unknown_component_is_refused_with_the_known_names(tmp_path: Path) -> None:
    folder = score_run(tmp_path, task_line("a", {}, {}))
    with pytest.raises(
        InputError,
        match="no component 'acc'; its components are accuracy, format, repetition, steps",
    ):
        samples_of(folder, "acc", "format")


@pytest.mark.parametrize(
    ("weights", "requested", "message"),
    [
        (
            {"accuracy": 1.0},
            [],
            "only accuracy is there to compare$",
        ),
        (
            {"accuracy": 1.0, "tone": -0.5},
            [],
            "only accuracy is there to compare; name 2 components or more of accuracy, tone",
        ),
        ({"accuracy": -1.0, "tone": -0.5}, [], "no component counts with a positive weight"),
        ({"accuracy": 1.0, "tone": 0.5}, ["tone"], "only tone is there"),
    ],
)
def test_a_single_component_is_refused(
    tmp_path: Path, weights: dict[str, float], requested: list[str], message: str
) -> None:
    folder = score_run(tmp_path, task_line("a", {}, {}), **weights)
    with pytest.raises(InputError, match=message):
        samples_of(folder, *requested)


def test_a_component_outside_the_unit_interval_is_refused(tmp_path: Path) -> None:
    criteria = [
        {"id": "good", "text": "good", "weight": 1.0},
        {"id": "bad", "text": "bad", "weight": -2.0},
    ]
    task = task_line("a", {"met@good": 0.0, "met@bad": 1.0}, {"met@good": 1.0, "met@bad": 0.0})
    config = {
        "evaluators": [evaluator_use("met", audience="criterion"), evaluator_use("tone")],
        "reward": {"rubric": 1.0, "tone": 1.0},
    }
    score(
        tmp_path / "run",
        write_tasks(tmp_path, [{**task, "rubric": {"criteria": criteria}}]),
        config,
    )
    with pytest.raises(
        InputError, match=r"component rubric of response 'a/0' is -2.0, and only those in \[0, 1\]"
    ):
        samples_of(tmp_path / "run")


def test_every_n_tasks_are_a_step_and_tasks_with_failed_rewards_count(tmp_path: Path) -> None:
    failed = dict.fromkeys(WEIGHTS, "response")
    lines = (task_line(name, failed if name == "a" else {}) for name in "abcde")
    samples = samples_of(score_run(tmp_path, *lines), every=2)
    steps = {"task b": 1, "task c": 2, "task d": 2, "task e": 3}
    assert dict(zip(samples.units, samples.steps.tolist(), strict=True)) == steps


def test_a_label_gives_the_step_of_a_response(tmp_path: Path) -> None:
    labels_by_task = {"a": {"at": 7}, "b": {"at": 2.5}, "c": {}}
    lines = (task_line(name, {}, labels=labels) for name, labels in labels_by_task.items())
    samples = samples_of(score_run(tmp_path, *lines), step_label="at")
    assert samples.steps.tolist() == [7.0, 2.5]
    assert samples.left_out == {"responses without the label at": 1}


@pytest.mark.parametrize("value", ["3", True, None, [3]])
def test_a_label_that_is_not_a_number_is_refused(tmp_path: Path, value: Any) -> None:
    folder = score_run(tmp_path, task_line("a", {}, labels={"at": value}))
    with pytest.raises(InputError, match=r"label 'at' of response 'a/0' is .*, which is no step"):
        samples_of(folder, step_label="at")
