"""How far the rewards and scores of a run would repeat: their variance by task, response and sample of the judge."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from statistics import fmean

import numpy as np

from jurygraph.aggregation.agreement import alpha_interval
from jurygraph.display import ProgressCallback, ignore_progress
from jurygraph.errors import InputError
from jurygraph.inference.clusters import Estimate, mean_with_cluster_interval
from jurygraph.inference.variance import reliability, split_variance
from jurygraph.runs.reports.units import SINGULAR_UNIT_LABELS, unit_name_of_task, units_label
from jurygraph.runs.run import Run
from jurygraph.schema import Trace
from jurygraph.studies import symbols
from jurygraph.studies.conclusions import conclude_reliability
from jurygraph.studies.judgements import counted_score, uses_of_samples
from jurygraph.studies.juries import JudgeScore, compare_judge_pairs
from jurygraph.studies.report import (
    Columns,
    FigureRows,
    Figures,
    Plot,
    Report,
    ReportSections,
    ReportTable,
    format_cell,
    omission_notes,
)
from jurygraph.views.agents import UNBOUNDED_LIMITS, clip_to_limits, reward_limits_of_decisions

VALUE_COUNTS_PER_MEAN = (1, 2, 4, 8)
"""Numbers of values whose mean's reliability is reported."""
_NO_VARIANCE_SPLIT_REASON = (
    "one value for each task: what tasks and responses contribute cannot be told apart"
)
_FEW_TASKS_THRESHOLD = 20
_MAX_QUESTIONS_LISTED = 30
_JUDGE_PAIR_COLUMNS = {
    "judge A": "first",
    "judge B": "second",
    "answers of both": "both",
    "differ on met": "differ",
    "met by A alone": "first_alone",
    "met by B alone": "second_alone",
    "κ (95 %)": "kappa",
}


@dataclass(slots=True)
class QuestionScores:
    """The values of a question, with the ids of their units (tasks, or groups of them), tasks and responses.

    Of several judges, they are those of one `judge`.
    """

    question: str
    judge: str | None = None
    values: list[float] = field(default_factory=list)
    units: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    responses: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.question if self.judge is None else f"{self.question} ({self.judge})"

    @property
    def means(self) -> dict[str, float]:
        """Return the mean of the samples of each response."""
        samples = defaultdict(list)
        for response, value in zip(self.responses, self.values, strict=True):
            samples[response].append(value)
        return {response: fmean(values) for response, values in samples.items()}

    def add(self, value: float, trace: Trace, unit: str) -> None:
        self.values.append(value)
        self.units.append(unit)
        self.tasks.append(trace.task_id)
        self.responses.append(trace.response_id)


@dataclass(frozen=True, slots=True)
class RunScores:
    """The rewards of a run, the scores of its questions, and the number of those left out, by reason.

    `questions` has those of each judge of a question apart: two judges are no samples of one. They have the first
    judges' scores also where another one's superseded them: those that are left are the ones that agreed.
    `last_judge_by_question` names the judge to whom a question went on where several first ones were not enough.
    `limits` are the least and the greatest reward that is possible. `unsupported_count` verdicts lack a quotation.
    """

    run: str
    rewards: QuestionScores
    questions: tuple[QuestionScores, ...]
    left_out: Mapping[str, int]
    last_judge_by_question: Mapping[str, str] = field(default_factory=dict)
    limits: tuple[float, float] = UNBOUNDED_LIMITS
    unsupported_count: int = 0


