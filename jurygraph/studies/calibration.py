"""Calibration of a question's scores by people's labels: its map, and what it gains on labels that it has not seen.

The map is isotonic (Zadrozny & Elkan 2002) or logistic in the log odds of the score (Platt 1999). Each labelled
response is compared with the map of the other folds of tasks, so that a map that remembers its labels gains nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jurygraph.arrays import Floats, Ints
from jurygraph.decision.table import apply_calibration
from jurygraph.errors import InputError
from jurygraph.inference.clusters import mean_with_cluster_interval, share_with_cluster_interval
from jurygraph.messages import quote, suggest_known_name
from jurygraph.schema import CalibrationMethod, ScoreCalibration
from jurygraph.studies.judge import JudgeStudy
from jurygraph.studies.judge_report import reliability
from jurygraph.studies.judgements import describe_question_name_problem, find_questions_by_name
from jurygraph.studies.report import Figures, IntervalCell, Report, ReportSection, ReportTable

FOLD_COUNT = 5
_MIN_CALIBRATION_TASKS = 2 * FOLD_COUNT
_MAX_KNOTS = 1000
_SCORE_GRID = np.linspace(0.0, 1.0, 101)
"""Knots of a logistic map, and thresholds that are tried for a gate."""
_ODDS_OFFSET = 0.01
"""Added to both sides of the odds, so that those of a score of 0 or 1 are finite."""
_MAX_RISK_ABOVE_RATE = 0.05
"""Probability that the rate of false positives is above what a threshold promises."""


class LabelledScores(NamedTuple):
    """Scores of a question and labels of people, both in [0, 1], and the numbers of their tasks, [n] each."""

    question: str
    scores: Floats
    targets: Floats
    tasks: Ints
    has_binary_targets: bool = True


def labelled_scores(studies: Sequence[JudgeStudy], question: str) -> LabelledScores:
    """Return the labelled scores of all judges of a question, of whose id the last part is enough.

    Raises InputError for an unknown or ambiguous one, or few tasks.
    """
    questions = list(dict.fromkeys(study.judge.question for study in studies))
    matching_questions = find_questions_by_name(question, questions)
    if len(matching_questions) != 1:
        problem = (
            f"no question {quote(question)} has labels; {suggest_known_name(question, questions)}"
        )
        if matching_questions:
            problem = describe_question_name_problem(question, matching_questions, questions)
        raise InputError(f"--calibrate: {problem}")
    (question,) = matching_questions
    chosen = [
        study for study in studies if study.judge.question == question and not study.judge.jury
    ]
    if any(study.is_compared_by_rank for study in chosen):
        raise InputError(
            f"--calibrate: labels of {quote(question)} are on another scale than its scores; write them as true, "
            "false, or shares from 0 to 1"
        )
    task_ids = []
    scores = []
    targets = []
    for study in chosen:
        task_ids += [row.task for row in study.rows]
        scores += [row.score for row in study.rows]
        targets += [study.scale_target_to_unit(row.target) for row in study.rows]
    names, tasks = np.unique(task_ids, return_inverse=True)
    if len(names) < _MIN_CALIBRATION_TASKS:
        raise InputError(
            f"--calibrate: {quote(question)} has labelled scores in {len(names)} tasks, too few for {FOLD_COUNT} "
            f"folds; label responses of {_MIN_CALIBRATION_TASKS} tasks at least"
        )
    has_binary_targets = all(study.has_binary_labels for study in chosen)
    return LabelledScores(question, np.array(scores), np.array(targets), tasks, has_binary_targets)


def fit_calibration(scores: Floats, targets: Floats, method: CalibrationMethod) -> ScoreCalibration:
    """Return the map from scores [n] to the mean of targets [n], both in [0, 1], that never falls."""
    fit = _fit_isotonic if method == "isotonic" else _fit_platt
    knots, values = np.clip(fit(scores, targets), 0.0, 1.0).tolist()
    return ScoreCalibration(method=method, labels=len(scores), scores=knots, calibrated=values)


def _fit_isotonic(scores: Floats, targets: Floats) -> tuple[Floats, Floats]:
    """Return both ends of each block of pooled adjacent violators, and their values."""
    from scipy.optimize import isotonic_regression

    knots, knot_indices = np.unique(scores, return_inverse=True)
    counts = np.bincount(knot_indices).astype(np.float64)
    means = np.bincount(knot_indices, targets) / counts
    regression = isotonic_regression(means, weights=counts)
    values = np.maximum.accumulate(regression.x)
    is_plateau_start = np.diff(values, prepend=-1.0) > 0.0
    is_plateau_end = np.diff(values, append=2.0) > 0.0
    ends = np.flatnonzero(is_plateau_start | is_plateau_end)
    spaced_indices = np.linspace(0, len(ends) - 1, min(len(ends), _MAX_KNOTS)).astype(int)
    kept_knot_indices = ends[np.unique(spaced_indices)]
    return knots[kept_knot_indices], values[kept_knot_indices]


def _fit_platt(scores: Floats, targets: Floats) -> tuple[Floats, Floats]:
    """Return the knots of 1 / (1 + exp(-(a · log odds + b))), a >= 0, fitted to targets smoothed as Platt's are."""
    from scipy.optimize import minimize
    from scipy.special import expit

    positive_count = targets.sum()
    negative_count = len(targets) - positive_count
    smoothed_targets = targets * (positive_count + 1.0) / (positive_count + 2.0) + (
        1.0 - targets
    ) / (negative_count + 2.0)
    log_odds = _log_odds(scores)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        logits = parameters[0] * log_odds + parameters[1]
        errors = expit(logits) - smoothed_targets
        gradient = np.array([(errors * log_odds).mean(), errors.mean()])
        losses = np.logaddexp(0.0, logits) - smoothed_targets * logits
        return float(losses.mean()), gradient

    bounds = [(0.0, None), (None, None)]
    minimum = minimize(loss, [1.0, 0.0], jac=True, method="L-BFGS-B", bounds=bounds)
    slope, offset = minimum.x
    values = expit(slope * _log_odds(_SCORE_GRID) + offset)
    return _SCORE_GRID, np.maximum.accumulate(values)


