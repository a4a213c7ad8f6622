"""Juries over all questions of an evaluator: which judges are nearly copies, and what a smaller jury would give.

A judge is hired or dropped for a whole evaluator, so that these figures are over all its questions. What judges agree
on needs no labels of people; what stays undecided counts here as it does in the reward.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from jurygraph.aggregation.agreement import kappa_interval
from jurygraph.inference.clusters import (
    bonferroni_interval,
    cluster_numbers,
    mean_with_cluster_interval,
)
from jurygraph.inference.crossed import t_test_p
from jurygraph.runs.reports.summary import mean_without_none
from jurygraph.schema.verdict import MET_THRESHOLD
from jurygraph.studies.judge import JudgeStudy, LabelledJudgement
from jurygraph.studies.judgements import (
    ESCALATION,
    UNDECIDED_STATUSES,
    Judge,
    Judgement,
    RunJudgements,
)
from jurygraph.studies.report import Figures, as_interval, group_by


class JudgeScore(NamedTuple):
    """The score that a judge gives a response on a question; `task` may be the group of tasks that it belongs to."""

    question: str
    response: str
    task: str
    judge: str
    score: float


_AnswerKey = tuple[str, str | None, str]
"""An answer by its question, the reviewer for whom it is judged, if any, and its response."""


class _Answer(NamedTuple):
    """A judgement with what counts for it beside people's label, in units of the label; None without one."""

    judgement: Judgement
    labelled: LabelledJudgement | None
    study: JudgeStudy | None


_LEFT_OUT_STATUSES = ("missing", "not_applicable")
_NO_ANSWER = _Answer(Judgement("", "missing"), None, None)


def compare_judge_pairs(scores: Iterable[JudgeScore]) -> list[Figures]:
    """Return for each two judges how many answers both gave, and which of them alone found met what was asked.

    The answers are those to all questions about all responses; a score of 0.5 or more is met. `kappa` is how far they
    agree on that beyond chance, with its interval over tasks, or groups of them.
    """
    answers = defaultdict(list)
    for scores_of_answer in group_by(scores, attrgetter("question", "response")).values():
        scores_of_answer.sort(key=attrgetter("judge"))
        for first, second in combinations(scores_of_answer, 2):
            answers[first.judge, second.judge].append((first.score, second.score, first.task))
    pairs = []
    for (first_judge, second_judge), rows in sorted(answers.items()):
        first_scores, second_scores, tasks = map(np.array, zip(*rows, strict=True))
        first_met = first_scores >= MET_THRESHOLD
        second_met = second_scores >= MET_THRESHOLD
        pairs.append(
            {
                "first": first_judge,
                "second": second_judge,
                "both": len(rows),
                "differ": (first_met != second_met).sum(),
                "first_alone": (first_met > second_met).sum(),
                "second_alone": (first_met < second_met).sum(),
                "kappa": as_interval(kappa_interval(first_met, second_met, tasks=tasks)),
            }
        )
    return pairs


def compare_jury_judges(
    run: RunJudgements, studies: Sequence[JudgeStudy] = ()
) -> Iterator[Figures]:
    """Yield `compare_judge_pairs` of the judges of a run's juries, for whichever reviewer they judge, with the errors
    that two share by labels that are met or not, where both answered.

    Not of an escalation, whose last judge answers only what is hard. Of the `labelled`, `both_wrong` is how many both
    have wrong, `by_chance` how many that would be were they independent among equal labels, and `p` how probable as
    many then are (over tasks, whose responses are alike; one-sided, Bonferroni over pairs).
    """
    escalated = {
        judge.question
        for judge in run.judgements_by_judge
        if judge.jury is not None and judge.jury.fold == ESCALATION
    }
    scores = []
    studies_by_judge = {study.judge: study for study in studies if study.has_binary_labels}
    labelled_rows: dict[str | None, dict[_AnswerKey, LabelledJudgement]] = defaultdict(dict)
    for judge in _judges_of_juries(run):
        if judge.question in escalated:
            continue
        study = studies_by_judge.get(judge)
        for row in study.rows if study is not None else ():
            labelled_rows[judge.model][judge.question, judge.reviewer, row.response] = row
        question = f"{judge.question} {judge.reviewer or ''}"
        for response, judgement in run.judgements_by_judge[judge].items():
            if judge.model is not None and judgement.score is not None:
                scores.append(
                    JudgeScore(question, response, judgement.task, judge.model, judgement.score)
                )
    pairs = compare_judge_pairs(scores)
    for pair in pairs:
        errors = _compare_errors(labelled_rows[pair["first"]], labelled_rows[pair["second"]])
        p = min(1.0, errors["p"] * len(pairs))
        yield {"run": run.run, **pair, **errors, "p": p}