def read_scores(run: Run, advance: ProgressCallback = ignore_progress) -> RunScores:
    """Return the rewards and scores of a run; `advance` is called with 1 for each task.

    A re-scored run gives its own rewards. An unsupported finding counts as in the reward, by the worst case: otherwise
    a judge that invents quotations now and then would look the more reliable. Left out and counted are responses whose
    reward failed, and verdicts without a score or set by a gate. Comparisons of two responses and judgements of
    variants are no samples of a response. Nor are its turns: they have one value for each sample of a judge, as the
    reward counts them.

    Raises `InputError` for fewer than two tasks with a reward, and `TraceMismatch` if a record has been changed.
    """
    rewards = QuestionScores("reward")
    order = {name: position for position, name in enumerate(run.questions())}
    questions: dict[tuple[str, str | None], QuestionScores] = {}
    last_judge_by_question: dict[str, str] = {}
    left_out = Counter[str]()
    unsupported_count = 0
    for group in run.group_records():
        unit = unit_name_of_task(run, group.key)
        questions_of_group = run.survey_without_texts_of(group.key).questions
        uses = uses_of_samples(run.decision_of(group.key), questions_of_group)
        # a single first judge can be compared with no other one, and stays beside the last
        last_judge_by_question |= {
            question.id: question.escalate.then
            for question in questions_of_group
            if question.escalate is not None and len(question.escalate.first) > 1
        }
        for trace, _ in run.group(group):
            if trace.reward.value is None:
                left_out["responses whose reward failed"] += 1
            else:
                rewards.add(trace.reward.value, trace, unit)
            verdicts = run.verdicts_about_trace(
                trace, attrgetter("judge", "sample"), superseded=True
            )
            for verdict in verdicts:
                is_about_this_response = (
                    not verdict.responses or trace.response_id in verdict.responses
                )
                if not is_about_this_response or verdict.question not in order:
                    continue
                if verdict.score is None or verdict.status != "ok" or verdict.gated_by is not None:
                    left_out["verdicts without a score, or with that of a gate"] += 1
                    continue
                score = counted_score(verdict, uses.get(verdict.question))
                if score is None:
                    left_out["unsupported verdicts, which are no votes of a majority"] += 1
                    continue
                unsupported_count += verdict.is_worst_case
                key = verdict.question, verdict.judge
                scores = questions.setdefault(key, QuestionScores(*key))
                scores.add(score, trace, unit)
        advance(1)
    counts = Counter(rewards.units)
    if len(counts) < 2:
        units = units_label(counts)
        unit = SINGULAR_UNIT_LABELS[units] if len(counts) == 1 else units
        problem = f"{len(rewards.values)} rewards, of {len(counts)} {unit}"
        raise InputError(
            f"{run.folder}: has {problem}; score at least 2 {units}: every figure here is over {units}"
        )
    scored = sorted(
        questions.values(), key=lambda scores: (order[scores.question], scores.judge or "")
    )
    return RunScores(
        str(run.folder),
        rewards,
        tuple(scored),
        dict(sorted(left_out.items())),
        last_judge_by_question,
        reward_limits_of_decisions(list(run.decisions()), min(rewards.values)),
        unsupported_count,
    )


