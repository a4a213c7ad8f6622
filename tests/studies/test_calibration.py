"""Calibration by labels: maps by hand and of simulated judges, no gain by memory, thresholds that keep a promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.arrays import Floats
from jurygraph.decision.table import apply_calibration
from jurygraph.errors import InputError
from jurygraph.schema import CalibrationMethod, ScoreCalibration
from jurygraph.studies.calibration import (
    LabelledScores,
    cross_fit_calibration,
    find_gate_threshold,
    fit_calibration,
    labelled_scores,
    report,
)
from jurygraph.studies.judge import JudgeStudy, LabelledJudgement
from jurygraph.studies.judgements import Judge
from tests.rows import all_rows

IDENTITY = ScoreCalibration(method="isotonic", labels=1, scores=(0.0, 1.0), calibrated=(0.0, 1.0))
METHODS: tuple[CalibrationMethod, ...] = ("isotonic", "platt")


def judged(
    scores: Floats, chances: Floats, rng: np.random.Generator, size: int = 1
) -> LabelledScores:
    """Responses whose labels are true with these chances, `size` of them to a task."""
    targets = (rng.random(len(scores)) < chances).astype(np.float64)
    return LabelledScores("q", scores, targets, np.arange(len(scores)) // size)


def test_violators_are_pooled_and_the_map_is_linear_between_knots() -> None:
    """The labels 0, 1, 0, 1 at .1, .2, .3, .9: the middle two are one block of 1/2."""
    fitted = fit_calibration(
        np.array([0.1, 0.2, 0.3, 0.9]), np.array([0.0, 1.0, 0.0, 1.0]), "isotonic"
    )
    assert (fitted.scores, fitted.calibrated) == ((0.1, 0.2, 0.3, 0.9), (0.0, 0.5, 0.5, 1.0))
    assert apply_calibration(
        np.array([0.0, 0.15, 0.25, 0.6, 1.0]), fitted
    ).tolist() == pytest.approx([0.0, 0.25, 0.5, 0.75, 1])


units = st.floats(0.0, 1.0)


@given(
    st.lists(st.tuples(units, units), min_size=1, max_size=12),
    st.lists(units, min_size=2, max_size=9),
)
def test_a_map_never_falls_and_stays_between_its_ends(
    knots: list[tuple[float, float]], scores: list[float]
) -> None:
    rising = sorted({score for score, _ in knots})
    values = sorted(value for _, value in knots)[: len(rising)]
    fitted = ScoreCalibration(
        method="isotonic", labels=1, scores=tuple(rising), calibrated=tuple(values)
    )
    found = apply_calibration(np.sort(np.array(scores)), fitted)
    assert (np.diff(found) >= 0.0).all()
    assert values[0] <= found.min() <= found.max() <= values[-1]


@all_rows("method", METHODS)
def test_the_calibration_of_a_simulated_judge_is_found(method: CalibrationMethod) -> None:
    """A judge who is too sure: of what it gives odds o, people accept with odds √o / 2."""
    rng = np.random.default_rng(1)
    scores = rng.uniform(0.02, 0.98, 4000)
    chances = 1.0 / (1.0 + 2.0 / np.sqrt(scores / (1.0 - scores)))
    fitted, found = report(judged(scores, chances, rng), method)
    assert np.abs(apply_calibration(scores, fitted) - chances).mean() < 0.03
    figures = found.to_json()
    assert figures["gain"]["low"] > 0.0
    assert figures["rows"]["calibrated"]["ece"] < 0.03 < figures["rows"]["as judged"]["ece"]
    assert found.notes == []


@all_rows("method", METHODS)
def test_a_calibrated_judge_gains_nothing(method: CalibrationMethod) -> None:
    rng = np.random.default_rng(2)
    shown = 0
    for _ in range(20):
        scores = rng.random(300)
        gain = report(judged(scores, scores, rng), method)[1].to_json()["gain"]
        shown += gain["low"] > 0.0
    assert shown <= 2  # 2.5 % of 20, with 98 % Monte-Carlo bounds


def test_planted_identities_gain_nothing() -> None:
    """The score of a task names it, and its label is drawn: a map can only remember, and no label sees its own map."""
    rng = np.random.default_rng(3)
    tasks = np.repeat(np.arange(100), 3)
    labelled = LabelledScores(
        "q", rng.random(100)[tasks], (rng.random(100) < 0.5)[tasks] * 1.0, tasks
    )
    unfolded = apply_calibration(
        labelled.scores, fit_calibration(labelled.scores, labelled.targets, "isotonic")
    )
    calibrated, constant = cross_fit_calibration(labelled, "isotonic", 0)
    seen, unseen, least = (
        ((one - labelled.targets) ** 2).mean() for one in (unfolded, calibrated, constant)
    )
    assert seen < 0.25 < least <= unseen


def test_a_threshold_keeps_its_promise_on_responses_to_come() -> None:
    """Of 200 judges at most 5 % let more through, with 99 % Monte-Carlo bounds; a task has 2 responses."""
    rng = np.random.default_rng(4)
    broken = 0
    found = 0
    for _ in range(200):
        is_good = rng.random(400) < 0.5
        scores = np.clip(rng.normal(np.where(is_good, 0.65, 0.35), 0.15), 0.0, 1.0)
        labelled = LabelledScores("q", scores, is_good * 1.0, np.arange(400) // 2)
        gate = find_gate_threshold(labelled, IDENTITY, 0.05)
        if gate is not None:
            found += 1
            to_come = np.clip(rng.normal(0.35, 0.15, 20000), 0.0, 1.0)
            broken += (to_come >= gate["threshold"]).mean() > 0.05
            assert gate["false_positives"] < gate["at_most"] <= 0.05
    assert found > 190
    assert broken <= 18


def test_a_level_passes_as_a_whole() -> None:
    """People reject a tenth of the responses with a score of .5: by a map of other folds, some of them would pass."""
    scores = np.repeat([0.0, 0.5, 1.0], 400)
    targets = np.concatenate([np.zeros(400), np.arange(400) % 10 != 0, np.ones(400)]).astype(
        np.float64
    )
    order = np.random.default_rng(5).permutation(len(scores))
    labelled = LabelledScores("q", scores[order], targets[order], np.arange(len(scores)))
    for rate, passed in ((0.05, 1 / 3), (0.15, 2 / 3)):
        gate = report(labelled, "isotonic", rate=rate)[1].figures["gate"]
        assert gate["passed"] == pytest.approx(passed)
        assert gate["false_positives"] == pytest.approx(0.0 if passed < 0.5 else 40 / 440)


def test_too_few_tasks_promise_nothing() -> None:
    """No wrong one of 58 tasks is consistent with 5.03 %, and of 59 with 4.95 %: 1 - .05^(1/n)."""
    for negatives, expected in ((58, None), (59, 0.05)):
        targets = np.concatenate([np.zeros(negatives), np.ones(20)])
        labelled = LabelledScores("q", targets, targets, np.arange(len(targets)))
        gate = find_gate_threshold(labelled, IDENTITY, 0.05)
        assert (None if gate is None else round(gate["at_most"], 2)) == expected


def test_a_threshold_that_passes_nothing_is_none() -> None:
    """A judge whose scores are equal passes all or nothing."""
    labelled = LabelledScores("q", np.full(400, 0.4), np.arange(400) % 2 * 1.0, np.arange(400) // 2)
    assert find_gate_threshold(labelled, IDENTITY, 0.05) is None


def test_a_question_without_labels_or_with_few_tasks_is_refused() -> None:
    rows = [LabelledJudgement(f"r{n}", f"t{n % 4}", 1.0, 1.0, 0.9) for n in range(40)]
    study = JudgeStudy(Judge("run", "q@kind", "q"), True, rows)
    with pytest.raises(InputError, match=r"no question 'q@kid' has labels; did you mean q@kind\?"):
        labelled_scores([study], "q@kid")
    for name in ("q@kind", "kind"):
        with pytest.raises(InputError, match="'q@kind' has labelled scores in 4 tasks, too few"):
            labelled_scores([study], name)


def test_targets_of_a_scale_are_its_shares() -> None:
    rows = [LabelledJudgement(f"r{n}", f"t{n}", 1.0 + n % 5, 3.0, 0.5) for n in range(20)]
    labelled = labelled_scores(
        [JudgeStudy(Judge("run", "q", "q"), False, rows, scale=(1.0, 5.0))], "q"
    )
    assert sorted(set(labelled.targets.tolist())) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert "needs" not in str(report(labelled, "platt", rate=0.05)[1].figures["gate"])
