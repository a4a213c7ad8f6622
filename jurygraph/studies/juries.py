"""Juries over all questions of an evaluator: which judges are nearly copies, and what a smaller jury would give.

A judge is hired or dropped for a whole evaluator, so that these figures are over all its questions. What judges agree
on needs no labels of people; what stays undecided counts here as it does in the reward.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from operator import attrgetter
from statistics import fmean
from typing import NamedTuple

import numpy as np

from jurygraph.aggregation.agreement import kappa_interval
from jurygraph.inference.clusters import (
    bonferroni_interval,
    cluster_numbers,
    mean_with_cluster_interval,
    share_with_cluster_interval,
)
from jurygraph.schema.verdict import MET_THRESHOLD
from jurygraph.studies.judge import JudgeStudy, LabelledJudgement
from jurygraph.studies.judgements import Judge, Judgement, RunJudgements
from jurygraph.studies.report import Figures, IntervalCell, as_interval, group_by

ScoresByQuestion = Mapping[str, Mapping[str, Mapping[str, float]]]
"""The scores by question, judge and response."""


class _Answer(NamedTuple):
    """An answer, by its question, the reviewer for whom it is judged, if any, and its response."""

    question: str
    reviewer: str | None
    response: str


class _LabelledAnswer(NamedTuple):
    """How far from people an answer is, as a share of the scale; whether it is right, None for numbers on a scale."""

    task: str
    distance: float
    is_right: bool | None


class _Seats(NamedTuple):
    """A jury, or a part of it: one of its judges `alone`, or all `without` one of them."""

    alone: str | None
    without: str | None


_WHOLE_JURY = _Seats(None, None)


def compare_judge_pairs(
    scores_by_question: ScoresByQuestion, task_by_response: Mapping[str, str]
) -> list[Figures]:
    """Return for each two judges how many answers both gave, and which of them alone found met what was asked.

    The answers are those to all questions about all responses; a score of 0.5 or more is met. `kappa` is how far they
    agree on that beyond chance, with its interval over tasks, or groups of them.
    """
    answers = defaultdict(list)
    for scores_by_judge in scores_by_question.values():
        for first, second in combinations(sorted(scores_by_judge), 2):
            first_scores, second_scores = scores_by_judge[first], scores_by_judge[second]
            for response in sorted(first_scores.keys() & second_scores.keys()):
                is_met = [
                    scores[response] >= MET_THRESHOLD for scores in (first_scores, second_scores)
                ]
                answers[first, second].append((*is_met, task_by_response[response]))
    pairs = []
    for (first, second), rows in sorted(answers.items()):
        first_met, second_met, tasks = zip(*rows, strict=True)
        differences = np.array(first_met, dtype=int) - np.array(second_met, dtype=int)
        figures = {
            "first": first,
            "second": second,
            "both": len(rows),
            "differ": int(np.count_nonzero(differences)),
            "first_alone": int(np.count_nonzero(differences > 0)),
            "second_alone": int(np.count_nonzero(differences < 0)),
            "kappa": as_interval(kappa_interval(first_met, second_met, tasks=tasks)),
        }
        pairs.append(figures)
    return pairs


def compare_jury_judges(run: RunJudgements) -> list[Figures]:
    """Return `compare_judge_pairs` of the judges of a run's juries; an escalation has no pair that judged the same."""
    scores: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    task_by_response = {}
    for judge in _judges_of_juries(run):
        for response, judgement in run.judgements_by_judge[judge].items():
            if judge.model is not None and judgement.score is not None:
                question = f"{judge.question} {judge.reviewer or ''}"
                scores[question][judge.model][response] = judgement.score
                task_by_response[response] = judgement.task
    return [{"run": run.run, **pair} for pair in compare_judge_pairs(scores, task_by_response)]


def measure_smaller_juries(run: RunJudgements, studies: Sequence[JudgeStudy]) -> Iterator[Figures]:
    """Yield for each jury, over all questions of its evaluator, a row as it is, and one for each smaller jury.

    These are the others without one of the judges (`without`), and a judge `alone`. Of the `answers` that have a value
    that counts, `undecided` have none of their own, such as votes without a majority. `score` is the mean of what the
    reward counts, with penalties turned round, and `change` how much higher it is than that of the jury. On labels,
    what is undecided is right or wrong as it counts: `accuracy` is of those that are met or not, `farther` the mean
    distance from people, in [0, 1], less that of the jury, with an interval that allows for the number of judges.
    `cost` is of the calls of these judges, in US dollars, and `cost_share` its share of the jury's; None where a price
    is not known.
    """
    studies_by_judge = {study.judge: study for study in studies}
    by_evaluator = group_by(_judges_of_juries(run), attrgetter("evaluator"))
    for evaluator, judges in by_evaluator.items():
        by_seats = group_by(judges, lambda judge: _Seats(judge.model, judge.without))
        jury_answers = _collect_answers(run, by_seats[_WHOLE_JURY])
        labelled_answers = _collect_labelled_answers(studies_by_judge, by_seats[_WHOLE_JURY])
        folds = {str(judge.jury) for judge in by_seats[_WHOLE_JURY]}
        names = sorted({judge.model for judge in judges if judge.model is not None})
        cost_by_judge = _cost_by_judge(run, evaluator)
        jury_cost = _sum_known([cost_by_judge.get(name) for name in names])
        for seats, part in sorted(by_seats.items(), key=_seats_order):
            members = [name for name in names if seats.alone in (None, name)]
            if seats.without is not None:
                members.remove(seats.without)
            cost = _sum_known([cost_by_judge.get(name) for name in members])
            yield {
                "run": run.run,
                "evaluator": evaluator,
                "jury": " and ".join(sorted(folds)),
                "alone": seats.alone,
                "without": seats.without,
                **_score_figures(_collect_answers(run, part), jury_answers),
                **_label_figures(
                    _collect_labelled_answers(studies_by_judge, part), labelled_answers, len(names)
                ),
                "cost": cost,
                "cost_share": cost / jury_cost if jury_cost and cost is not None else None,
            }