def report(scores: RunScores) -> Report:
    """Return the variance of a run's rewards and scores by level, and what its size can tell.

    The figures are those of the `mean` reward, the splits of the `rewards` and of the `questions`, and `left_out`.
    """
    rewards = split_score_variance(scores.rewards)
    mean = mean_with_cluster_interval(scores.rewards.values, scores.rewards.units)
    assert mean is not None, "a run without rewards is refused"
    mean = clip_to_limits(mean, scores.limits)
    questions = [split_score_variance(question) for question in scores.questions]
    scores_by_question: dict[str, dict[str, QuestionScores]] = defaultdict(dict)
    for judged in scores.questions:
        if judged.judge is not None:
            scores_by_question[judged.question][judged.judge] = judged
    judges = [
        agreement_of_judges(name, scores_by_judge, scores.last_judge_by_question.get(name))
        for name, scores_by_judge in sorted(scores_by_question.items())
    ]
    figures = {
        "run": scores.run,
        "mean": mean,
        "rewards": rewards,
        "questions": questions,
        "left_out": scores.left_out,
        "unsupported": scores.unsupported_count,
    }
    pairs = compare_judge_pairs(_list_judge_scores(scores.questions, scores.last_judge_by_question))
    if judges:
        figures |= {"judges": judges, "pairs": pairs}
    notes = list(omission_notes(scores.left_out))
    if scores.unsupported_count:
        notes.append(
            f"unsupported verdicts: {scores.unsupported_count}; they count as in the reward, by the worst case"
        )
    unit_count = len(set(scores.rewards.units))
    units = units_label(scores.rewards.units)
    if unit_count < _FEW_TASKS_THRESHOLD:
        notes.append(
            f"{unit_count} {units}: with fewer than {_FEW_TASKS_THRESHOLD}, shares and intervals are rough"
        )
    if not any(question["within_response"] for question in questions):
        notes.append(
            "no question has several samples (`samples`): how far a judge would repeat a score is unknown"
        )
    for question in judges:
        last_judge = scores.last_judge_by_question.get(question["name"])
        if last_judge in question["judges"]:
            notes.append(
                f"{question['name']}: α is of the first judges, since they chose what {last_judge} "
                "was asked"
            )
    judge_columns: Columns = {
        "judges on": "name",
        "responses of several": "responses",
        "α (95 %)": "alpha",
        "mean score": _describe_judge_means,
    }
    sections = [
        ReportTable.of(_JUDGE_PAIR_COLUMNS, pairs, left=2, most=_MAX_QUESTIONS_LISTED),
        *_reward_sections(f"{scores.run}: rewards", rewards, mean),
        _question_table(questions),
        ReportTable.of(judge_columns, judges, most=_MAX_QUESTIONS_LISTED),
    ]
    conclusion = conclude_reliability(mean, units, unit_count, questions, pairs)
    return Report(
        figures,
        sections,
        notes,
        _plots(questions),
        conclusion,
        symbols.RELIABILITY_SYMBOL_MEANINGS,
    )


def _plots(questions: FigureRows) -> Iterator[Plot]:
    for name, title in (
        ("within_task", "responses to a task"),
        ("within_response", "samples of a response"),
    ):
        correlations = {
            question["name"]: question[name] for question in questions if question[name]
        }
        if correlations:
            subject = f"The correlation of two {title}"
            yield Plot.bars_of_estimates(subject, "correlation", correlations)


def split_score_variance(scores: QuestionScores) -> Figures:
    """Return the variance of scores by level: tasks, responses of a task, and samples of a response.

    Groups of tasks are the outermost level if there are any, and then intervals are over them (`units`).
    Samples are a level if a response has several values. With one response for each task, tasks are none: what varies
    between responses is then between tasks, too. `levels` is empty where `why` says so.

    The `variance` of a level is 0 where the unbiased estimate, `raw`, is below 0. `within_task` is the intraclass
    correlation of two values of different responses to a task, None with one response for each; `within_response` that
    of two samples of a response, None without samples.
    """
    units = len(set(scores.units))
    tasks = len(set(scores.tasks))
    responses = len(set(scores.responses))
    ids = {}
    if tasks > units:
        ids["group"] = scores.units
    if responses > tasks:
        ids["task"] = scores.tasks
    if len(scores.values) > responses:
        ids["response"] = scores.responses
    split = split_variance(scores.values, *ids.values()) if ids and units > 1 else None
    levels = []
    correlations = {}
    unsplit_reason = None
    if split is None:
        unsplit_reason = _NO_VARIANCE_SPLIT_REASON
        if units == 1:
            unsplit_reason = f"one {SINGULAR_UNIT_LABELS[units_label(scores.units)]}"
    else:
        names = [*ids, "sample" if "response" in ids else "response"]
        shares = split.shares or [None] * len(names)
        for row in zip(names, split.units, split.components, split.raw, shares, strict=True):
            levels.append(
                dict(zip(("name", "units", "variance", "raw", "share"), row, strict=True))
            )
        correlations = {
            name: _correlation_figures(estimate)
            for name, estimate in zip(ids, split.correlations, strict=True)
        }
    return {
        "name": scores.name,
        "units": units_label(scores.units),
        "tasks": tasks,
        "responses": responses,
        "values": len(scores.values),
        "levels": levels,
        "within_group": correlations.get("group"),
        "within_task": correlations.get("task"),
        "within_response": correlations.get("response"),
        "why": unsplit_reason,
    }