def _compare_errors(
    first_rows: Mapping[_AnswerKey, LabelledJudgement],
    second_rows: Mapping[_AnswerKey, LabelledJudgement],
) -> Figures:
    """Return the errors that two judges share; those of each are counted apart among equal labels, so that two strict
    judges are no copies."""
    rows_by_label = group_by(
        [(row, second_rows[key]) for key, row in first_rows.items() if key in second_rows],
        lambda rows: rows[0].target,
    )
    counts = np.zeros(4)
    excesses: list[float] = []
    tasks: list[str] = []
    for rows in rows_by_label.values():
        wrong = np.array([[first.distance > 0.0, second.distance > 0.0] for first, second in rows])
        counts += [len(rows), *wrong.sum(axis=0), wrong.all(axis=1).sum()]
        excesses += (wrong - wrong.mean(axis=0)).prod(axis=1).tolist()
        tasks += [first.task for first, _ in rows]
    labelled, first_wrong, second_wrong, both_wrong = map(int, counts)
    p = None
    if sum(excesses) > 0.0:
        p = t_test_p(mean_with_cluster_interval(excesses, cluster_numbers(tasks)))
    return {
        "labelled": labelled,
        "first_wrong": first_wrong,
        "second_wrong": second_wrong,
        "both_wrong": both_wrong,
        "by_chance": both_wrong - math.fsum(excesses),
        "p": 1.0 if p is None else p / 2.0,
    }


def measure_smaller_juries(run: RunJudgements, studies: Sequence[JudgeStudy]) -> Iterator[Figures]:
    """Yield for each jury, over all questions of its evaluator, a row as it is, and one for each smaller jury.

    These are a judge `alone`, and the others `without` one of the judges; an escalation has no smaller one. `judges`
    has the names, and `position` is that of the evaluator in the config. Of the `answers` that both value, `undecided`
    have no value of their own, such as votes without a majority, or a single judge that failed; in every row these
    count as in the reward. `score` is the share that counts as met, with
    penalties turned round, and `change` how much higher it is than that of the jury. On labels, what is undecided is
    right or wrong as it counts: `accuracy` is of those that are met or not, `farther` the mean distance from people, in
    [0, 1], less that of the jury, with an interval that allows for the number of judges, and `alike` whether no
    distance differs. `cost` is of the calls of these judges, in US dollars, `cost_per_1000` what 1,000 responses would
    cost, and `cost_share` the share of the jury's; None where a price is not known.
    """
    by_evaluator = group_by(_judges_of_juries(run), attrgetter("evaluator"))
    for evaluator, judges in by_evaluator.items():
        parts = group_by(judges, attrgetter("model", "without"))
        whole_jury = parts[None, None]
        jury_name = " and ".join(sorted({str(judge.jury) for judge in whole_jury}))
        names = sorted({judge.model for judge in judges if judge.model is not None})
        costs = {name: run.costs.get((evaluator, name), 0.0) for name in names}
        jury_cost = sum(costs.values())
        jury_answers = _collect_answers(run, whole_jury, studies)
        response_count = len({response for _, _, response in jury_answers})
        for (alone, without), part in parts.items():
            members = [name for name in names if name != without and alone in (None, name)]
            cost = sum(costs[name] for name in members)
            if alone is not None and ESCALATION in jury_name:
                continue  # the last judge had only what is hard
            is_priced = not math.isnan(cost)
            yield {
                "run": run.run,
                "evaluator": evaluator,
                "jury": jury_name,
                "alone": alone,
                "without": without,
                "judges": members,
                "position": run.evaluators.index(evaluator),
                **_compare_answers(_collect_answers(run, part, studies), jury_answers, len(names)),
                "cost": cost if is_priced else None,
                "cost_per_1000": 1000.0 * cost / response_count if is_priced else None,
                "cost_share": cost / jury_cost if is_priced and jury_cost > 0.0 else None,
            }


