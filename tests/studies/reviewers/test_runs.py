"""Judges with a model, taken from scored runs, on the same ratings as those without one."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jurygraph.errors import InputError
from jurygraph.interchange.votes import export_votes
from jurygraph.runs.run import Run
from jurygraph.schema import ComponentInput, RecordedVerdict
from jurygraph.studies.agreement import read_parts
from jurygraph.studies.reviewers import (
    RunPredictions,
    join_runs,
    predict,
    predict_after,
    read_earlier_ratings,
    read_run,
    refuse_unlike_runs,
    report,
)
from tests.judges.few_shot.reviewers import judge_use, rows, write_history
from tests.models.judge_scripts import quotable, response_in
from tests.models.server import Answer, Server, reply_with, run_server
from tests.rows import all_rows
from tests.runs.test_calls import judge_config, run_session
from tests.studies.figures import figures_of
from tests.studies.reviewers.test_baselines import to_ratings

SCORES = {"ann": (1, 2, 1, 2), "bob": (4, 5, 4, 5), "cy": (1, 5, 1, 5)}


def answer(body: dict[str, Any], number: int) -> Answer:
    """Predict 3, surely or not; the second item makes the judge fail, and the third leaves it undecided."""
    text = response_in(body)
    place = next(
        place for place, row in enumerate(rows({"ann": (1, 2, 1, 2)})) if row["text"] == text
    )
    if place == 1:
        return reply_with("no JSON")
    value = {"value": 3, "confidence": 70 if place == 0 else 90}
    if place == 2:
        value = {"value": None, "confidence": None}
    return reply_with(
        json.dumps({"score": {"reason": f"as {place}", "quotes": quotable(text), **value}})
    )


def score(folder: Path, server: Server, *uses: dict[str, Any]) -> Path:
    items = rows({"ann": (1, 2, 1, 2)})
    tasks = [
        {
            "id": row["item"],
            "query": "",
            "reviewers": list(SCORES),
            "responses": [{"id": row["item"], "text": row["text"]}],
        }
        for row in items
    ]
    path = folder.with_suffix(".jsonl")
    path.write_text("".join(json.dumps(task) + "\n" for task in tasks), encoding="utf-8")
    config = judge_config(server) | {"evaluators": list(uses), "reward": {uses[0]["use"]: 1.0}}
    run_session(folder, path, config)
    return folder


def test_answers_are_joined_and_everything_else_is_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    history = write_history(tmp_path, rows(SCORES))
    with run_server(answer) as server:
        shown = [
            judge_use(kind, history=history, shots=2, seed=4)
            for kind in ("personalized", "zero-shot")
        ]
        folder = score(tmp_path / "run", server, *shown)
    parts = read_parts([to_ratings(rows(SCORES))])
    with Run.open(folder) as run:
        read = read_run(run, panel={"min_confidence": 0.0})
        sure_predictions = read_run(run)
        lack = "has no votes, .*`--to verdicts` writes what a `model` without a name predicts"
        with pytest.raises(InputError, match=lack):
            list(export_votes(run))
    assert [(one.judge, one.shots, one.seed) for one in read] == [
        ("personalized", 2, 4),
        ("zero-shot", 0, 4),
    ]
    ((zero, personal),) = join_runs(read, parts)
    assert (zero.judge, zero.shots, personal.judge, personal.shots) == (
        "zero-shot",
        0,
        "personalized",
        2,
    )
    for one in (zero, personal):
        assert one.answered.tolist() == [True, False, False, True] * 3
        assert one.left_out == {"failed": 3, "abstained": 3}
        assert (one.values[0, 0], one.reasons[0]) == (3.0, "as 0")
    judged = to_ratings([row for row in rows(SCORES) if row["item"] in ("i0", "i1")])
    write_history(tmp_path, rows({"ann": (1, 2, 1, 1)}))
    assert read_earlier_ratings(read, judged, {}) == [], "it is not the history of the run any more"
    assert "judges without a model do not learn from it" in caplog.text
    lone_six = to_ratings(rows({**SCORES, "cy": (1, 5, 1, 6)}))
    with pytest.raises(InputError, match=r"score 6 of 'quality' is off .* write `scale: \[1, 6\]`"):
        refuse_unlike_runs(read, lone_six, parts)
    ((sure, _),) = join_runs(sure_predictions, parts)
    assert sure.left_out == {"failed": 3, "abstained": 3, "confidence below 80": 3}
    columns = [*predict(parts[0], ["item-mean"], (), 1, {}), zero, personal]
    assert (zero.is_one_draw, personal.is_one_draw) == (False, True), "no text has a query"
    result = report([(parts[0], columns)])
    assert result.conclusion[-1].startswith("personalized: all texts were judged with one draw of")
    found = figures_of(result)
    assert [(one.judge, one.n, one.coverage) for one in found.judges] == [
        ("item-mean", 6, 1.0),
        ("zero-shot", 6, 0.5),
        ("personalized", 6, 0.5),
    ]


PAPER = {"": [ComponentInput(questions=(), weights=(), reduce="majority", min_confidence=0.8)]}


def recorded(answer: tuple[float, float | None] | str) -> RecordedVerdict:
    """Return the verdict of a score and its confidence, or one with a status."""
    if answer == "unquoted":
        return recorded((1, 0.9)).model_copy(update={"unsupported": "worst-case"})
    if answer == "failed":
        return RecordedVerdict.fail("late", "late")
    if answer == "abstained":
        return RecordedVerdict(status="abstained")
    if answer == "gated":
        return RecordedVerdict(status="not_applicable", gated_by="specificity")
    score, confidence = answer
    if score == 0:  # the category does not apply, which people write down as 0
        return RecordedVerdict(
            status="not_applicable", native=0, confidence=confidence, scale=(1, 5)
        )
    return RecordedVerdict(score=(score - 1) / 4, native=score, confidence=confidence, scale=(1, 5))


def test_judges_without_a_model_learn_from_what_those_of_the_run_could(tmp_path: Path) -> None:
    """Each rating is predicted from the history alone, without what it has of the item, its group and its text."""
    history = write_history(tmp_path, rows(SCORES))
    with run_server(answer) as server:
        folder = score(tmp_path / "run", server, judge_use("personalized", history=history))
    with Run.open(folder) as run:
        read = read_run(run)
    judged = to_ratings([row for row in rows(SCORES) if row["item"] in ("i0", "i1")])
    earlier = read_earlier_ratings(read, judged, {})
    assert {(one.reviewer, one.key) for one in earlier} == {
        (name, item) for name in SCORES for item in ("i0", "i1", "i2", "i3")
    }
    baselines = (["own-history", "rater-offset"], (), 1, {})
    (part,) = read_parts([judged])
    own, _ = predict_after(earlier, judged, part, *baselines)
    assert own.values[0, :2] == pytest.approx([5 / 3, 4 / 3])
    grouped = [row | {"group": "g"} if row["item"] == "i1" else row for row in rows(SCORES)]
    of_group = to_ratings([row for row in grouped if row["item"] in ("i0", "i1")])
    (part,) = read_parts([of_group])
    examples = [
        one.model_copy(update={"group": "g"}) if one.key == "i2" else one
        for one in read_earlier_ratings(read, of_group, {})
    ]
    own, _ = predict_after(examples, of_group, part, *baselines)
    assert own.values[0, :2] == pytest.approx([5 / 3, 1.5]), "i2 is of the group of i1"
    new = to_ratings(
        [
            {"item": item, "reviewer": name, "score": score}
            for name, score in (("ann", 6.0), ("bob", 1.0))
            for item in ("copy", "new")
        ]
    )
    (part,) = read_parts([new])
    copied = read_earlier_ratings(read, new, {"copy": earlier[1].text})
    own, offset = predict_after(copied, new, part, *baselines)
    assert own.values[0, :2] == pytest.approx([4 / 3, 1.5]), "i1 has the text, and no score is new"
    lead = -9.0 / 4.0  # of ann's four scores, from the mean of the others'
    assert offset.values[0, 1] == pytest.approx(1.0 + lead), "of the others' mean of the item here"
    newcomer = to_ratings([{"item": "new", "reviewer": "zed", "score": 2.0}])
    (part,) = read_parts([newcomer])
    examples = read_earlier_ratings(read, newcomer, {})
    first_own, own = predict_after(examples, newcomer, part, ["own-history"], (2,), 1, {})
    assert np.isnan([first_own.values, own.values]).all(), "a newcomer has no score in the history"


@all_rows(
    "answers, predicted",
    [
        ([(2, 0.9), (2, 0.8), (4, 0.9)], 2.0),
        ([(0, 0.9), (0, 0.8), (3, 0.9)], 0.0),
        (["gated", "gated", "gated"], "gated"),
        ([(2, 0.9), (4, 0.79), (4, 0.5)], 2.0),
        ([(2, 0.9), (4, 0.9), (4, 0.5)], "confidence below 80"),  # else a majority
        ([(1, 0.9), (2, 0.9), (4, 0.9)], "no majority"),
        ([(1, None), (1, None), (4, 0.9)], 1.0),
        ([(2, 0.9), "failed", "failed"], "no majority"),
        ([(2, 0.9), "failed", "abstained"], "no majority"),
        ([(2, 0.9), "abstained", "abstained"], 2.0),
        ([(2, 0.1), "failed", (3, 0.2)], "no majority"),
        ([(3, 0.1), "failed", (3, 0.2)], "confidence below 80"),
        (["failed", "failed", "failed"], "failed"),
        ([], "not in the run"),
    ],
)
def test_unsure_answers_go_and_the_majority_of_three_seeds_stays(
    answers: list[Any], predicted: float | str
) -> None:
    (part,) = read_parts([to_ratings(rows({"ann": (1, 2)}))])
    cell = ("score", "ann", part.items[0])
    runs = [
        RunPredictions("run", "personalized", "m", 2, seed, {cell: [recorded(answer)]}, PAPER)
        for seed, answer in enumerate(answers)
    ]
    runs = runs or [
        RunPredictions("run", "personalized", "m", 2, 0, {("score", "ann", "other"): []})
    ]
    (((found),),) = join_runs(runs, [part])
    # what judges other items with the same seed is the same judge
    other_items = [replace(run, verdicts={("score", "ann", "i1"): []}) for run in runs]
    ((joined,),) = join_runs([*runs, *other_items], [part])
    assert (joined.fold, joined.answered[0]) == (found.fold, found.answered[0])
    assert found.absent[-1:] == ["ann on i1"]
    ((stranger,),) = join_runs(runs, read_parts([to_ratings(rows({"anne": (1, 2)}))]))
    assert stranger.left_out == {"not in the run (did you mean ann?)": 2}
    if isinstance(predicted, str):
        assert (bool(found.answered[0]), found.left_out[predicted] > 0) == (False, True)
    else:
        assert found.values[0, 0] == predicted


@all_rows(
    "reduce, least, answers, predicted, fold",
    [
        ("mean", 0.0, [(1, 0.9), (2, 0.2), (5, 0.9)], 8 / 3, "mean of 3 answers"),
        (
            "mean",
            0.5,
            [(1, 0.9), (2, 0.2), (5, 0.9)],
            3.0,
            "mean of 3 answers of a confidence from 50",
        ),
        ("mean", 0.0, [(1, 0.9), "failed", (5, 0.9)], 3.0, "mean of 3 answers"),
        ("median", 0.0, [(1, 0.9), (2, 0.2), (5, 0.9)], 2.0, "median of 3 answers"),
        ("min", 0.0, [(3, 0.9), (2, 0.2), (5, 0.9)], 2.0, "min of 3 answers"),
        ("majority", 0.0, [(1, 0.9), (2, 0.2), (5, 0.9)], None, "majority of 3 answers"),
        ("majority", 0.0, [(4, 0.1)], 4.0, ""),
        (
            "median",
            0.0,
            [(4, 0.9), "unquoted", (5, 0.9)],
            4.5,
            "median of 3 answers",
        ),
    ],
)
def test_a_prediction_is_what_the_reward_of_the_run_counts(
    reduce: Any, least: float, answers: list[Any], predicted: float | None, fold: str
) -> None:
    """Samples that differ have a mean: without a prediction, the study was of the items on which they agree."""
    (part,) = read_parts([to_ratings(rows({"ann": (1, 2)}))])
    verdicts = {("score", "ann", part.items[0]): [recorded(answer) for answer in answers]}
    use = ComponentInput(questions=(), weights=(), reduce=reduce, min_confidence=least)
    run = RunPredictions("run", "personalized", "m", 2, 0, verdicts, {"": [use]})
    (((found),),) = join_runs([run], [part])
    if predicted is None:
        assert found.left_out["no majority"] == 1
    else:
        assert found.values[0, 0] == pytest.approx(predicted)
    assert found.fold == fold


def test_a_run_of_something_else_is_refused(tmp_path: Path) -> None:
    history = write_history(tmp_path, rows(SCORES))
    with run_server(answer) as server:
        folder = score(tmp_path / "run", server, judge_use("zero-shot", history=history))
    with Run.open(folder) as run:
        read = read_run(run)
    ratings = to_ratings(rows(SCORES))
    parts = read_parts([ratings])
    with pytest.raises(
        InputError,
        match=r"also has zero-shot with 0 examples and seed 0; leave one|leave one of the runs",
    ):
        join_runs([*read, *read, *[type(one)(**vars(one)) for one in read]], parts)
    refuse_unlike_runs(read, ratings, parts)
    other_ratings = to_ratings([row | {"item": f"other {row['item']}"} for row in rows(SCORES)])
    others = read_parts([other_ratings])
    with pytest.raises(
        InputError, match=r"predicts none of the ratings.*a response needs the id of the rated item"
    ):
        refuse_unlike_runs(read, other_ratings, others)