def _log_odds(scores: Floats) -> Floats:
    return np.log((scores + _ODDS_OFFSET) / (1.0 - scores + _ODDS_OFFSET))


def cross_fit_calibration(
    labelled_scores: LabelledScores, method: CalibrationMethod, seed: int
) -> tuple[Floats, Floats]:
    """Return each score calibrated by, and the mean target of, the tasks in other folds; [n] each."""
    order = np.random.default_rng(seed).permutation(labelled_scores.tasks.max() + 1)
    folds = order[labelled_scores.tasks] % FOLD_COUNT
    calibrated = np.empty_like(labelled_scores.scores)
    constant = np.empty_like(labelled_scores.scores)
    for fold in range(FOLD_COUNT):
        is_in_fold = folds == fold
        calibration = fit_calibration(
            labelled_scores.scores[~is_in_fold], labelled_scores.targets[~is_in_fold], method
        )
        calibrated[is_in_fold] = apply_calibration(labelled_scores.scores[is_in_fold], calibration)
        constant[is_in_fold] = labelled_scores.targets[~is_in_fold].mean()
    return calibrated, constant


def find_gate_threshold(
    labelled_scores: LabelledScores, calibration: ScoreCalibration, rate: float
) -> dict[str, float] | None:
    """Return the lowest threshold of scores calibrated by a map that is shown to pass `rate` of what people reject.

    Thresholds are tried from 1 downwards until the upper 95 % bound (Clopper & Pearson 1934, with the effective number
    of responses) is above the rate. One below the first whose true rate is too high passes all that this one does, and
    is refused with it, so trying several costs nothing. None if those that are shown pass no response.

    The map is the one that the gate will use, although the labels fitted it: it never falls, so that it only names
    cuts of the scores, and what passes depends on these alone. With maps of other folds a part of the responses with
    one score passes, and their rate is not that of the gate.
    """
    from scipy.stats import beta

    calibrated = apply_calibration(labelled_scores.scores, calibration)
    has_negative_label = labelled_scores.targets < 0.5
    tasks = labelled_scores.tasks[has_negative_label]
    lowest = None
    for threshold in _SCORE_GRID[::-1].tolist():
        passes = calibrated >= threshold
        share = share_with_cluster_interval(passes[has_negative_label], tasks)
        if share is None or share.value == 1.0:
            break
        hits = share.value * share.effective
        upper_confidence_bound = float(
            beta.ppf(1.0 - _MAX_RISK_ABOVE_RATE, hits + 1.0, share.effective - hits)
        )
        if upper_confidence_bound > rate:
            break
        if passes.any():
            lowest = {
                "threshold": threshold,
                "false_positives": share.value,
                "at_most": upper_confidence_bound,
                "passed": passes.mean(),
            }
    return lowest


