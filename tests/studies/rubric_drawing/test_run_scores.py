"""p and q of a response from a stored run."""

from pathlib import Path

import pytest

from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.studies.rubric_drawing import scores_of
from tests.runs.sample_runs import SIMPLE_CONFIG, score, write_tasks
from tests.studies.rubric_drawing.scripted import RUBRIC, config, score_run

LETTERS = {
    "good": {"facts": 1.0, "advice": 0.9, "thanks": 1.0, "wrong": 0.0},
    "bluff": {"facts": 0.0, "advice": 0.9, "thanks": 1.0, "wrong": 0.7},
    "unclear": {"facts": "abstained", "advice": 0.9, "thanks": 1.0, "wrong": 0.7},
}


def rounded_scores(folder: Path, response: str, **fields: object) -> dict[str, tuple[float, float]]:
    _, scores = scores_of(score_run(folder, LETTERS, config(**fields) if fields else None), response)
    return {name: (round(score.judged_score, 9), round(score.remaining, 9)) for name, score in scores.criteria.items()}


def test_p_is_the_judged_score_and_q_is_what_the_reward_used(tmp_path: Path) -> None:
    run = score_run(tmp_path, LETTERS)
    task, scores = scores_of(run, "bluff")
    assert task.id == "letter"
    assert (scores.aggregation, scores.kappa) == ("gear", 1.0)
    assert {name: one.judged_score for name, one in scores.criteria.items()} == LETTERS["bluff"]
    assert {name: one.remaining for name, one in scores.criteria.items()} == run.find_trace("bluff").reward.parts[
        "rubric"
    ]
    assert [name for name, one in scores.criteria.items() if one.suppressed] == ["advice", "thanks", "wrong"]
    assert scores.criteria["advice"].remaining == pytest.approx(0.9 * 0.2)
    assert scores.retention == {("facts", "advice"): 0.2, ("advice", "thanks"): 0.6, ("facts", "wrong"): 0.0}


def test_hard_aggregation_leaves_nothing_behind_a_closed_gate(tmp_path: Path) -> None:
    found = rounded_scores(tmp_path, "bluff", rubric={"aggregation": "hard-local"})
    assert found == {"facts": (0, 0), "advice": (0.9, 0), "thanks": (1, 1), "wrong": (0.7, 0)}


def test_a_criterion_without_a_verdict_is_unjudged(tmp_path: Path) -> None:
    _, scores = scores_of(score_run(tmp_path, LETTERS), "unclear")
    assert scores.criteria["facts"].missing == "unjudged"
    assert scores.criteria["facts"].judged_score == 0.0
    assert scores.criteria["advice"].missing == ""


def test_a_criterion_judged_by_some_samples_is_partly_judged(tmp_path: Path) -> None:
    answers = {"one": {"facts": [1.0, "abstained"], "advice": [1.0, 0.0], "thanks": "abstained", "wrong": [0.0, 0.0]}}
    _, scores = scores_of(score_run(tmp_path, answers, config(samples=2)), "one")
    assert {name: one.missing for name, one in scores.criteria.items()} == {
        "facts": "partly judged",
        "advice": "",
        "thanks": "unjudged",
        "wrong": "",
    }
    assert scores.criteria["advice"].judged_score == 0.5


@pytest.mark.parametrize(
    ("rubric", "message"),
    [
        (RUBRIC, "made no component 'rubric' of the criteria of task 't'.* draw the graph alone with --task"),
        (None, "task 't' has no rubric to draw"),
    ],
)
def test_a_run_without_rewards_from_a_rubric_is_refused(tmp_path: Path, rubric: object, message: str) -> None:
    line = {
        "id": "t",
        "query": "?",
        "rubric": rubric,
        "responses": [{"id": "r", "text": "one", "data": {"tone": [1.0, 1.0], "same": 1.0, "late": 1.0}}],
    }
    score(tmp_path / "run", write_tasks(tmp_path, [line]), SIMPLE_CONFIG)
    with pytest.raises(InputError, match=message):
        scores_of(Run.open(tmp_path / "run"), "r")
