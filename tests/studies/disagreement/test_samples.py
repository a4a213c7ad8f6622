"""Samples read from real runs."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.studies.disagreement import Samples, StepRule, read_samples
from tests.graphs.cast import told
from tests.runs.made import score, write_tasks

WEIGHTS = {"accuracy": 1.0, "format": 0.5, "steps": 0.5, "tone": 0.1, "repetition": -0.2}


def line(name: str, *scripts: dict[str, Any], labels: dict[str, Any] | None = None) -> dict[str, Any]:
    plain = dict.fromkeys(WEIGHTS, 0.5)
    return {
        "id": name,
        "query": "What is right?",
        "responses": [
            {"id": f"{name}/{place}", "text": "an answer", "data": plain | script, "labels": labels or {}}
            for place, script in enumerate(scripts)
        ],
    }


def made(folder: Path, *lines: dict[str, Any], **weights: float) -> Path:
    weights = weights or WEIGHTS
    config = {"evaluators": [told(name) for name in weights], "reward": weights, "failure": {"min_coverage": 0.3}}
    score(folder / "run", write_tasks(folder, lines), config)
    return folder / "run"


def read(folder: Path, *components: str, **cut: Any) -> Samples:
    with closing(Run.open(folder)) as run:
        return read_samples(run, StepRule(**cut), components)


def test_the_papers_three_components_are_compared_where_all_of_them_count(tmp_path: Path) -> None:
    found = read(made(tmp_path, line("b", {"accuracy": 1.0}, {"format": 0.0}), line("a", {"steps": 0.25})))
    assert found.components == ("accuracy", "format", "steps")
    assert found.ids == ("a/0", "b/0", "b/1")
    assert found.groups == ("a", "b", "b")
    assert found.values.tolist() == [[0.5, 0.5, 0.25], [1.0, 0.5, 0.5], [0.5, 0.0, 0.5]]
    assert found.rewards == pytest.approx([0.825, 1.45, 0.7])
    assert found.steps is None
    assert found.left_out == {}


def test_where_one_of_the_three_does_not_count_all_that_count_are_compared(tmp_path: Path) -> None:
    folder = made(tmp_path, line("a", {}, {}), accuracy=1.0, format=0.0, steps=0.5, tone=0.5, repetition=-0.5)
    assert read(folder).components == ("accuracy", "steps", "tone")


def test_components_can_be_named_penalties_too(tmp_path: Path) -> None:
    found = read(made(tmp_path, line("a", {}, {"repetition": 1.0})), "repetition", "tone", "repetition")
    assert found.components == ("repetition", "tone")
    assert found.values.tolist() == [[0.5, 0.5], [1.0, 0.5]]


def test_what_is_no_sample_is_left_out_and_counted(tmp_path: Path) -> None:
    every = dict.fromkeys(WEIGHTS, "response")
    labelled = line("a", {}, {}, every, {"steps": "abstained"}, {"tone": "abstained"}, labels={"at": 3})
    found = read(made(tmp_path, labelled, line("b", {})), label="at")
    assert found.ids == ("a/0", "a/1", "a/4")
    assert found.steps is not None
    assert found.steps.tolist() == [3.0, 3.0, 3.0]
    assert found.left_out == {
        "responses whose reward failed": 1,
        "responses without the component steps": 1,
        "responses without the label at": 1,
    }


def test_an_unknown_component_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    folder = made(tmp_path, line("a", {}, {}))
    with pytest.raises(InputError, match="no component 'acc'; its components are accuracy, format, repetition, steps"):
        read(folder, "acc", "format")


@pytest.mark.parametrize(
    ("weights", "named", "message"),
    [
        ({"accuracy": 1.0}, [], "only accuracy is there to compare; name 2 components or more of accuracy"),
        ({"accuracy": 1.0, "tone": -0.5}, [], "only accuracy is there"),
        ({"accuracy": -1.0, "tone": -0.5}, [], "no component counts with a positive weight"),
        ({"accuracy": 1.0, "tone": 0.5}, ["tone"], "only tone is there"),
    ],
)
def test_one_component_cannot_disagree(
    tmp_path: Path, weights: dict[str, float], named: list[str], message: str
) -> None:
    folder = made(tmp_path, line("a", {}, {}), **weights)
    with pytest.raises(InputError, match=message):
        read(folder, *named)


def test_fewer_than_two_samples_are_refused_with_the_reasons(tmp_path: Path) -> None:
    folder = made(tmp_path, line("a", {}, {"format": "abstained"}))
    with pytest.raises(InputError, match=r"1 of its responses .* \(responses without the component format: 1\)"):
        read(folder)


def test_a_component_on_another_scale_is_refused(tmp_path: Path) -> None:
    criteria = [{"id": "good", "text": "good", "weight": 1.0}, {"id": "bad", "text": "bad", "weight": -2.0}]
    task = line("a", {"met@good": 0.0, "met@bad": 1.0}, {"met@good": 1.0, "met@bad": 0.0})
    config = {
        "evaluators": [told("met", audience="criterion"), told("tone")],
        "reward": {"rubric": 1.0, "tone": 1.0},
    }
    score(tmp_path / "run", write_tasks(tmp_path, [{**task, "rubric": {"criteria": criteria}}]), config)
    with pytest.raises(InputError, match=r"component rubric of response 'a/0' is -2.0, and only those in \[0, 1\]"):
        read(tmp_path / "run")