def report(
    labelled_scores: LabelledScores,
    method: CalibrationMethod,
    seed: int = 0,
    rate: float | None = None,
) -> tuple[ScoreCalibration, Report]:
    """Fit a question's map to all labels, and report what maps of the other folds gain on each.

    Figures are the squared error (of true and false: the Brier score) and, unless all scores are 0 or 1, ECE of the
    scores as they are, calibrated, and of a constant; the `gain` is the first error less the second, over tasks. With
    `rate` there is a `gate`.
    """
    question, scores_as_judged, targets, tasks, has_binary_targets = labelled_scores
    calibrated, constant = cross_fit_calibration(labelled_scores, method, seed)
    calibration = fit_calibration(scores_as_judged, targets, method)
    values = {"as judged": scores_as_judged, "calibrated": calibrated, "constant": constant}
    has_graded_scores = not np.isin(scores_as_judged, (0.0, 1.0)).all()
    errors = {}
    rows = {}
    for name, scores in values.items():
        errors[name] = (scores - targets) ** 2
        rows[name] = {
            "error": _mean_over_tasks(errors[name], tasks),
            "ece": None,
            "mean": scores.mean(),
        }
        if has_graded_scores:
            rows[name]["ece"] = reliability(scores, targets, tasks)[0]
    gain = _mean_over_tasks(errors["as judged"] - errors["calibrated"], tasks)
    figures: Figures = {
        "question": question,
        "method": method,
        "seed": seed,
        "labels": len(scores_as_judged),
        "tasks": int(tasks.max()) + 1,
        "rows": rows,
        "gain": gain,
        "digest": calibration.digest,
        "gate": None,
    }
    cells = [[name, *row.values()] for name, row in rows.items()]
    cells.append(["gain", gain, None, None])
    sections: list[ReportSection] = [
        f"{question}: {method} map of {figures['labels']} labels in {figures['tasks']} tasks, each "
        "with the map of other tasks",
        ReportTable(["scores", "squared error", "ECE", "mean"], cells),
    ]
    if rate is not None:
        if has_binary_targets:
            figures["gate"] = find_gate_threshold(labelled_scores, calibration, rate)
        sections.append(_describe_gate(figures["gate"], rate))
    notes = []
    if gain.low is None or gain.low <= 0.0:
        notes.append(
            f"{question}: no gain is shown; keep the scores as they are, or label more responses"
        )
    return calibration, Report(figures, sections, notes)


def _mean_over_tasks(values: Floats, tasks: Ints) -> IntervalCell:
    interval = mean_with_cluster_interval(values, tasks)
    assert interval is not None, "there are tasks"
    return IntervalCell(interval.value, interval.low, interval.high)


def _describe_gate(gate: dict[str, float] | None, rate: float) -> str:
    if gate is None:
        needed_task_count = int(np.ceil(np.log(_MAX_RISK_ABOVE_RATE) / np.log1p(-rate)))
        return (
            f"gate: no threshold passes anything, and is shown to pass at most {rate:g} of what people reject; that "
            f"takes labels of true or false, {needed_task_count} tasks with a rejected response, and a judge who tells"
        )
    return (
        "gate: below {threshold:.2f}; passes {passed:.4f} of all, and {false_positives:.4f} of what people reject, "
        "at most {at_most:.4f} with 95 % confidence".format(**gate)
    )