def agreement_of_judges(
    question: str, judges: Mapping[str, QuestionScores], last_judge: str | None = None
) -> Figures:
    """Return the number and the mean of each judge's scores on a question, and how far the judges agree beyond chance.

    `alpha` is Krippendorff's α of the scores as interval data, with its interval over units; a judge's
    samples are averaged, and a response that one judge alone scored is left out. It is 1 for full agreement, 0 by
    chance, and None where no two scores differ. It leaves out the `last_judge`, whom the others' answers chose.
    """
    means = {}
    units: dict[str, str] = {}
    for judge, scores in judges.items():
        units |= zip(scores.responses, scores.units, strict=True)
        means[judge] = scores.means
    table = np.array([[row.get(response, np.nan) for response in units] for row in means.values()])
    scores_without_last_judge = table[[judge != last_judge for judge in means]]
    return {
        "name": question,
        "responses": np.count_nonzero((~np.isnan(scores_without_last_judge)).sum(axis=0) > 1),
        "judges": {
            judge: {"responses": len(row), "mean": fmean(row.values())}
            for judge, row in means.items()
        },
        "alpha": alpha_interval(scores_without_last_judge, "interval", tasks=list(units.values())),
    }


def _list_judge_scores(
    questions: Iterable[QuestionScores], last_judge_by_question: Mapping[str, str]
) -> Iterator[JudgeScore]:
    """Yield the mean of samples of each judge, but for those to whom a question went on because others differed."""
    for scores in questions:
        unit_by_response = dict(zip(scores.responses, scores.units, strict=True))
        if scores.judge not in (None, last_judge_by_question.get(scores.question)):
            for response, mean in scores.means.items():
                unit = unit_by_response[response]
                yield JudgeScore(scores.question, response, unit, scores.judge, mean)


def _correlation_figures(correlation: Estimate | None) -> Figures | None:
    """Return a correlation with its 95 % interval over units, and that of means of several values (Spearman-Brown)."""
    if correlation is None:
        return None
    value = correlation.value
    return {
        "value": value,
        "low": correlation.low,
        "high": correlation.high,
        "of_means": {count: reliability(value, count) for count in VALUE_COUNTS_PER_MEAN},
    }


def _reward_sections(title: str, rewards: Figures, mean: Estimate) -> ReportSections:
    yield f"{title} of {rewards['responses']} responses to {rewards['tasks']} tasks"
    columns = {
        "variance between": "name",
        "units": "units",
        "variance": "variance",
        "share": "share",
    }
    yield ReportTable.of(columns, rewards["levels"])
    if rewards["why"] is not None:
        yield f"the variance is not split: {rewards['why']}"
    correlation_within_task = rewards["within_task"]
    if correlation_within_task is not None:
        yield f"two responses to a task correlate: {format_cell(correlation_within_task)}"
        means = ", ".join(
            f"{value:.4f} of {count}"
            for count, value in correlation_within_task["of_means"].items()
        )
        yield f"reliability of a task's mean over responses: {means}"
    yield f"mean reward: {format_cell(mean)}, 95 % interval over {rewards['units']}"


def _describe_judge_means(question: Figures) -> str:
    means = [f"{judge} {figures['mean']:.3f}" for judge, figures in question["judges"].items()]
    return ", ".join(means)


def _question_table(questions: FigureRows) -> ReportTable:
    header = ["share by question", "values", "task (95 %)", "response"]
    if any(split["within_response"] for split in questions):
        header += [
            "sample",
            "one sample (95 %)",
            *(f"mean of {count}" for count in VALUE_COUNTS_PER_MEAN[1:]),
        ]
    rows = []
    for split in questions:
        shares = {level["name"]: level["share"] for level in split["levels"]}
        samples = split["within_response"]
        cells = [
            split["name"],
            split["values"],
            split["within_task"],
            shares.get("response"),
            shares.get("sample"),
            samples,
            *(samples and samples["of_means"][count] for count in VALUE_COUNTS_PER_MEAN[1:]),
        ]
        rows.append(cells[: len(header)])
    return ReportTable(header, rows, most=_MAX_QUESTIONS_LISTED)