def measure_disputes(run: RunJudgements, studies: Sequence[JudgeStudy]) -> Iterator[Figures]:
    """Yield for each judge of a jury how often it is right where the judges differ, of labels that are met or not."""
    studies_by_judge = {study.judge: study for study in studies}
    rows_by_answer: dict[tuple[str, _Answer], dict[str, LabelledJudgement]] = defaultdict(dict)
    for judge in _judges_of_juries(run):
        study = studies_by_judge.get(judge)
        if study is not None and study.has_binary_labels and judge.model is not None:
            for row in study.rows:
                answer = _Answer(judge.question, judge.reviewer, row.response)
                rows_by_answer[judge.evaluator, answer][judge.model] = row
    hits = defaultdict(list)
    for (evaluator, _), rows in rows_by_answer.items():
        if len({row.prediction for row in rows.values()}) > 1:
            for name, row in rows.items():
                hits[evaluator, name].append((row.distance == 0.0, row.task))
    for (evaluator, name), results in sorted(hits.items()):
        is_right, tasks = zip(*results, strict=True)
        yield {
            "run": run.run,
            "evaluator": evaluator,
            "judge": name,
            "differ": len(results),
            "right": sum(is_right),
            "share": as_interval(share_with_cluster_interval(is_right, cluster_numbers(tasks))),
        }


def _judges_of_juries(run: RunJudgements) -> list[Judge]:
    """Return the juries of a run, without one of their judges, too, and these judges; of an escalation none."""
    questions = {
        (judge.evaluator, judge.question)
        for judge in run.judgements_by_judge
        if judge.jury is not None and judge.jury.fold != "escalation"
    }
    return [
        judge
        for judge in run.judgements_by_judge
        if (judge.evaluator, judge.question) in questions and (judge.jury or judge.model)
    ]


def _seats_order(item: tuple[_Seats, object]) -> tuple[bool, str, str]:
    """Return the place of a part of a jury: the whole first, then without a judge, then a judge alone."""
    alone, without = item[0]
    return alone is not None, without or "", alone or ""


def _collect_answers(run: RunJudgements, judges: Sequence[Judge]) -> dict[_Answer, Judgement]:
    answers = {}
    for judge in judges:
        for response, judgement in run.judgements_by_judge[judge].items():
            answers[_Answer(judge.question, judge.reviewer, response)] = judgement
    return answers


def _collect_labelled_answers(
    studies_by_judge: Mapping[Judge, JudgeStudy], judges: Sequence[Judge]
) -> dict[_Answer, _LabelledAnswer]:
    answers = {}
    for judge in judges:
        study = studies_by_judge.get(judge)
        if study is None or study.is_compared_by_rank:
            continue
        low, high = study.scale
        for row in (*study.rows, *study.unsupported, *study.undecided):
            answers[_Answer(judge.question, judge.reviewer, row.response)] = _LabelledAnswer(
                row.task,
                row.distance / (high - low),
                row.distance == 0.0 if study.has_binary_labels else None,
            )
    return answers


def _score_figures(
    answers: Mapping[_Answer, Judgement], jury_answers: Mapping[_Answer, Judgement]
) -> Figures:
    values = []
    changes = []
    undecided_count = 0
    for answer, jury_judgement in jury_answers.items():
        judgement = answers.get(answer)
        if judgement is None or judgement.value is None or jury_judgement.value is None:
            continue
        direction = jury_judgement.direction
        undecided_count += judgement.score is None and judgement.status != "gated"
        values.append(judgement.value if direction > 0 else 1.0 - judgement.value)
        changes.append(direction * (judgement.value - jury_judgement.value))
    return {
        "answers": len(values),
        "undecided": undecided_count,
        "score": fmean(values) if values else None,
        "change": fmean(changes) if changes else None,
    }


def _label_figures(
    answers: Mapping[_Answer, _LabelledAnswer],
    jury_answers: Mapping[_Answer, _LabelledAnswer],
    judge_count: int,
) -> Figures:
    decisions = [answer.is_right for answer in answers.values() if answer.is_right is not None]
    gaps = []
    tasks = []
    for answer, labelled_answer in jury_answers.items():
        if answer in answers:
            gaps.append(answers[answer].distance - labelled_answer.distance)
            tasks.append(labelled_answer.task)
    farther = mean_with_cluster_interval(gaps, cluster_numbers(tasks))
    return {
        "labels": len(gaps),
        "accuracy": fmean(decisions) if decisions else None,
        "farther": farther
        and IntervalCell(farther.value, *bonferroni_interval(farther, judge_count)),
    }


def _cost_by_judge(run: RunJudgements, evaluator: str) -> dict[str, float | None]:
    costs = {}
    for (name, judge), calls in run.call_costs.items():
        if name == evaluator:
            costs[judge] = _sum_known(calls.values())
    return costs


def _sum_known(costs: Collection[float | None]) -> float | None:
    """Return the sum of costs; None if one is not known."""
    known_costs = [cost for cost in costs if cost is not None]
    return sum(known_costs) if len(known_costs) == len(costs) else None