def _judges_of_juries(run: RunJudgements) -> list[Judge]:
    """Return the juries of a run, without one of their judges, too, and these judges."""
    questions = {
        (judge.evaluator, judge.question)
        for judge in run.judgements_by_judge
        if judge.jury is not None
    }
    return [
        judge
        for judge in run.judgements_by_judge
        if (judge.evaluator, judge.question) in questions and (judge.jury or judge.model)
    ]


def _collect_answers(
    run: RunJudgements, judges: Sequence[Judge], studies: Sequence[JudgeStudy]
) -> dict[_AnswerKey, _Answer]:
    studies_by_judge = {study.judge: study for study in studies if not study.is_compared_by_rank}
    answers = {}
    for judge in judges:
        study = studies_by_judge.get(judge)
        labelled_rows = {}
        if study is not None:
            rows = (*study.rows, *study.unsupported, *study.undecided)
            labelled_rows = {row.response: row for row in rows}
        for response, judgement in run.judgements_by_judge[judge].items():
            key = judge.question, judge.reviewer, response
            answers[key] = _Answer(judgement, labelled_rows.get(response), study)
    return answers


def _compare_answers(
    answers: Mapping[_AnswerKey, _Answer],
    jury_answers: Mapping[_AnswerKey, _Answer],
    judge_count: int,
) -> Figures:
    scores = []
    changes = []
    undecided_count = 0
    are_right = []
    gaps = []
    tasks = []
    for key, (jury_judgement, jury_labelled, study) in jury_answers.items():
        judgement, labelled, _ = answers.get(key, _NO_ANSWER)
        if jury_judgement.value is None or judgement.status in _LEFT_OUT_STATUSES:
            continue
        if judgement.value is None:  # by the rule of the reward, as for a jury
            judgement = judgement._replace(counted=jury_judgement.unjudged)
            if jury_labelled is not None and study is not None:
                labelled = _place_unjudged(jury_labelled, jury_judgement.unjudged, study)
        score, jury_score = (
            float(judged.counts_as_met != jury_judgement.is_fault)
            for judged in (judgement, jury_judgement)
        )
        scores.append(score)
        changes.append(score - jury_score)
        undecided_count += judgement.status in UNDECIDED_STATUSES
        if labelled is not None and jury_labelled is not None and study is not None:
            gaps.append((labelled.distance - jury_labelled.distance) / study.span)
            tasks.append(labelled.task)
            if study.has_binary_labels:
                are_right.append(labelled.distance == 0.0)
    farther = mean_with_cluster_interval(gaps, cluster_numbers(tasks))
    gap = None
    if farther is not None:
        ends = bonferroni_interval(farther, judge_count)
        gap = as_interval(farther._replace(low=ends[0], high=ends[1]).within(-1.0, 1.0))
    return {
        "answers": len(scores),
        "undecided": undecided_count,
        "score": mean_without_none(scores),
        "change": mean_without_none(changes),
        "labels": len(gaps),
        "alike": not any(gaps),
        "accuracy": mean_without_none(are_right),
        "farther": gap,
    }


def _place_unjudged(
    labelled: LabelledJudgement, unjudged: float, study: JudgeStudy
) -> LabelledJudgement:
    """Return a labelled response with what counts where nobody answers, in units of the label."""
    share = 1.0 - unjudged if study.is_fault else unjudged
    return labelled._replace(prediction=study.scale[0] + share * study.span)
